"""What bounds a variant on its chip, and what could be gained: floors, bounds, rules, advice.

A rule takes a `Case` (one variant and all that is known of a launch) and gives an `Opportunity`.
"""
