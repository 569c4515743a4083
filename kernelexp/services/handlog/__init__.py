"""Experiment logs kept by hand in markdown, read into experiments and records."""
