"""Contents of logs/: records, recounts, profiles, decisions, and the sources of each run.

Files are added whole and never edited. Imports system, facts and model.
"""
