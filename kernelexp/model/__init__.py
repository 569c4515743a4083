"""Plain types that everything else speaks of: variants, experiments, arms, measurements, errors.

Frozen structs and functions of text alone. Imports no other room; types of launches are of warpsim.
"""
