"""Problems and solutions of other projects, evaluated as they are.

`formats/` has a module for each project's format; task.py defines what such a module offers.
cascade.py takes a solution through the stages, cheapest first. Problem and solution run in
processes of their own, which workplace.py starts.
"""
