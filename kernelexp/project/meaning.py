"""The meaning of a project's files: names that refer to something, values that exist."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import msgspec

from kernelexp.facts import expectation, metrics
from kernelexp.facts.arch import ARCHITECTURES
from kernelexp.model.axes import spell
from kernelexp.model.errors import suggest
from kernelexp.model.experiment import Axis, Experiment, Kernel, Target, fill, form_of, placeholders
from kernelexp.model.names import SWEEP, is_name, is_sweep
from kernelexp.model.text import quote, shorten
from kernelexp.project import gates, layout, programs
from kernelexp.project.faults import Fault, KeyPath
from kernelexp.project.points import check_point, contains, join_values, kind_of_value, same
from kernelexp.project.yamlfile import Document


class ProjectEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment or step as it is written, and where."""

    id: str
    section: layout.Section
    document: Document
    path: KeyPath
    """Of keys to it, in the document."""
    experiment: Experiment | None
    """None where it is not of the right form, which has its own faults."""

    @property
    def names_baseline(self) -> bool:
        """Whether it is written from what it starts."""
        return (*self.path, "baseline") in self.document.places

    @property
    def place(self) -> str:
        return f"{self.document.file}:{self.document.places[self.path][0]}"


def section_of(document: Document, name: str) -> Mapping[str, object]:
    """A top-level mapping of the file as it is written; empty where there is none."""
    section = document.value.get(name) if isinstance(document.value, dict) else None
    return section if isinstance(section, dict) else {}


def check(
    main: Document,
    kernels: dict[str, Kernel],
    entries: Iterable[ProjectEntry],
    root: Path,
    sources: bool = True,
) -> Iterator[Fault]:
    """Yields the faults between the parts of `main` and the files of one experiment each.

    With `sources` the kernels' own files have to be there.
    """
    for name, kernel in kernels.items():
        if is_name(name):
            yield from _check_kernel(main, name, kernel)
            for path, message in programs.check(kernel):
                yield main.fault(("kernels", name, *path), message)
            yield from gates.check(main, name, kernel)
            if sources:
                yield from _check_files(main, name, kernel, root)
    defined: dict[str, str] = {}
    for entry in entries:
        if message := _refuse_id(entry, defined):
            yield entry.document.fault(entry.path, message)
        defined.setdefault(entry.id, entry.place)
        if entry.experiment:
            yield from _check_experiment(main, entry, entry.experiment, kernels)


def _refuse_id(entry: ProjectEntry, defined: Mapping[str, str]) -> str:
    """Says what is wrong with an entry's id; `defined` are the places of those before it."""
    if entry.id in defined:
        return f"{defined[entry.id]} defines {entry.id} already; ids are unique."
    if not entry.path and not is_name(entry.id):
        return "this file's name is not an id: use letters, digits, '.', '_' and '-'."
    if is_sweep(entry.id):
        return f"ids that begin with {SWEEP} are those of sweeps: choose another."
    return ""


def _check_experiment(
    main: Document, entry: ProjectEntry, experiment: Experiment, kernels: dict[str, Kernel]
) -> Iterator[Fault]:
    target = _find_target(experiment, kernels)
    yield from _check_expectations(entry, experiment)
    yield from _check_sizes(entry, experiment)
    if isinstance(target, Target):
        yield from _check_points(entry, experiment, target)
    elif target[0] == "arch" or experiment.kernel not in section_of(main, "kernels"):
        # Otherwise the kernel is in the file, and has faults of its own.
        yield entry.document.fault((*entry.path, target[0]), target[1])


def _check_kernel(document: Document, name: str, kernel: Kernel) -> Iterator[Fault]:
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


def _check_files(document: Document, name: str, kernel: Kernel, root: Path) -> Iterator[Fault]:
    folder = root / "variants" / name
    if kernel.program is None and not os.path.isfile(folder / "problem.py"):
        yield document.fault(("kernels", name), f"there is no variants/{name}/problem.py.")
    for arch, target in kernel.targets.items():
        path = ("kernels", name, "targets", arch)
        files = [("source", file) for file in islice(_sources(target), MAX_SOURCES)]
        for key, file in (*files, ("config", target.config)):
            if file and not layout.inside(folder, file):
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


def _check_points(entry: ProjectEntry, experiment: Experiment, target: Target) -> Iterator[Fault]:
    document, path = entry.document, entry.path
    for axis, message in check_point(experiment.baseline, target.axes):
        yield document.fault((*path, "baseline", axis), message)
    several = isinstance(experiment.candidate, list)
    if not experiment.candidates:
        yield document.fault((*path, "candidate"), "an experiment has at least one candidate.")
    for index, point in enumerate(experiment.candidates):
        place = (*path, "candidate", index) if several else (*path, "candidate")
        complaints = list(check_point(point, target.axes))
        for axis, message in complaints:
            yield document.fault((*place, axis), message)
        if not complaints and all(
            same(value, experiment.baseline.get(name, target.axes[name].default))
            for name, value in point.items()
        ):
            yield document.fault(place, _identical(entry))


def _identical(entry: ProjectEntry) -> str:
    if entry.names_baseline or not (entry.experiment and entry.experiment.baseline):
        return "this is identical to the baseline."
    return (
        "this is identical to the baseline, which is the variant that was accepted last: write a "
        "baseline to start from."
    )


def _check_sizes(entry: ProjectEntry, experiment: Experiment) -> Iterator[Fault]:
    document, path = entry.document, entry.path
    names, weights = experiment.timed_sizes, experiment.weights
    if experiment.sizes and experiment.size:
        yield document.fault((*path, "size"), "an experiment has a size or sizes, not both.")
    if len(set(names)) < len(names):
        yield document.fault((*path, "sizes"), "a size is listed twice.")
    if len(names) > MAX_SIZES:
        message = f"these are {len(names):,} sizes; {MAX_SIZES} are the most of one run."
        yield document.fault((*path, "sizes"), message)
    if weights and len(weights) != len(names):
        message = f"this has {len(weights)} weights: write one for each size ({len(names)})."
        yield document.fault((*path, "weights"), message)
    if any(not 0.0 < weight < math.inf for weight in weights):
        yield document.fault((*path, "weights"), "a weight is above 0.")


MAX_SIZES = 100
"""Sizes of one run, each of which is timed for half a minute at least."""


def _check_expectations(entry: ProjectEntry, experiment: Experiment) -> Iterator[Fault]:
    document, path = entry.document, (*entry.path, "expect")
    if isinstance(experiment.expect, list):
        wanted, given = len(experiment.candidates), len(experiment.expect)
        if wanted != given:
            message = f"this has {given} items: write one for each candidate ({wanted})."
            yield document.fault(path, message)
        places = [((*path, index), item) for index, item in enumerate(experiment.expect)]
    else:
        places = [(path, experiment.expect)]
    for place, expected in places:
        for name, text in expected.items():
            if complaint := metrics.unknown(name) or _complaint(name, text):
                yield document.fault((*place, name), complaint)


def _complaint(name: str, text: str) -> str:
    """Says what is wrong with an expectation, as a sentence; empty where nothing is."""
    if name in metrics.CHANGES:
        return f"{name} is a change itself: expect one of time_ms, as in time_ms: -30%."
    try:
        expectation.parse(text)
    except ValueError as error:
        return str(error)
    return ""


def _find_target(experiment: Experiment, kernels: dict[str, Kernel]) -> Target | tuple[str, str]:
    if experiment.kernel not in kernels:
        return (
            "kernel",
            f"there is no kernel {quote(experiment.kernel)}{suggest(experiment.kernel, kernels)}.",
        )
    targets = kernels[experiment.kernel].targets
    if experiment.arch not in targets:
        hint = suggest(experiment.arch, targets)
        return "arch", f"kernel {experiment.kernel} has no target {quote(experiment.arch)}{hint}."
    return targets[experiment.arch]
