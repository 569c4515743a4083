"""Judgement of evidence: statistics, verdicts, reproduction, limits, advice.

Pure functions of plain data: no files, no processes, no clock. Imports facts and model only.
"""
