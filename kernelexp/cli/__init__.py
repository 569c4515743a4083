"""The command line: a file per command, each of which parses, calls one service, and prints.

A command's file is imported when the command is called. app.py lists them for --help, and the names
of earlier versions; modes.py refuses an option of one mode of a command in another.

May import every other room; none imports this one.
"""

from kernelexp.cli.app import app, main

__all__ = ["app", "main"]
