"""Evidence about variants: built, emulated, measured, profiled.

A folder per kind; `executor` decides whether the work is done here or on a cluster. Imports judge
and what lies below it.
"""
