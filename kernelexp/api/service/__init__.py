"""Evaluations over HTTP: accepted into a queue, done by workers, and cached by their content."""
