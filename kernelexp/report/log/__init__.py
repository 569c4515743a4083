"""The log: history, experiments and decisions, as data, as text, in its file."""
