"""Asynchronous and bulk copies, tensor maps, distributed shared memory.

Imports sync and what lies below it.
"""
