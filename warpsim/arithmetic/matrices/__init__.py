"""Matrices of the tensor core: their layout in registers; sparse ones; ones with scale factors.

Dot products are in the package around this one, which imports nothing from it.
"""
