"""Services behind the commands, without the command line: a module or a folder per command.

Each takes plain values and returns a struct, which report renders. Imports dossier and what lies
below it.
"""
