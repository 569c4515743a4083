"""Faults in the description of a kernel's program: patterns, units, placeholders."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

from kernelexp.model.errors import suggest
from kernelexp.model.experiment import Kernel, PrintedFigure, Program, placeholders
from kernelexp.model.text import quote
from kernelexp.project.faults import KeyPath


def check(kernel: Kernel) -> Iterator[tuple[KeyPath, str]]:
    """Key path below the kernel, and a sentence, for each fault."""
    program = kernel.program
    if program is None:
        if kernel.runner == "program":
            yield ("program",), "'program' is missing: say which figures the program prints."
        return
    if kernel.runner != "program":
        yield ("program",), "this is read only where the kernel has runner: program."
    if kernel.gates:
        message = "gates are of a kernel with a problem.py: check compares a program's build only."
        yield ("gates",), message
    yield from _check_figures(program)
    if program.correct and (complaint := _complaint(program.correct)):
        yield ("program", "correct"), complaint
    for arch, target in kernel.targets.items():
        if target.config:
            message = "a program has no problem.py whose limits a config header could state."
            yield ("targets", arch, "config"), message
        for index, word in enumerate(program.arguments):
            for name in placeholders(word):
                if name not in target.axes:
                    message = f"{arch} has no axis {quote(name)}{suggest(name, target.axes)}."
                    yield ("program", "arguments", index), message


def _check_figures(program: Program) -> Iterator[tuple[KeyPath, str]]:
    if not program.figures:
        yield ("program", "figures"), "a program prints at least one figure."
    elif program.judged not in program.figures:
        hint = suggest(program.judge, program.figures)
        yield ("program", "judge"), f"there is no figure {quote(program.judge)}{hint}."
    for name, figure in program.figures.items():
        path = ("program", "figures", name)
        if complaint := _complaint(figure.pattern) or _groups(name, figure):
            yield (*path, "pattern"), complaint
        if figure.is_time and figure.better == "more":
            yield (*path, "better"), f"less of a time is better: {figure.unit} is a unit of time."
        if not figure.is_time and figure.better is None:
            message = f"say which way {figure.unit or 'a number'} is better: better: less or more."
            yield path, message


def _complaint(pattern: str) -> str:
    """Says what is wrong with a regular expression, as a sentence; empty where nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError, FutureWarning) as error:
        return f"this is not a regular expression: {error}."
    return ""


def _groups(name: str, figure: PrintedFigure) -> str:
    """Says what is wrong with the groups of a pattern, just one of which is the number; else
    empty."""
    compiled = re.compile(figure.pattern)
    if compiled.groups == 0:
        return "this has no group: put the number in parentheses, as in 'time: ([0-9.]+) ms'."
    if compiled.groups > 1 and name not in compiled.groupindex:
        return (
            f"this has {compiled.groups} groups: name the one that is the number, as in "
            f"(?P<{name}>[0-9.]+)."
        )
    return ""
