"""Access to the operating system and the machine: processes, whole files, the compiler, devices.

The one place that starts processes and replaces files. Imports facts and model.
"""
