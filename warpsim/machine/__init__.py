"""The emulated machine: memories, barriers, asynchronous engines, warps, checks, counters."""
