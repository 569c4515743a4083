"""Experiments on GPU kernel variants: hypothesis, build, evidence, verdict, log."""

__version__ = "0.1.0"
