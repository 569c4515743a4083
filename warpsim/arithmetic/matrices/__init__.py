"""Matrices of the tensor core: how registers hold them; sparse ones; ones with scale factors.

Products of rows and columns are in the room around it, which imports nothing of this one.
"""
