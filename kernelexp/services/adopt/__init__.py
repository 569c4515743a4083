"""Kernels from sources that were not written for kernelexp: copied, compiled, drafted as a kernel.

The source itself is left alone. Its copy keeps every line in its place; what of it is host code
that can't be compiled here is blank there.
"""
