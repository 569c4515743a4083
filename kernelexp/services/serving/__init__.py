"""A queue of evaluations that survives its service, and the workers that take from it."""
