"""Facts of every project: architectures, chips, counters, metrics, conditions on figures.

Tables and functions of plain data. Imports model.
"""
