"""The service of compare with records: their inputs, and the figures that differ."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelexp.facts import metrics
from kernelexp.judge import ranking
from kernelexp.logs import sources
from kernelexp.model.arm import Arm
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import AxisValue, spell_point
from kernelexp.model.record import Record, is_of


class DifferingArm(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between the arms of one name: pairs of before and after."""

    name: str
    axes: dict[str, tuple[AxisValue | None, AxisValue | None]]
    flags: tuple[str, str] | None
    figures: dict[str, tuple[metrics.Value | None, metrics.Value | None]]


class Differing(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two records, pairs of before and after; empty parts are the same."""

    runs: tuple[str, str]
    facts: dict[str, tuple[str, str]]
    """Compiler, tool, commit, machine, size, margin."""
    files: dict[str, str]
    """A unified diff by path; a sentence where a side's content is lost."""
    arms: tuple[DifferingArm, ...]
    unpaired: tuple[str, ...]
    """Candidates that only one of the records has."""


class RecordDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two records, and the figures that differ in each pair of arms."""

    differing: Differing
    figures: tuple[Sequence[ranking.Difference], ...]


def compare(root: Path, one: Record, other: Record) -> RecordDifference:
    """Baseline with baseline, and each candidate with the one of the same axes, else the same
    place."""
    pairs, unpaired = _pair(one, other)
    facts = {
        "kernel": (f"{one.kernel}@{one.arch}", f"{other.kernel}@{other.arch}"),
        "experiment": (one.experiment, other.experiment),
        "compiler": (one.compiler, other.compiler),
        "kernelexp": (one.tool, other.tool),
        "commit": (_commit(one), _commit(other)),
        "device": (one.device, other.device),
        "size": (one.size, other.size),
        "judged by": _judged(one, other),
        "margin": (f"{one.margin:g}", f"{other.margin:g}"),
    }
    different = tuple(_differences(first, second) for _, first, second in pairs)
    differing = Differing(
        runs=(one.run, other.run),
        facts={name: values for name, values in facts.items() if values[0] != values[1]},
        files=dict(_files(root, one, other)),
        arms=tuple(_arms(*pair, own) for pair, own in zip(pairs, different, strict=True)),
        unpaired=unpaired,
    )
    return RecordDifference(differing=differing, figures=different)


def _pair(one: Record, other: Record) -> tuple[list[tuple[str, Arm, Arm]], tuple[str, ...]]:
    pairs = [("baseline", one.baseline, other.baseline)]
    left = list(range(len(other.candidates)))
    lone = []
    for name, candidate in one.judged.items():
        same = [i for i in left if is_of(candidate.arm.axes, other.candidates[i].arm)]
        if not same and len(one.candidates) == len(other.candidates) == 1:
            same = [*left]
        if same:
            left.remove(same[0])
            pairs.append((name, candidate.arm, other.candidates[same[0]].arm))
        else:
            lone.append(f"{one.run}: {spell_point(candidate.arm.axes)}")
    lone += [f"{other.run}: {spell_point(other.candidates[i].arm.axes)}" for i in left]
    return pairs, tuple(lone)


def differs(one: Arm, other: Arm, axis: str) -> bool:
    """Whether an axis of either arm differs; one that a published arm's source does not mention is
    not known to."""
    if axis in one.axes and axis in other.axes:
        return not is_of(one.axes, Arm(axes={axis: other.axes[axis]}))
    return not (one.published or other.published)


def _arms(name: str, one: Arm, other: Arm, different: Sequence[ranking.Difference]) -> DifferingArm:
    axes = {
        axis: (one.axes.get(axis), other.axes.get(axis))
        for axis in {**one.axes, **other.axes}
        if differs(one, other, axis)
    }
    return DifferingArm(
        name=name,
        axes=axes,
        flags=(" ".join(one.flags), " ".join(other.flags)) if one.flags != other.flags else None,
        figures={own.metric.name: (own.before, own.after) for own in different},
    )


def _commit(record: Record) -> str:
    if record.git is None:
        return "no git"
    return f"{record.git.commit[:10]}{', dirty' if record.git.dirty else ''}"


def _judged(one: Record, other: Record) -> tuple[str, str]:
    """Returns what the verdicts of both are about; empty where one of them timed nothing."""
    if one.measurement is None or other.measurement is None:
        return "", ""
    first, second = one.measurement.printed, other.measurement.printed
    return first.figure if first else "time", second.figure if second else "time"


def _files(root: Path, one: Record, other: Record) -> Iterator[tuple[str, str]]:
    first, second = sources.of_record(one), sources.of_record(other)
    for name in sorted({*first, *second}):
        # From before runs recorded their Python files.
        lacking = (
            record.run for record in (one, other) if name.endswith(".py") and not record.host_files
        )
        if run := next(lacking, ""):
            yield name, f"run {run} did not record this file."
        elif first.get(name) != second.get(name):
            try:
                before = _lines(root, one, name, first)
                after = _lines(root, other, name, second)
            except UsageError as lost:
                yield name, str(lost)
                continue
            labels = (f"{one.run}/{name}", f"{other.run}/{name}")
            yield name, "\n".join(difflib.unified_diff(before, after, *labels, lineterm=""))


def _lines(root: Path, record: Record, name: str, files: dict[str, str]) -> list[str]:
    if name not in files:
        return []
    return sources.content(root, record, name).decode(errors="replace").splitlines()


def _differences(one: Arm, other: Arm) -> Sequence[ranking.Difference]:
    kinds = ranking.comparable(one, other)
    return ranking.between(one, other, *kinds) if kinds else ()
