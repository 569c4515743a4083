"""Kernels that are correct though few are written so, each with what it must give."""
