"""SASS opcodes by the pipe that executes them, under the names of ncu's counters."""
