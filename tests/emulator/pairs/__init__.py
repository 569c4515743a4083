"""Pairs of a right and a faulty kernel in ordinary styles of CUDA."""
