"""Words of the command line to what they name: experiments, variants, points, times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelexp.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.model import Point, Variant
    from kernelexp.project import Project


def chosen(project: Project, names: list[str], every: bool) -> list[str]:
    """The experiments that are named, or all."""
    if every == bool(names):
        raise UsageError("name the experiments to run, or say --all (kernelexp list shows them).")
    return list(project.experiments) if every else names


def parse_seconds(text: str) -> float:
    """30s, 2m or a number of seconds."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("s", "m") else (text, "s")
    try:
        seconds = float(number) * {"s": 1.0, "m": 60.0}[unit]
    except ValueError:
        raise UsageError(f"--budget {text!r} should be a time, as in 30s or 2m.") from None
    if seconds <= 0:
        raise UsageError(f"--budget {text!r} leaves no time to measure in.")
    return seconds


def parse_sets(project: Project, name: str, sets: list[str]) -> Point:
    """What --set says of an experiment's candidates."""
    from kernelexp.project import parse_point  # loads YAML: not for --help

    experiment = project.experiment(name)
    target = project.kernel(experiment.kernel).targets[experiment.arch]
    return parse_point(target, sets, "--set")


def parse_variant(project: Project, text: str) -> list[Variant]:
    """KERNEL, KERNEL@ARCH:axis=value,... or all variants of an experiment."""
    from kernelexp.project import parse_point  # loads YAML: not for --help

    if text in project.experiments:
        baseline, candidates = project.variants(project.experiments[text])
        return [baseline, *candidates]
    name, _, assignments = text.partition(":")
    kernel, _, arch = name.partition("@")
    variant = project.variant(kernel, arch or None)
    target = project.kernels[kernel].targets[variant.arch]
    point = parse_point(target, assignments.split(",") if assignments else [], text)
    return [project.variant(kernel, variant.arch, point)]


def changed(project: Project, variant: Variant, sets: list[str]) -> Variant:
    """A variant changed by --set."""
    from kernelexp.project import parse_point  # loads YAML: not for --help

    target = project.kernels[variant.kernel].targets[variant.arch]
    point = parse_point(target, sets, "--set")
    return project.variant(variant.kernel, variant.arch, variant.axes, point)
