"""Data races, in shared, global, distributed shared and tensor memory.

Imports core, counts and memory.
"""
