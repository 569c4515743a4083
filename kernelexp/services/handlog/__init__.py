"""Logs of experiments that people kept by hand in markdown, read into experiments and records."""
