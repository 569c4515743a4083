"""The command line: a file per command, each of which parses, calls one service, and prints.

A command's file is imported when the command is called; commands.py lists them for --help.
"""

from kernelexp.cli.app import app, main

__all__ = ["app", "main"]
