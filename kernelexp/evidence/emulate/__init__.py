"""A variant executed on the CPU by warpsim: results, findings, counters, kept by content."""
