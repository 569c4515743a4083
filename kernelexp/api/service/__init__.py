"""Evaluations over HTTP: accepted into a queue, done by workers, and kept by what was evaluated."""
