"""Where arrays, variables and parameters lie, and which CTAs are resident.

Imports core and counts.
"""
