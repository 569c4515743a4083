"""Whole CUDA programs: built against the emulator's runtime, run and checked; or run on a GPU, with
their launches captured."""
