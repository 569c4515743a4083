"""Which warp runs next, until all have ended or none can go on.

Imports all other rooms of the machine.
"""
