"""Whole CUDA programs: built against the emulator's runtime, run, and told what they did wrong."""
