"""Services behind the commands, without the command line: a module or a folder per command.

Takes plain values, returns a struct. Imports dossier and what lies below it.
"""
