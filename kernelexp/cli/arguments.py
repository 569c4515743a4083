"""Words of the command line to what they name: experiments, variants, points, times, numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.model.arm import Isa
    from kernelexp.model.experiment import Variant
    from kernelexp.model.limits import Limits
    from kernelexp.model.spelling import Point
    from kernelexp.project import Project


def chosen(project: Project, names: list[str], every: bool) -> list[str]:
    """The experiments that are named, or all; the only one needs no name."""
    if not names and len(project.experiments) == 1:
        return list(project.experiments)
    if every == bool(names):
        raise UsageError("name the experiments to run, or use --all (kernelexp show lists them).")
    return list(project.experiments) if every else [project.id_of(name) for name in names]


def parse_seconds(text: str, option: str) -> float:
    """500ms, 30s, 2m, 1h or a number of seconds; `option` is what a mistake is said of."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", text)
    if match is None:
        raise UsageError(f"{option} {text!r} should be a time, as in 30s, 2m or 1h.")
    seconds = float(match[1]) * _SECONDS[match[2] or "s"]
    if not 0 < seconds < 1e7:
        raise UsageError(f"{option} {text!r} should be greater than zero, and less than 100 days.")
    return seconds


_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def refuse_two_forms(json: bool, markdown: bool) -> None:
    """UsageError where both are asked for, before any work is done."""
    if json and markdown:
        raise UsageError("--json and --markdown do not go together: give one of them.")


def parse_limits(texts: list[str] | None) -> Limits:
    """Parses --limit; limits that it does not name keep their values."""
    from kernelexp.model.limits import Limits  # loads msgspec: not for --help

    changed = {}
    names = [name.removesuffix("_s") for name in Limits.__struct_fields__]
    for text in texts or []:
        name, _, time = text.partition("=")
        if name not in names:
            known = ", ".join(f"{item}=TIME" for item in names)
            raise UsageError(f"--limit {text!r} should be one of {known}, as in build=20m.")
        changed[f"{name}_s"] = parse_seconds(time, f"--limit {name}")
    return Limits(**changed)


def parse_isas(text: str) -> tuple[Isa, ...]:
    """The instruction sets that --isa names; UsageError where it names none."""
    from kernelexp.evidence.emulate.emulated import BOTH

    known: dict[str, tuple[Isa, ...]] = {isa: (isa,) for isa in BOTH} | {"both": BOTH}
    if text not in known:
        raise UsageError(f"--isa is one of {', '.join(known)}, not {text!r}.")
    return known[text]


def parse_sets(project: Project, name: str, sets: list[str]) -> Point:
    """Parses --set for an experiment's candidates."""
    from kernelexp.project import parse_point  # loads YAML: not for --help

    experiment = project.experiment(name)
    target = project.kernel(experiment.kernel).targets[experiment.arch]
    return parse_point(target, sets, "--set")


def parse_variants(project: Project, texts: list[str], sets: list[str] | None) -> list[Variant]:
    """Variants as they are named on the command line, each changed by --set."""
    variants = [variant for text in texts for variant in _parse_variant(project, text)]
    return [_changed(project, variant, sets) for variant in variants] if sets else variants


def _parse_variant(project: Project, text: str) -> list[Variant]:
    """KERNEL, KERNEL@ARCH:axis=value,... or all variants of an experiment."""
    from kernelexp.project import parse_variant  # loads YAML: not for --help

    text = project.id_of(text)
    if text in project.experiments:
        baseline, candidates = project.variants(project.experiments[text])
        return [baseline, *candidates]
    return [parse_variant(project, text)]


def _changed(project: Project, variant: Variant, sets: list[str]) -> Variant:
    """A variant changed by --set."""
    from kernelexp.project import parse_point  # loads YAML: not for --help

    target = project.kernels[variant.kernel].targets[variant.arch]
    point = parse_point(target, sets, "--set")
    return project.variant(variant.kernel, variant.arch, variant.axes, point)


def parse_pairs(texts: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Names, as Python spells them, and what stands after the equals sign."""
    from kernelexp.services.adopt.entry import python_name

    pairs = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} {text!r} should be NAME=..., with a parameter's name.")
        pairs.append((python_name(name.strip()), value.strip()))
    return pairs


def parse_numbers(texts: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Pairs of a name and a number, several of which may stand in one text: M=512,N=256."""
    return parse_pairs([part for text in texts or () for part in text.split(",")], option)


def parse_number(text: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise UsageError(f"{text!r} should be a number, as the value of a parameter.")


def parse_whole(text: str) -> int:
    value = parse_number(text)
    if not isinstance(value, int):
        raise UsageError(f"{text!r} should be a whole number.")
    return value


def parse_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """1-3,7,9- as pairs."""
    result = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise UsageError(f"--launches {text!r} should be like 3, 1-3 or 5-.")
        if last and int(last) < int(first):
            raise UsageError(f"--launches {text!r}: {part} ends before it begins.")
        result.append((int(first), int(last) if last else (1 << 62) if dash else int(first)))
    return tuple(result)
