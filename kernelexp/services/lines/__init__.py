"""Cost by source line and by role: of the emulation, of a profile, and of the SASS itself.

costs.py     the figures that have a cost per line, each with how it is read from the evidence
pieces.py    the code of a variant, divided by line and by the roles that run it
service.py   the service of `inspect --lines`, which combines these and ranks lines by a figure
"""
