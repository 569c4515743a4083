"""Access to the operating system and the machine: processes, atomic file writes, compiler, devices.

The one place that starts processes and replaces files. Imports facts and model.
"""
