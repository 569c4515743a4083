"""Modules that earlier problem.py files imported; kept sources still import them."""
