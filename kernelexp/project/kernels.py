"""The kernels of experiments.yaml as they are written: targets and axes, programs, gates; and which
points their axes have."""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from kernelexp.facts import condition, expectation, metrics
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.model.errors import join, suggest
from kernelexp.model.experiment import (
    Axis,
    AxisValue,
    Gate,
    Kernel,
    Point,
    PrintedFigure,
    Program,
    Target,
    fill,
    form_of,
    placeholders,
    spell,
)
from kernelexp.model.text import quote, shorten
from kernelexp.project.faults import Fault, KeyPath
from kernelexp.project.yamlfile import Document
from kernelexp.system import disk


def check(document: Document, name: str, kernel: Kernel) -> Iterator[Fault]:
    """Yields the faults in what is written of a kernel: its targets, its program, its gates."""
    yield from _check_targets(document, name, kernel)
    for path, message in _check_program(kernel):
        yield document.fault(("kernels", name, *path), message)
    yield from _check_gates(document, name, kernel)


def _check_targets(document: Document, name: str, kernel: Kernel) -> Iterator[Fault]:
    if not kernel.targets:
        yield document.fault(("kernels", name, "targets"), "a kernel has at least one target.")
    for arch, target in kernel.targets.items():
        path = ("kernels", name, "targets", arch)
        if arch not in ARCHITECTURES:
            yield document.fault(path, f"unknown architecture{suggest(arch, ARCHITECTURES)}.")
        for message in _check_source(kernel, target):
            yield document.fault((*path, "source"), message)
        for index, flag in enumerate(target.flags):
            for message in _check_flag(flag):
                yield document.fault((*path, "flags", index), message)
        for axis_name, axis in target.axes.items():
            axis_path = (*path, "axes", axis_name)
            for message in _check_axis(axis):
                yield document.fault(axis_path, message)


def _check_source(kernel: Kernel, target: Target) -> Iterator[str]:
    for name in placeholders(target.source):
        if name not in target.axes:
            yield f"there is no axis {quote(name)}{suggest(name, target.axes)}."
    form = form_of(target.source)
    if form != "source" and kernel.program is not None:
        yield f"a program is linked from C++: a .{form} has no main."
    if form == "cubin" and target.flags:
        yield "a .cubin is compiled already: leave out the flags."


def check_files(document: Document, name: str, kernel: Kernel, root: Path) -> Iterator[Fault]:
    folder = root / "variants" / name
    if kernel.program is None and not os.path.isfile(folder / "problem.py"):
        yield document.fault(("kernels", name), f"there is no variants/{name}/problem.py.")
    for arch, target in kernel.targets.items():
        path = ("kernels", name, "targets", arch)
        files = [("source", file) for file in islice(_sources(target), MAX_SOURCES)]
        for key, file in (*files, ("config", target.config)):
            if file and not disk.inside(folder, file):
                message = f"variants/{name}/{file} is a link to a file outside of its folder."
                yield document.fault((*path, key), message)
            elif file and not os.path.isfile(folder / file):
                yield document.fault((*path, key), f"there is no variants/{name}/{file}.")


MAX_SOURCES = 1000
"""Files of one target that are looked for."""


def _sources(target: Target) -> Iterator[str]:
    """The files of all values of the axes that the target's source names."""
    named = [name for name in dict.fromkeys(placeholders(target.source)) if name in target.axes]
    for values in itertools.product(*(target.axes[name].values for name in named)):
        yield fill(target.source, dict(zip(named, values, strict=True)))


# Options of nvcc that choose another output, phase, program or file of options: the build's own.
_RESERVED = frozenset(
    """
    o output-file odir output-directory objtemp objdir-as-tempdir keep keep-dir save-temps
    MF dependency-output M MM MD MMD time fdevice-time-trace clean clean-targets dryrun run run-args
    optf options-file ccbin compiler-bindir arbin archiver-binary target-dir target-directory
    ptx cubin cuda fatbin optix-ir ltoir E preprocess c compile dc device-c dw device-w
    dlink device-link link lib shared h help V version arch gpu-architecture code gpu-code
    gencode generate-code code-ls gpu-name list-gpu-code arch-ls list-gpu-arch fdevice-syntax-only
    """.split()
)


def _check_flag(flag: str) -> Iterator[str]:
    for part in re.split("[,=]", flag):
        name = part.lstrip("-")
        if part != name and (name in _RESERVED or re.match(r"-o[^pbd]", part)):
            yield f"{part} is not allowed here: the build chooses outputs and tools itself."


def _check_axis(axis: Axis) -> Iterator[str]:
    if len({spell(value) for value in axis.values}) != len(axis.values):
        yield "a value is listed twice."
    if not axis.values:
        yield "an axis has at least one value."
    elif not contains(axis.values, axis.default):
        default = shorten(spell(axis.default))
        if any(spell(value) == spell(axis.default) for value in axis.values):
            default = f"{kind_of_value(axis.default)} {default}"
        yield f"the default, {default}, is not among the values {join_values(axis.values)}."


def check_point(point: Point, axes: Mapping[str, Axis]) -> Iterator[tuple[str, str]]:
    """Axis and complaint, for each axis or value of `point` that does not exist."""
    for name, value in point.items():
        if name not in axes:
            none = ": the kernel has none; kernelexp adopt --axis makes one of a source's number"
            yield name, f"unknown axis {quote(name)}{suggest(name, axes) if axes else none}."
        elif not contains(axes[name].values, value):
            yield name, _refuse(name, axes[name].values, value)


def _refuse(axis: str, allowed: Sequence[AxisValue], value: AxisValue) -> str:
    """The sentence on a value that an axis does not have."""
    meant = next((axis_value for axis_value in allowed if spell(axis_value) == spell(value)), None)
    if meant is not None:
        wanted, given = kind_of_value(meant), kind_of_value(value)
        return (
            f"axis {quote(axis)} takes {wanted} {spell(meant)}, but this is {given}: "
            f"write {'it in quotes' if isinstance(meant, str) else 'it without quotes'}."
        )
    words = [spell(axis_value) for axis_value in allowed]
    # Numbers are not misspelt: 512 is nothing like 128.
    spelled = spell(value)
    hint = f"; known: {join(words)}" if spelled.isdigit() else suggest(spelled, words)
    return f"axis {quote(axis)} has no value {quote(spelled)}{hint}."


def kind_of_value(value: AxisValue) -> str:
    if isinstance(value, str):
        return "the text"
    return "the value" if isinstance(value, bool) else "the number"


def contains(values: Iterable[AxisValue], value: AxisValue) -> bool:
    return any(same(axis_value, value) for axis_value in values)


def same(a: AxisValue, b: AxisValue) -> bool:
    return type(a) is type(b) and a == b  # true is not 1


def join_values(values: Iterable[AxisValue]) -> str:
    return join(spell(value) for value in values)


def _check_program(kernel: Kernel) -> Iterator[tuple[KeyPath, str]]:
    """Yields the faults in the description of a kernel's program: a key path below the kernel, and
    a sentence."""
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
    if program.correct and (complaint := _refuse_pattern(program.correct)):
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
        if complaint := _refuse_pattern(figure.pattern) or _groups(name, figure):
            yield (*path, "pattern"), complaint
        if figure.is_time and figure.better == "more":
            yield (*path, "better"), f"less of a time is better: {figure.unit} is a unit of time."
        if not figure.is_time and figure.better is None:
            message = f"say which way {figure.unit or 'a number'} is better: better: less or more."
            yield path, message


def _refuse_pattern(pattern: str) -> str:
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


def _check_gates(document: Document, name: str, kernel: Kernel) -> Iterator[Fault]:
    """Yields the faults in a kernel's gates."""
    for index, gate in enumerate(kernel.gates):
        path = ("kernels", name, "gates", index)
        yield from _check_selection(document, path, gate, kernel)
        for place, text in enumerate(gate.instructions):
            try:
                condition.parse(text)
            except ValueError as error:
                yield document.fault((*path, "instructions", place), str(error))
        for figure, text in gate.emulated.items():
            if complaint := _refuse_count(figure, text):
                yield document.fault((*path, "emulated", figure), complaint)
        if not (gate.instructions or gate.emulated or gate.expected or gate.measured):
            message = "this demands nothing: add instructions, emulated, expected or measured."
            yield document.fault(path, message)
        if gate.measured and gate.expected == "incorrect":
            message = "a variant that is expected to be incorrect is not timed: leave this out."
            yield document.fault((*path, "measured"), message)


def _check_selection(
    document: Document, path: KeyPath, gate: Gate, kernel: Kernel
) -> Iterator[Fault]:
    if gate.arch and gate.arch not in kernel.targets:
        hint = suggest(gate.arch, kernel.targets)
        message = f"this kernel has no target {quote(gate.arch)}{hint}."
        yield document.fault((*path, "arch"), message)
        return
    targets = [kernel.targets[gate.arch]] if gate.arch else list(kernel.targets.values())
    complaints = [list(check_point(gate.of, target.axes)) for target in targets]
    if complaints and all(complaints):
        for axis, message in complaints[0]:
            yield document.fault((*path, "of", axis), message)


def _refuse_count(figure: str, text: str) -> str:
    """Says what is wrong with a condition on a counter, as a sentence; empty where nothing is."""
    if metrics.kind_of(figure) not in ("emulated", "profiled") or "." in figure:
        return (
            f"{quote(figure)} is nothing that an emulation counts: name a counter of PTX, as in "
            "ptx__inst_executed, or of SASS, as in smsp__inst_executed (docs of warpsim list "
            "them)."
        )
    return expectation.complaint(text)
