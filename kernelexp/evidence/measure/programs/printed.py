"""Figures in a program's output: each pattern matches once, and its group is a number."""

from __future__ import annotations

import math
import re

from kernelexp.model.experiment import PrintedFigure, Program
from kernelexp.model.text import quote

SMALLEST = 1e-300
"""What is smaller has no reciprocal."""


class MissingFigure(Exception):
    """The output does not have a figure that it should have; the sentence says which."""


def read(program: Program, output: str) -> dict[str, float]:
    """The figures by name; the one that programs are judged by is greater than zero.

    Raises Unreadable.
    """
    values = {name: _read(name, figure, output) for name, figure in program.figures.items()}
    judged = program.judged
    if not SMALLEST < values[judged] < 1.0 / SMALLEST:
        value = f"{values[judged]:g}"
        raise MissingFigure(f"The program printed {value} as {judged}, which is to be above zero.")
    return values


def is_correct(program: Program, output: str) -> bool:
    """Whether the output says that the result is right, where the program is to say so."""
    return not program.correct or re.search(program.correct, output, re.M) is not None


def last_line(text: str) -> str:
    """The last line with anything on it, as a sentence quotes it; "nothing" where there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return quote(lines[-1]) if lines else "nothing"


def _read(name: str, figure: PrintedFigure, output: str) -> float:
    matches = list(re.finditer(figure.pattern, output, re.M))
    pattern = quote(figure.pattern)
    if not matches:
        last = last_line(output)
        raise MissingFigure(
            f"The program printed no {name}: {pattern} matches nothing; last: {last}."
        )
    if len(matches) > 1:
        raise MissingFigure(
            f"The program printed {name} {len(matches)} times in a run: {pattern} is to match once."
        )
    match = matches[0]
    text = match[name] if name in match.re.groupindex else match[1]
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise MissingFigure(
            f"The program printed {quote(text or '')} as {name}: it is not a number."
        )
    return value
