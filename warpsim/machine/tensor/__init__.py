"""Tensor cores: mma, wgmma and tcgen05 with their operands and tensor memory.

Imports copies and what lies below it.
"""
