"""A kernel's problem.py: executed in a process of its own, what it returns checked."""
