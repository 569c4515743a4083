"""Adopts sources that were not written for kernelexp: copies and compiles them, drafts a kernel.

The original is left alone. The copy keeps every line at its number; host code that can't be
compiled here is blanked.
"""
