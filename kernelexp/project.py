"""Find and load experiments.yaml; every mistake in it is a sentence with its place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kernelexp.arch import ARCHITECTURES
from kernelexp.errors import ConfigurationError, UsageError
from kernelexp.model import (
    Axis,
    AxisValue,
    Experiment,
    Kernel,
    Point,
    ProjectFile,
    Target,
    Variant,
    spell,
    spell_point,
)
from kernelexp.yamlfile import Document, Fault, syntax_fault

FILE = "experiments.yaml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_AXIS_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A folder with experiments.yaml, loaded and found right."""

    root: Path
    kernels: dict[str, Kernel]
    experiments: dict[str, Experiment]
    """All by id, the steps of the history too."""
    history: tuple[str, ...]
    """The ids of the committed steps, in order."""

    def experiment(self, name: str) -> Experiment:
        """The experiment or step `name`; UsageError with the nearest name if there is none."""
        if name not in self.experiments:
            raise UsageError(f"there is no experiment {name!r}{_suggest(name, self.experiments)}.")
        return self.experiments[name]

    def kernel(self, name: str) -> Kernel:
        """The kernel `name`; UsageError with the nearest name if there is none."""
        if name not in self.kernels:
            raise UsageError(f"there is no kernel {name!r}{_suggest(name, self.kernels)}.")
        return self.kernels[name]

    def variant(self, kernel: str, arch: str | None, *points: Point) -> Variant:
        """The variant at the defaults, changed by each of `points` in turn.

        Without `arch` the kernel's only architecture. UsageError names what does not exist.
        """
        targets = self.kernel(kernel).targets
        if arch is None and len(targets) > 1:
            raise UsageError(
                f"kernel {kernel} has several architectures: say which, as in "
                f"{kernel}@{next(iter(targets))}."
            )
        arch = arch or next(iter(targets))
        if arch not in targets:
            raise UsageError(f"kernel {kernel} has no {arch}{_suggest(arch, targets)}.")
        target = targets[arch]
        axes = {name: axis.default for name, axis in target.axes.items()}
        for point in points:
            for _, complaint in _check_point(point, target.axes):
                raise UsageError(complaint)
            axes.update(point)
        return Variant(
            kernel=kernel,
            arch=arch,
            source=f"variants/{kernel}/{target.source}",
            axes=axes,
            flags=tuple(target.flags),
        )

    def variants(self, experiment: Experiment) -> tuple[Variant, tuple[Variant, ...]]:
        """Baseline and candidates of an experiment."""
        baseline = self.variant(experiment.kernel, experiment.arch, experiment.baseline)
        candidates = tuple(
            self.variant(experiment.kernel, experiment.arch, experiment.baseline, point)
            for point in experiment.candidates
        )
        return baseline, candidates

    def label(self, variant: Variant) -> str:
        """The variant by what it departs from the defaults in."""
        axes = self.kernels[variant.kernel].targets[variant.arch].axes
        departs = {k: v for k, v in variant.axes.items() if v != axes[k].default}
        return f"{variant.kernel}@{variant.arch}: {spell_point(departs)}"


def find(start: Path) -> Path:
    """The experiments.yaml of `start` (the file, its folder, or a folder below it)."""
    if start.is_file():
        return start.resolve()
    if not start.exists():
        raise UsageError(f"there is no file or folder {start}.")
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / FILE).is_file():
            return folder / FILE
    raise UsageError(
        f"no {FILE} in {start.resolve()} nor above it: run kernelexp in a project, "
        "or name one with --project."
    )


def load(start: Path) -> Project:
    """The project at or above `start`; ConfigurationError with every fault of its file."""
    path = find(start)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path.name} can't be read: {error}.") from None
    try:
        document = Document(text)
    except yaml.MarkedYAMLError as error:
        raise ConfigurationError(syntax_fault(error).sentence(path.name)) from None
    faults = [*document.duplicates, *_check_shape(document)]
    written = _convert_parts(document.value)
    faults.extend(_check_meaning(document, written, path.parent))
    if faults:
        raise ConfigurationError(*(fault.sentence(path.name) for fault in sorted(set(faults))))
    return Project(
        root=path.parent,
        kernels=written.kernels,
        experiments={**written.experiments, **written.history},
        history=tuple(written.history),
    )


def schema() -> dict[str, Any]:
    """The JSON Schema of experiments.yaml, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(ProjectFile),
    }


# ---- shape: keys and types, by the schema --------------------------------------------------------


def _check_shape(document: Document) -> Iterator[Fault]:
    try:
        msgspec.convert(document.value, ProjectFile)
        return
    except msgspec.ValidationError:
        pass  # it stops at the first fault; jsonschema, slower to import, finds them all
    import jsonschema

    for error in jsonschema.Draft202012Validator(schema()).iter_errors(document.value):
        yield from _shape_faults(document, error)


def _shape_faults(document: Document, error: Any) -> Iterator[Fault]:
    path = list(error.absolute_path)
    if error.validator == "additionalProperties":
        allowed = error.schema["properties"]
        for key in error.instance:
            if key not in allowed:
                message = f"unknown key{_suggest(key, allowed)}."
                yield document.fault([*path, key], message)
    elif error.validator == "required":
        for key in error.validator_value:
            if key not in error.instance:
                yield document.fault(path, f"{key!r} is missing.")
    elif error.validator in ("enum", "const"):
        allowed = error.schema.get("enum", [error.schema.get("const")])
        yield document.fault(path, f"{error.instance!r} is not allowed; allowed: {_join(allowed)}.")
    else:
        wanted = _describe(error.schema)
        yield document.fault(path, f"this should be {wanted}, not {_name(error.instance)}.")


def _describe(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_describe(option) for option in schema["anyOf"]))
    if "$ref" in schema:
        return "a mapping"
    names = schema.get("type", "something else")
    return " or ".join(_TYPES.get(n, n) for n in ([names] if isinstance(names, str) else names))


_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}


def _name(value: object) -> str:
    kinds: dict[type, str] = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "a mapping",
        type(None): "nothing",
    }
    return kinds.get(type(value), f"a {type(value).__name__}")


def _convert_parts(value: Any) -> ProjectFile:
    """Each kernel and experiment that is right by itself, so that their meaning is checked too."""

    def part(name: str, kind: Any) -> dict[str, Any]:
        found = {}
        section = value.get(name) if isinstance(value, dict) else None
        for key, item in section.items() if isinstance(section, dict) else ():
            try:
                found[key] = msgspec.convert(item, kind)
            except msgspec.ValidationError:
                continue
        return found

    return ProjectFile(
        version=1,
        kernels=part("kernels", Kernel),
        experiments=part("experiments", Experiment),
        history=part("history", Experiment),
    )


# ---- meaning: names that refer to something, values that exist -----------------------------------


def _check_meaning(document: Document, written: ProjectFile, root: Path) -> Iterator[Fault]:
    for name, kernel in written.kernels.items():
        yield from _check_kernel(document, name, kernel, root)
    sections = {"experiments": written.experiments, "history": written.history}
    for section, experiments in sections.items():
        for key, experiment in experiments.items():
            path = (section, key)
            if not _NAME.fullmatch(key):
                yield document.fault(path, "an id is letters, digits, '.', '_' and '-'.")
            if section == "history" and key in written.experiments:
                yield document.fault(path, "an experiment has this id too; ids are unique.")
            yield from _check_experiment(document, path, experiment, written.kernels)


def _check_kernel(document: Document, name: str, kernel: Kernel, root: Path) -> Iterator[Fault]:
    folder = root / "variants" / name
    if not (folder / "problem.py").is_file():
        yield document.fault(("kernels", name), f"there is no variants/{name}/problem.py.")
    if not kernel.targets:
        yield document.fault(("kernels", name, "targets"), "a kernel has at least one target.")
    for arch, target in kernel.targets.items():
        path = ("kernels", name, "targets", arch)
        if arch not in ARCHITECTURES:
            yield document.fault(path, f"unknown architecture{_suggest(arch, ARCHITECTURES)}.")
        if not (folder / target.source).is_file():
            message = f"there is no variants/{name}/{target.source}."
            yield document.fault((*path, "source"), message)
        for axis_name, axis in target.axes.items():
            axis_path = (*path, "axes", axis_name)
            for message in _check_axis(axis_name, axis):
                yield document.fault(axis_path, message)


def _check_axis(name: str, axis: Axis) -> Iterator[str]:
    if not _AXIS_NAME.fullmatch(name):
        yield "an axis is lower-case letters, digits and '_', since it becomes a macro."
    if len({spell(value) for value in axis.values}) != len(axis.values):
        yield "a value is listed twice."
    if not axis.values:
        yield "an axis has at least one value."
    elif not _contains(axis.values, axis.default):
        yield f"the default {spell(axis.default)} is not among the values {_join(axis.values)}."


def _check_experiment(
    document: Document, path: tuple[str, str], experiment: Experiment, kernels: dict[str, Kernel]
) -> Iterator[Fault]:
    target = _find_target(experiment, kernels)
    if not isinstance(target, Target):
        # A kernel that is in the file but not right by itself has its own faults already.
        if experiment.kernel not in document.value["kernels"] or experiment.kernel in kernels:
            yield document.fault((*path, target[0]), target[1])
        return
    for axis, message in _check_point(experiment.baseline, target.axes):
        yield document.fault((*path, "baseline", axis), message)
    several = isinstance(experiment.candidate, list)
    if not experiment.candidates:
        yield document.fault((*path, "candidate"), "an experiment has at least one candidate.")
    for index, point in enumerate(experiment.candidates):
        place = (*path, "candidate", index) if several else (*path, "candidate")
        complaints = list(_check_point(point, target.axes))
        for axis, message in complaints:
            yield document.fault((*place, axis), message)
        defaults = {name: axis.default for name, axis in target.axes.items()}
        baseline = {**defaults, **experiment.baseline}
        if not complaints and {**baseline, **point} == baseline:
            yield document.fault(place, "this changes nothing against the baseline.")


def _find_target(experiment: Experiment, kernels: dict[str, Kernel]) -> Target | tuple[str, str]:
    if experiment.kernel not in kernels:
        return (
            "kernel",
            f"there is no kernel {experiment.kernel!r}{_suggest(experiment.kernel, kernels)}.",
        )
    targets = kernels[experiment.kernel].targets
    if experiment.arch not in targets:
        hint = _suggest(experiment.arch, targets)
        return "arch", f"kernel {experiment.kernel} has no target {experiment.arch!r}{hint}."
    return targets[experiment.arch]


def _check_point(point: Point, axes: Mapping[str, Axis]) -> Iterator[tuple[str, str]]:
    """Axis and complaint, for each axis or value of `point` that does not exist."""
    for name, value in point.items():
        if name not in axes:
            yield name, f"unknown axis {name!r}{_suggest(name, axes)}."
        elif not _contains(axes[name].values, value):
            allowed = axes[name].values
            hint = _suggest(spell(value), [spell(each) for each in allowed])
            yield name, f"axis {name!r} has no value {spell(value)!r}{hint}."


def _contains(values: Iterable[AxisValue], value: AxisValue) -> bool:
    return any(type(each) is type(value) and each == value for each in values)  # true is not 1


def parse_point(target: Target, assignments: Iterable[str], where: str) -> Point:
    """`stages=4` texts to a point on the target's axes; UsageError says what does not exist."""
    point: Point = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"{where}: {assignment!r} should be AXIS=VALUE, as in stages=4.")
        values = target.axes[name].values if name in target.axes else []
        point[name] = next((value for value in values if spell(value) == text), text)
    for _, complaint in _check_point(point, target.axes):
        raise UsageError(f"{where}: {complaint}")
    return point


def _suggest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{hint} Known: {_join(names)}" if close else f"{hint} known: {_join(names)}"


def _join(values: Iterable[AxisValue]) -> str:
    return ", ".join(spell(value) for value in values) or "none"
