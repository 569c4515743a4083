"""Barriers, mbarriers, atomics, phases, convergence: how warps wait for each other.

Imports wave and what lies below it.
"""
