"""Everything known about a variant, gathered as one arm.

The one place that decides which record, profile or cached emulation counts for a variant, and what
has changed since. Imports evidence and what lies below it.
"""
