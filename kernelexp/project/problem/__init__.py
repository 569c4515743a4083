"""A kernel's problem.py: executed in a process of its own, with what it returns checked."""
