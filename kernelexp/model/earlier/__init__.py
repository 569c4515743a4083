"""Modules that a problem.py imported before `from kernelexp import ...`; kept sources still do."""
