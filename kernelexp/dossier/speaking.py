"""Which record speaks for a variant, and which for two variants that are compared.

Every page asks here, so that all of them show one time for one variant. A record of the variant as
it is now speaks before one of an earlier version; a measurement that decided before one that did
not; the full size before another; an experiment of the project before a sweep; of several, the
latest. Two variants that were interleaved in one
run are compared by that run, before any two runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from kernelexp.dossier import standing
from kernelexp.dossier.tree import Tree, arm_changes
from kernelexp.judge.verdict import SILENT
from kernelexp.logs import records
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import Variant
from kernelexp.model.record import Record, is_of, unusual
from kernelexp.project import Project

_READ_MAX = 400
"""Measured records that are looked through for one that is current, the latest first."""


_Weight: TypeAlias = tuple[bool, bool, bool, bool, str]
"""Current, decided, of the usual conditions, of an experiment that the project names; the run."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """A record's evidence on one variant."""

    record: Record
    arm: Arm
    changed: tuple[str, ...] = ()
    """What has changed since."""


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one variant over that of another."""

    value: float
    low: float | None = None
    high: float | None = None
    """The interval's ends; None where the two were not interleaved."""
    how: str
    """How it was taken, in a few words."""


def of_variant(project: Project, wanted: Variant, tree: Tree | None = None) -> Recorded | None:
    """The measurement that speaks for a variant, else what was published of it."""
    tree = tree or Tree(project.root)
    best: tuple[_Weight, Recorded] | None = None
    for record in _measured(project, wanted, tree):
        arm = _arm(record, wanted)
        if arm and arm.measured:
            recorded = _recorded(wanted, record, arm, tree)
            weight = _weight(project, record, recorded)
            if best is None or weight > best[0]:
                best = weight, recorded
            if all(best[0][:4]):
                break
    return best[1] if best else _published(project, wanted, tree)


def of_pair(
    project: Project, before: Variant, after: Variant, tree: Tree | None = None
) -> tuple[Recorded | None, Recorded | None]:
    """Returns the records that compare two variants: one run that timed both, else one of each.

    Within one run, the times agree with the ratio of its pairs.
    """
    tree = tree or Tree(project.root)
    best: tuple[_Weight, tuple[Recorded, Recorded]] | None = None
    for record in _measured(project, after, tree):
        one, other = _arm(record, before), _arm(record, after)
        if one and other and one.measured and other.measured:
            sides = (_recorded(before, record, one, tree), _recorded(after, record, other, tree))
            weight = min(_weight(project, record, side) for side in sides)
            if best is None or weight > best[0]:
                best = weight, sides
            if all(best[0][:4]):
                break
    if best:
        return best[1]
    return of_variant(project, before, tree), of_variant(project, after, tree)


def ratio(before: Recorded | None, after: Recorded | None) -> Ratio | None:
    """Time after / before; None where one has no time, or only one of them is published."""
    if before is None or after is None:
        return None
    one, other = before.arm, after.arm
    if one.measured and other.measured:
        if before.record.run == after.record.run and (result := _interleaved(one, other)):
            return result
        if one.measured.time_us and other.measured.time_us:
            value = other.measured.time_us / one.measured.time_us
            return Ratio(value=value, how="measured in separate runs")
    elif not one.measured and not other.measured and one.published and other.published:
        if one.published.time_ms and other.published.time_ms:
            return Ratio(value=other.published.time_ms / one.published.time_ms, how="as published")
    return None


def _interleaved(before: Arm, after: Arm) -> Ratio | None:
    """Compares by the pairs of one run: directly where one is its baseline, else through that."""
    one = before.measured.effect if before.measured else None
    other = after.measured.effect if after.measured else None
    if other and not one:
        how = "interleaved in one run"
        return Ratio(value=other.ratio, low=other.low, high=other.high, how=how)
    if one and not other:
        how = "interleaved in one run"
        return Ratio(value=1 / one.ratio, low=1 / one.high, high=1 / one.low, how=how)
    if one and other:
        return Ratio(value=other.ratio / one.ratio, how="in one run, through its baseline")
    return None


def _measured(project: Project, variant: Variant, tree: Tree) -> Iterator[Record]:
    """Measured records of the variant's kernel and architecture, the latest first, without those
    that can't be relied on."""
    for number, record in enumerate(records.measured(project.root)):
        if number >= _READ_MAX:
            return
        if (record.kernel, record.arch) != (variant.kernel, variant.arch):
            continue
        if not any(tree.doubts(record, candidate) for candidate in record.candidates):
            yield record


def _arm(record: Record, variant: Variant) -> Arm | None:
    """The arm of a record that is exactly this variant."""
    axes = dict(variant.axes)
    return next(
        (arm for arm in record.arms if arm.axes.keys() == axes.keys() and is_of(axes, arm)), None
    )


def _recorded(variant: Variant, record: Record, arm: Arm, tree: Tree) -> Recorded:
    changed = tuple(arm_changes(variant, arm, record.host_files, tree, record.compiler))
    return Recorded(record=record, arm=arm, changed=changed)


def _weight(project: Project, record: Record, recorded: Recorded) -> _Weight:
    verdicts = {
        candidate.verdict.status
        for candidate in record.candidates
        if candidate.arm is recorded.arm or recorded.arm is record.baseline
    }
    decides = bool(verdicts - set(SILENT))
    is_named = record.experiment in project.experiments
    return not recorded.changed, decides, not unusual(record), is_named, record.run


def _published(project: Project, wanted: Variant, tree: Tree) -> Recorded | None:
    """Returns the latest published result of a variant in an experiment that names it."""
    result: list[Recorded] = []
    for name, experiment in project.experiments.items():
        if (experiment.kernel, experiment.arch) == (wanted.kernel, wanted.arch):
            baseline, candidates = project.variants(experiment)
            if wanted in (baseline, *candidates):
                result += _published_in(project, name, baseline, wanted, tree)
    return max(result, key=lambda recorded: recorded.record.run, default=None)


def _published_in(
    project: Project, name: str, baseline: Variant, wanted: Variant, tree: Tree
) -> Iterator[Recorded]:
    for spoken in standing.of_experiment(project, name, tree).candidates:
        # By its place: published arms name few axes, so that they are of many variants.
        sides = {wanted == baseline: 0, wanted == spoken.variant: 1}
        if True in sides and spoken.record and spoken.arm:
            arm = (spoken.record.baseline, spoken.arm)[sides[True]]
            if arm.published:
                yield Recorded(record=spoken.record, arm=arm, changed=spoken.changed)
