"""Contents of logs/: records, recounts, profiles, decisions, the sources of each run, and
what they compile to.

Files are added whole and never edited. Imports system, facts and model.
"""
