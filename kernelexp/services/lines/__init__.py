"""Cost by source line and by role: of the emulation, of a profile, and of the SASS itself.

costs.py     what is counted, and how it is read from what evidence has of a piece of code
pieces.py    the code of a variant, cut by line and by the roles that run it
costed.py    lines and roles for programs
ranking.py   lines by a figure, roles side by side
service.py   variants to all of this
"""
