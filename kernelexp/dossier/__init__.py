"""Everything known about a variant, gathered as one arm.

The one place that decides which record, profile or kept emulation speaks for a variant, and what
has changed since. Imports evidence, judge, logs, project and what lies below them.
"""
