"""A queue of evaluations that outlives its server, and the workers that take from it."""
