"""The instruction set: one module an area, each a table of short functions."""
