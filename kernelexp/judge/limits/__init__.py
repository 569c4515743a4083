"""Bounds of a variant on its chip, and its possible gains: floors, bounds, rules, advice.

A rule takes a `Case` (one variant and all that is known of a launch) and gives an `Opportunity`.
"""
