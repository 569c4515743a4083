"""The state of one wave of resident CTAs, and the accesses that instructions make to it.

Imports core, counts, memory and checks.
"""
