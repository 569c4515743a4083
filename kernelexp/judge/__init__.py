"""From evidence to judgement: statistics, verdicts, reproduction. Pure functions of plain data."""
