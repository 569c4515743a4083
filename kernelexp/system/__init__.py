"""What the operating system and the machine provide: processes, whole files, the compiler, devices.

The one place that starts processes and replaces files. Imports facts and model.
"""
