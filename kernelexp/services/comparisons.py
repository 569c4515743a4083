"""Two subjects compared: what keeps their figures from comparing, and which changed most."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from kernelexp.dossier.comparability import Conditions, different
from kernelexp.dossier.subjects import Subject
from kernelexp.evidence.profile.merging import bare
from kernelexp.facts import counters, metrics, widths
from kernelexp.facts.metrics import Kind
from kernelexp.judge import ranking
from kernelexp.judge.ranking import FLOOR, ComparedGroup, Difference, RankedFinding
from kernelexp.model.arm import Arm
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import AxisValue
from kernelexp.model.measurement import Effect
from kernelexp.model.text import one_line

KINDS: tuple[Kind, ...] = ("measured", "built", "emulated", "profiled", "published")

CLOCK = "smsp__cycles_elapsed.avg.per_second"
# What ncu's section SpeedOfLight has instead on Hopper.
GPC_CLOCK = "gpc__cycles_elapsed.avg.per_second"
# Under ncu's default clock control a GPU's clock differs by less from one profile to the next.
_CLOCK_TOLERANCE = 0.02

# Of each arm, measured against the baseline of its own run.
_RELATIVE = frozenset({"change_percent", "change_low_percent", "change_high_percent"})


class ComparisonOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The choice of differences to show."""

    floor: float = FLOOR
    """Relative change: 0.05 for 5%."""
    every: bool = False
    """Also counters that the table of counters does not know, and shares close to 0."""
    metric: re.Pattern[str] | None = None
    """Only metrics whose name or label it is found in, changed or not."""


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two that are compared."""

    label: str
    about: tuple[str, ...]
    evidence: tuple[str, ...]
    """Kinds."""
    conditions: dict[Kind, Conditions]


class NotShown(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of figures that are left out, by reason."""

    small: int
    """Changed by less than the floor."""
    near_zero: int
    """Shares that changed and are close to 0 on both sides."""
    same: int
    others: int
    """Changed, and only shown with `every`."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two subjects."""

    before: ComparedSide
    after: ComparedSide
    floor: float
    warnings: tuple[str, ...]
    unknown: dict[str, tuple[str, ...]]
    """Conditions that were not recorded, by whose they are: a label, or `both`."""
    axes: dict[str, tuple[AxisValue | None, AxisValue | None]]
    same_code: bool
    """Whether both have the same SASS, so that a difference of time is noise."""
    effect: Effect | None
    """The change of time, where both are of one run and `before` is its baseline."""
    groups: tuple[ComparedGroup, ...]
    not_shown: NotShown


def compare(before: Subject, after: Subject, options: ComparisonOptions) -> Compared:
    """Ranks what changed; UsageError where the two have no evidence of the same kind."""
    kinds, warnings = _kinds(before, after)
    result = [
        difference for kind in kinds for difference in _differences(before.arm, after.arm, kind)
    ]
    across = _across(before.arm, after.arm)
    if across:
        warnings.append(
            "built on one side and profiled on the other: only what the compiler and ncu both "
            "name is compared."
        )
    result += across
    if not result:
        raise UsageError(_nothing(before, after, warnings))
    if options.metric is not None:
        wanted = options.metric
        result = [difference for difference in result if _is_named(difference, wanted)]
        if not result:
            raise UsageError(
                f"no figure of both has a name in which {wanted.pattern!r} is found: "
                "kernelexp compare A B --all shows names."
            )
    findings = ranking.collapse(result)
    shown = [finding for finding in findings if _is_shown(finding, options)]
    hidden = [finding for finding in findings if not _is_shown(finding, options)]
    large = sum(_is_large(finding, options) for finding in hidden)
    near_zero = sum(ranking.is_near_zero(finding.difference) for finding in hidden)
    near_zero = 0 if options.every else near_zero
    return Compared(
        before=_side(before),
        after=_side(after),
        floor=options.floor,
        warnings=(*warnings, *_warnings(before, after, kinds)),
        unknown=_unknown(before, after, kinds),
        axes=_axes(before.arm, after.arm),
        same_code=bool(before.code) and before.code == after.code,
        effect=_effect(before, after),
        groups=ranking.rank(shown),
        not_shown=NotShown(
            small=sum(map(_is_changed, hidden)) - large - near_zero,
            near_zero=near_zero,
            same=sum(not _is_changed(finding) for finding in hidden),
            others=large,
        ),
    )


def _side(subject: Subject) -> ComparedSide:
    return ComparedSide(
        label=subject.label,
        about=subject.about,
        evidence=tuple(evidence_of(subject.arm)),
        conditions=subject.conditions,
    )


def _is_named(difference: Difference, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.search(difference.metric.name) or pattern.search(difference.metric.label))


def _is_shown(finding: RankedFinding, options: ComparisonOptions) -> bool:
    metric = finding.difference.metric
    if options.metric is not None or counters.is_headline(metric.label):
        return True
    is_known = metric.group != counters.OTHER
    return (is_known or options.every) and _is_large(finding, options)


def _is_large(finding: RankedFinding, options: ComparisonOptions) -> bool:
    return ranking.is_large(finding.difference, options.floor, near_zero=options.every)


def _is_changed(finding: RankedFinding) -> bool:
    return finding.difference.before != finding.difference.after


# ---- what compares -------------------------------------------------------------------------------


def _kinds(before: Subject, after: Subject) -> tuple[list[Kind], list[str]]:
    """The kinds of evidence that compare, and a sentence for each kind that does not."""
    one, other = before.arm, after.arm
    kinds = set(ranking.comparable(one, other))
    if one.published and other.published:
        kinds.add("published")
    warnings = []
    for kind in ("emulated", "measured", "profiled"):
        if kind in kinds or not (getattr(one, kind) and getattr(other, kind)):
            continue
        differs = [
            f"{name} {first or 'unknown'} and {second or 'unknown'}"
            for name, first, second in _pairs(before, after, kind)
            if first != second
        ]
        warnings.append(f"{kind} figures are left out: {', '.join(differs) or 'no result'}.")
    return [kind for kind in KINDS if kind in kinds], warnings


def _differences(one: Arm, other: Arm, kind: Kind) -> list[Difference]:
    result = ranking.between(one, other, kind, same=True)
    return [difference for difference in result if difference.metric.name not in _RELATIVE]


def _across(one: Arm, other: Arm) -> list[Difference]:
    """Compares what the compiler says of one and ncu of the other, under the same name of ncu's."""
    if (one.is_built and other.is_built) or (one.profiled and other.profiled):
        return []
    first, second = metrics.figures(one), metrics.figures(other)
    return [
        Difference(metric=figure.metric, before=figure.value, after=second[name].value)
        for name, figure in first.items()
        if name in second
        and {figure.metric.kind, second[name].metric.kind} == {"built", "profiled"}
    ]


def _nothing(before: Subject, after: Subject, warnings: Sequence[str]) -> str:
    if warnings:
        return warnings[0]
    kinds = [
        f"{subject.label} has {' and '.join(evidence_of(subject.arm)) or 'no'} evidence"
        for subject in (before, after)
    ]
    return f"nothing to compare: {kinds[0]}, {kinds[1]}."


def evidence_of(arm: Arm) -> list[str]:
    parts = {"built": arm.build or arm.program, "emulated": arm.emulated, "measured": arm.measured}
    parts |= {"profiled": arm.profiled, "published": arm.published}  # type: ignore[dict-item]
    return [kind for kind, evidence in parts.items() if evidence]


# ---- conditions ----------------------------------------------------------------------------------


def _pairs(before: Subject, after: Subject, kind: Kind) -> Iterator[tuple[str, str, str]]:
    first, second = before.conditions.get(kind, {}), after.conditions.get(kind, {})
    for name in {**first, **second}:
        yield name, first.get(name, ""), second.get(name, "")


def _warnings(before: Subject, after: Subject, kinds: Sequence[Kind]) -> Iterator[str]:
    one, other = before.arm, after.arm
    for subject in (before, after):
        yield from (f"{subject.label}: {words}." for words in subject.warnings)
        words = "" if subject.arm.counted else widths.summarize(subject.arm.emulated)
        if "emulated" in kinds and words:
            yield f"{subject.label}: {words}."
    yield from _kernels(one, other)
    for kind in kinds:
        both = (subject.conditions.get(kind, {}) for subject in (before, after))
        for name, first, second in different(*both):
            yield f"{kind} with different conditions: {name} {first} and {second}."
    if before.run and after.run and before.run != after.run:
        yield "measured in different runs: the times were not interleaved."
    if one.axes != other.axes and one.build and other.build:
        is_alike = one.build.opcodes and one.build.opcodes == other.build.opcodes
        # An axis of the launch has the same code by design.
        if is_alike and one.build.resources.threads == other.build.resources.threads:
            yield "both have as many of each SASS instruction: they may be the same code."
    yield from _grids(one, other)
    for clock in (CLOCK, GPC_CLOCK):
        was, now = metrics.read(clock, one), metrics.read(clock, other)
        if isinstance(was, float) and isinstance(now, float):
            if abs(now - was) > _CLOCK_TOLERANCE * was:
                clocks = f"{was / 1e9:.3f} and {now / 1e9:.3f} GHz"
                yield f"profiled at different SM clocks: {clocks}; times do not compare."
            return


def _kernels(one: Arm, other: Arm) -> Iterator[str]:
    """Compares kernels by the project's names where both have one, else by those that ncu
    printed."""
    if one.kernel and other.kernel:
        if (one.kernel, one.arch) != (other.kernel, other.arch):
            yield f"different kernels: {one.kernel}@{one.arch} and {other.kernel}@{other.arch}."
    elif one.profiled and other.profiled:
        names = [one_line(bare(evidence.entry)) for evidence in (one.profiled, other.profiled)]
        if all(names) and names[0] != names[1]:
            yield f"different kernels: {names[0]} and {names[1]}."


def _grids(one: Arm, other: Arm) -> Iterator[str]:
    """Warns, where a size is not recorded, of grids that may be of another one."""
    first, second = one.profiled, other.profiled
    if not first or not second or (first.size and second.size):
        return
    if first.grid and second.grid and first.grid != second.grid:
        a, b = (" x ".join(map(str, grid)) for grid in (first.grid, second.grid))
        yield f"profiled with grids of {a} and {b} CTAs: the problem may be of another size."


def _unknown(before: Subject, after: Subject, kinds: Sequence[Kind]) -> dict[str, tuple[str, ...]]:
    result: dict[str, list[str]] = {}
    for kind in kinds:
        for name, first, second in _pairs(before, after, kind):
            if not first or not second:
                whose = after.label if first else before.label if second else "both"
                result.setdefault(whose, []).append(name)
    return {whose: tuple(dict.fromkeys(names)) for whose, names in result.items()}


def _axes(one: Arm, other: Arm) -> dict[str, tuple[AxisValue | None, AxisValue | None]]:
    """An axis that a published arm's source does not tell of is not known to differ."""
    both = one.axes.keys() & other.axes.keys()
    return {
        axis: (one.axes.get(axis), other.axes.get(axis))
        for axis in {**one.axes, **other.axes}
        if (one.axes and other.axes) and not _is_same(one.axes.get(axis), other.axes.get(axis))
        if axis in both or not (one.published or other.published)
    }


def _is_same(one: AxisValue | None, other: AxisValue | None) -> bool:
    """Whether values are the same, also by type: an axis that was 1 and is now true is another
    one."""
    return type(one) is type(other) and one == other


def _effect(before: Subject, after: Subject) -> Effect | None:
    first, second = before.arm.measured, after.arm.measured
    if not first or not second or first.effect or before.run != after.run:
        return None
    return second.effect
