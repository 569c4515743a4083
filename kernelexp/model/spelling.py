"""How names, values of axes and sizes are written: which characters they have, what they mean.

Patterns are read alike by JSON Schema and Python; `$` alone would let a newline through in Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TypeAlias

from kernelexp.model.errors import UsageError

AxisValue: TypeAlias = bool | int | str


Point: TypeAlias = dict[str, AxisValue]
"""A value for each axis (or for some of them, where the rest keeps its default)."""


def holds(point: Mapping[str, AxisValue], axes: Mapping[str, AxisValue]) -> bool:
    """Whether `axes` has every value of `point`, of the same type: 1 is not true."""
    return all(
        name in axes and type(axes[name]) is type(value) and axes[name] == value
        for name, value in point.items()
    )


def spell(value: AxisValue) -> str:
    """An axis value as the command line, the log and the compiler's define spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_argument(label: str) -> str:
    """Spells Project.label as commands take it: `gemm@sm_90a: stages=4, x=1` without spaces."""
    return label.removesuffix(": defaults").replace(": ", ":").replace(", ", ",")


def spell_point(point: Mapping[str, AxisValue]) -> str:
    return ", ".join(f"{axis}={spell(value)}" for axis, value in point.items()) or "defaults"


FULL = "full"
_SETTING = re.compile(r"(?:([A-Za-z_]\w*)=)?(\d{1,18})")


def split_sizes(text: str) -> tuple[str, ...]:
    """Splits a command line's `M=1024,2048`: numbers after a comma are of the parameter before."""
    names: list[str] = []
    parameter = ""
    for word in (" ".join(part.split()) for part in text.split(",")):
        match = _SETTING.fullmatch(word)
        parameter = f"{match[1]}=" if match and match[1] else parameter if match else ""
        names.append(f"{parameter}{word}" if match and not match[1] else word)
    if "" in names and text:
        raise UsageError(f"--size {text}: a size is missing beside a comma.")
    return tuple(dict.fromkeys(filter(None, names)))


def spell_sizes(written: Sequence[int | str] | Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """The sizes that an experiment lists, or each combination of its parameters' values."""
    if not isinstance(written, Mapping):
        return tuple(map(str, written))
    combinations = product(*written.values()) if written else ()
    return tuple(
        " ".join(f"{name}={value}" for name, value in zip(written, combination, strict=True))
        for combination in combinations
    )


def settings_of_size(name: str) -> dict[str, int] | None:
    """Returns what a size sets, "" for the only parameter; None where it is a name."""
    matches = [_SETTING.fullmatch(word) for word in name.split()]
    result = {match[1] or "": int(match[2]) for match in matches if match}
    if not result or len(result) != len(matches) or ("" in result and len(result) > 1):
        return None
    return result


def resolve_size(where: str, sizes: Mapping[str, Mapping[str, int]], name: str) -> dict[str, int]:
    """The parameters of a size; UsageError that says which there are."""
    if name in sizes:
        return dict(sizes[name])
    full = dict(sizes.get(FULL, {}))
    changes = settings_of_size(name) or {}
    if "" in changes and len(full) == 1:
        changes = {next(iter(full)): changes[""]}
    if changes and "" not in changes and changes.keys() <= full.keys():
        return full | changes
    first = next(iter(full), "N")
    how = f"or set its parameters ({', '.join(full)}), as in {first}={full.get(first, 1024)}"
    raise UsageError(f"{where} has no size {name!r}; known: {', '.join(sizes)}; {how}.")


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
