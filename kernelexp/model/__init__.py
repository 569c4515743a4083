"""Plain types that all rooms share: variants, experiments, arms, measurements, errors.

Frozen structs, and functions of text alone. Imports no other room; the types of launches come from
warpsim.
"""
