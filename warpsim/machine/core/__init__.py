"""The smallest pieces of the machine: lanes, registers, code sites, findings, vector clocks.

Imports nothing else of the machine.
"""
