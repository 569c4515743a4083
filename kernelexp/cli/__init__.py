"""The command line: a file per command, each of which parses, calls one service, and prints.

Importing a command registers it; the order here is the order in which --help lists them.
"""

from kernelexp.cli.app import app, main

# isort: off
from kernelexp.cli import run, sweep, build, emulate, list as _list, show, log, diff, compare  # noqa: F401
from kernelexp.cli import profile, sections, explain, opportunities, lines  # noqa: F401
from kernelexp.cli import verdict, check, calibrate, doctor, schema  # noqa: F401

__all__ = ["app", "main"]
