"""Variants executed on the CPU by warpsim: results, findings, counters, cached by content."""
