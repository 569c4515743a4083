"""The command lines of a program: words with placeholders, filled in for a variant.

    {stages}     the variant's value of an axis
    {out}        the folder that the variant is built in
    {arch}       the target, such as sm_90a
    {python}     the Python that kernelexp runs in
    {defines}    as a word of its own: -DKX_STAGES=4 for each axis, each a word

Anything else in braces is a mistake where it looks like a name, and text where it does not. Nothing
goes through a shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from kernelexp.model import AxisValue, Placed, Program, spell

OUT, ARCH, PYTHON, DEFINES = "out", "arch", "python", "defines"
NAMES = (OUT, ARCH, PYTHON, DEFINES)
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def build(program: Program, place: Placed, out: str, python: str) -> list[tuple[str, ...]]:
    """The command lines of a variant's build; `out` and `python` are the paths to fill in."""
    return [_fill(words, place, out, python) for words in program.build]


def run(program: Program, place: Placed, out: str, python: str) -> tuple[str, ...]:
    """The command line that runs it."""
    return _fill(program.run, place, out, python)


def environment(program: Program, place: Placed, out: str, python: str) -> dict[str, str]:
    """The variables that it sets."""
    values = _values(place, out, python)
    return {name: _replace(text, values) for name, text in program.environment.items()}


def spelled(program: Program, place: Placed) -> tuple[str, ...]:
    """All of these for a record: the same on any machine, so with {out} and {python} in them."""
    paths = (f"{{{OUT}}}", f"{{{PYTHON}}}")
    variables = environment(program, place, *paths)
    return (
        *(shlex.join(words) for words in build(program, place, *paths)),
        shlex.join(run(program, place, *paths)),
        *(f"{name}={value}" for name, value in sorted(variables.items())),
    )


def unknown(words: Sequence[str], axes: Mapping[str, object]) -> Iterator[str]:
    """The placeholders that stand for nothing."""
    for word in words:
        for name in _PLACEHOLDER.findall(word):
            if name not in axes and (name not in NAMES or (name == DEFINES and word != "{defines}")):
                yield name


def has_out(words: Sequence[str]) -> bool:
    return any(OUT in _PLACEHOLDER.findall(word) for word in words)


def _fill(words: Sequence[str], place: Placed, out: str, python: str) -> tuple[str, ...]:
    values = _values(place, out, python)
    filled: list[str] = []
    for word in words:
        if word == f"{{{DEFINES}}}":
            filled += _defines(place.axes)
        else:
            filled.append(_replace(word, values))
    return tuple(filled)


def _values(place: Placed, out: str, python: str) -> dict[str, str]:
    own = {axis: spell(value) for axis, value in place.axes.items()}
    return {OUT: out, ARCH: place.arch, PYTHON: python, **own}


def _replace(word: str, values: Mapping[str, str]) -> str:
    """One pass: what is filled in is not looked at again."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word)


def _defines(axes: Mapping[str, AxisValue]) -> list[str]:
    return [f"-DKX_{axis.upper()}={spell(value)}" for axis, value in axes.items()]
