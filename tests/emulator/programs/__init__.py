"""Whole programs, each right and with a fault."""
