"""The emulated machine: memories, barriers, asynchronous engines, warps. It checks and counts."""
