"""The names, tokens and paths that people write: which characters they have.

Patterns that JSON Schema and Python read alike; `$` alone would let a newline through in Python.
"""

from __future__ import annotations

import re

LINE = r"^[^\n]*$(?!\n)"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)"
AXIS = r"^[a-z][a-z0-9_]*$(?!\n)"
# The compiler is started through a shell and starts others through one, so that what becomes an
# argument has no character that means something to a shell.
PARAMETER = r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)"
TOKEN = (
    r"^((::)?[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*"
    r"|-?[0-9][0-9A-Za-z_.]*([eEpP][+-][0-9]+)?)$(?!\n)"
)
FLAG = r"^(\{torch\}|\{python\}|[A-Za-z0-9_.,:=+/-])+$(?!\n)"
FIGURE = r"^[A-Za-z][A-Za-z0-9_.:]*$(?!\n)"
SOURCE = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*$(?!\n)"
SOURCES = r"^[A-Za-z0-9_{][A-Za-z0-9_.+{}-]*(/[A-Za-z0-9_{][A-Za-z0-9_.+{}-]*)*$(?!\n)"
METRIC = r"^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*$(?!\n)"
PRINTED = r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$(?!\n)"
WORD = r"^[^\x00-\x1f\x7f]*$(?!\n)"
SYMBOL = r"^[a-z](_?[a-z0-9])*$(?!\n)"

SWEEP = "sweep-"
"""How the names begin under which sweeps are recorded; no experiment's id does."""
TIMED, EVALUATED = "time", "evaluation"
"""What stands for an id where `time` compares variants without an experiment."""

SENTENCES = {
    LINE: "this is a single line",
    NAME: "a name is letters, digits, '.', '_' and '-', and begins with a letter or a digit",
    AXIS: "an axis is lower-case letters, digits and '_', since it becomes a macro",
    PARAMETER: "a parameter of a size is named as in SIZES of problem.py",
    TOKEN: "an axis value is a number, true, false or a C++ identifier, which may have ::",
    FLAG: "an argument of nvcc is letters, digits and any of _ . , : = + / -, or {torch}, {python}",
    FIGURE: "a figure is named as in `kernelexp show --json` or as ncu names it",
    SOURCE: "a source is a path in the kernel's folder, of letters, digits and _ . + -",
    SOURCES: "a source is a path in the kernel's folder, of letters, digits, _ . + - and {axis}",
    METRIC: "a metric is a name of ncu's with its suffix, such as sm__inst_executed.sum",
    PRINTED: "a printed figure is named in lower-case letters, digits and '_', as in bandwidth",
    WORD: "an argument of a program is a single line without control characters",
    SYMBOL: "a name in formulas is lower-case letters and digits, with single '_' between them",
}


def is_sweep(name: str) -> bool:
    """Whether records under this name are of sweeps."""
    return name.startswith(SWEEP)


def is_written(name: str) -> bool:
    """Whether experiments.yaml may have what is recorded under this name."""
    return not is_sweep(name) and name not in (TIMED, EVALUATED)


def is_name(text: str) -> bool:
    """Whether `text` may be an experiment's id or a kernel's name."""
    return len(text) <= 100 and re.search(NAME, text) is not None
