"""What a project's files may hold: keys and types, by the JSON Schema of what they become; names
that refer to something, values that exist."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from kernelexp.facts import expectation, metrics
from kernelexp.logs import decisions
from kernelexp.logs.decisions import Decision
from kernelexp.model.errors import join, suggest
from kernelexp.model.experiment import (
    SENTENCES,
    SWEEP,
    Experiment,
    Kernel,
    Point,
    ProjectFile,
    Target,
    is_name,
    is_sweep,
    spell,
)
from kernelexp.model.text import quote
from kernelexp.project import kernels as checks
from kernelexp.project.faults import Fault, KeyPath
from kernelexp.project.kernels import check_point, same
from kernelexp.project.yamlfile import Document, Wanted, wanted

File: TypeAlias = Literal["project", "experiment"]
Section: TypeAlias = Literal["experiments", "history"]
T = TypeVar("T")


KINDS: dict[File, type[msgspec.Struct]] = {"project": ProjectFile, "experiment": Experiment}


@functools.cache
def schema(of: File = "project") -> Mapping[str, Any]:
    """The JSON Schema of experiments.yaml, or of a file with one experiment; for editors."""
    return schema_of(KINDS[of])


@functools.cache
def schema_of(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The JSON Schema of a file that becomes a `kind`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(kind),
    }


@functools.cache
def scalars(kind: type[msgspec.Struct]) -> Wanted:
    """Returns where a file that becomes a `kind` has text, and where numbers."""
    definitions = schema_of(kind)["$defs"]
    return wanted(definitions[kind.__name__], definitions)


def check(document: Document, kind: type[msgspec.Struct]) -> Iterator[Fault]:
    """Yields the faults that keep the document from becoming a `kind`."""
    try:
        msgspec.convert(document.value, kind)
        return
    except msgspec.ValidationError as error:
        first = str(error)  # it stops at the first fault; jsonschema, slower to import, finds all
    import jsonschema

    faults = False
    for mismatch in jsonschema.Draft202012Validator(schema_of(kind)).iter_errors(document.value):
        for fault in _spell_out(document, mismatch):
            yield fault
            faults = True
    if not faults:
        yield document.fault((), f"{first}.")


def convert(value: Any, kind: type[T]) -> T | None:
    """The value as `kind`; None where it does not fit, which `check` has a fault for."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None


def _spell_out(document: Document, error: Any) -> Iterator[Fault]:
    path = list(error.absolute_path)
    value = error.instance
    if error.validator == "additionalProperties":
        allowed = error.schema["properties"]
        for key in value:
            if key not in allowed:
                yield document.fault([*path, key], f"unknown key{suggest(key, allowed)}.")
    elif error.validator == "required":
        for key in error.validator_value:
            if key not in value:
                yield document.fault(path, f"{key!r} is missing.")
    elif error.validator == "anyOf" and _nearest(error):
        for nearest_error in _nearest(error):
            yield from _spell_out(document, nearest_error)
    elif error.validator in ("pattern", "maxLength"):
        # The schema of a mapping's keys has the key as its value, and the mapping's path.
        place = [*path, value] if error.relative_schema_path[-2] == "propertyNames" else path
        yield document.fault(place, _refuse_text(error))
    elif error.validator == "maxItems":
        message = f"this has {len(value)} items; at most {error.validator_value} are allowed."
        yield document.fault(path, message)
    elif error.validator == "enum" and not isinstance(value, dict | list):
        spelled = [spell(item) for item in error.validator_value]
        shown = quote(value) if isinstance(value, str) else value
        yield document.fault(path, f"{shown} is not allowed; allowed: {join(spelled)}.")
    else:
        message = f"this should be {_describe(error.schema)}, not {_name(value)}."
        yield document.fault(path, message)


def _nearest(error: Any) -> Sequence[Any]:
    """The faults of the first option that is of the value's own type."""
    options: dict[int, list[Any]] = {}
    for suberror in error.context:
        options.setdefault(suberror.relative_schema_path[0], []).append(suberror)
    for faults in options.values():
        if not any(fault.validator == "type" and not fault.relative_path for fault in faults):
            return faults
    return []


def _refuse_text(error: Any) -> str:
    if error.validator == "maxLength":
        most = error.validator_value
        return f"this has {len(error.instance)} characters; at most {most} are allowed."
    return f"{quote(error.instance)} is not allowed: {SENTENCES[error.validator_value]}."


_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}


def _describe(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_describe(option) for option in schema["anyOf"]))
    if "enum" in schema:
        return join(spell(value) for value in schema["enum"])
    return _TYPES.get(schema.get("type", ""), "a mapping")


def _name(value: object) -> str:
    kinds: dict[type, str] = {
        bool: "true or false",
        int: "a whole number",
        str: "text",
        list: "a list",
        dict: "a mapping",
    }
    return kinds.get(type(value), "nothing")


class ProjectEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment or step as it is written, and where."""

    id: str
    section: Section
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


def check_meaning(
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
            yield from checks.check(main, name, kernel)
            if sources:
                yield from checks.check_files(main, name, kernel, root)
    defined: dict[str, str] = {}
    for entry in entries:
        if message := _refuse_id(entry, defined):
            yield entry.document.fault(entry.path, message)
        defined.setdefault(entry.id, entry.place)
        if entry.experiment:
            yield from _check_experiment(main, entry, entry.experiment, kernels)


def fill_baselines(
    entries: Iterable[ProjectEntry], kernels: Mapping[str, Kernel], root: Path
) -> tuple[list[ProjectEntry], list[Fault]]:
    """The entries with the baselines that were left out; a fault for each that can't be taken."""
    filled: list[ProjectEntry] = []
    faults: list[Fault] = []
    decided: Sequence[Decision] | None = None
    for entry in entries:
        if entry.experiment and not entry.names_baseline:
            decided = decisions.read_all(root)[0] if decided is None else decided
            point, fault = _accepted(entry, decided, kernels)
            faults += [fault] if fault else []
            experiment = msgspec.structs.replace(entry.experiment, baseline=point)
            entry = msgspec.structs.replace(entry, experiment=experiment)
        filled.append(entry)
    return filled, faults


def _accepted(
    entry: ProjectEntry, decided: Sequence[Decision], kernels: Mapping[str, Kernel]
) -> tuple[Point, Fault | None]:
    """The baseline as a point, without the axes that are at their default."""
    assert entry.experiment
    kernel, arch = entry.experiment.kernel, entry.experiment.arch
    axes = decisions.baseline_of(decided, entry.id, kernel, arch)
    target = kernels[kernel].targets.get(arch) if kernel in kernels else None
    if axes is None or target is None:
        return {}, None  # an unknown target has a fault of its own
    for _, complaint in check_point(axes, target.axes):
        message = (
            f"without a baseline this starts from the variant that was accepted last, which is "
            f"none any more ({complaint.rstrip('.')}): write a baseline."
        )
        return {}, entry.document.fault(entry.path, message)
    return {
        name: value
        for name, value in axes.items()
        if (type(value), value) != (type(target.axes[name].default), target.axes[name].default)
    }, None


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
    return expectation.complaint(text)


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
