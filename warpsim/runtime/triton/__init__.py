"""Triton kernels on the emulator: the modules loaded by a Python program that `exec` runs."""

from pathlib import Path

SITE = Path(__file__).parent / "site"
"""To be on the path of a Python program from its start."""
STORAGE = "storage:"
"""Begins what stands for the function where a tensor's copy is allocated; the argument follows."""
