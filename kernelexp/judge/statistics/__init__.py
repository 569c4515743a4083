"""Samples to intervals: ratios of times, races and heats, plateaus, drift, error rates."""
