"""A comparison of two subjects as values and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kernelexp.dossier.comparability import Conditions
from kernelexp.dossier.subjects import Subject
from kernelexp.facts import counters
from kernelexp.facts.counters import Better
from kernelexp.facts.differences import Difference
from kernelexp.facts.metrics import Kind, Value
from kernelexp.judge import ranking
from kernelexp.judge.ranking import Group
from kernelexp.model.axes import AxisValue, spell
from kernelexp.model.measurement import Effect
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Heading, Span, paragraph, table
from kernelexp.services.comparisons import Comparison, evidence_of


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two that are compared."""

    label: str
    about: tuple[str, ...]
    evidence: tuple[str, ...]
    """Kinds."""
    conditions: dict[Kind, Conditions]


class ComparedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of both."""

    metric: str
    label: str
    unit: str
    better: Better
    before: Value
    after: Value
    change: float | None
    """Relative, 0.1 for 10% more; None where it is not a number."""
    direction: str
    """`better`, `worse`, or empty where neither is known."""
    others: tuple[str, ...]
    """Further metrics of the same counter."""


class ComparedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Figures about one subject, of one kind of evidence, largest change first."""

    group: str
    kind: str
    findings: tuple[ComparedFigure, ...]


class NotShown(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of figures that are left out, by reason."""

    small: int
    near_zero: int
    same: int
    others: int


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two subjects."""

    before: ComparedSide
    after: ComparedSide
    floor: float
    warnings: tuple[str, ...]
    unknown: dict[str, tuple[str, ...]]
    axes: dict[str, tuple[AxisValue | None, AxisValue | None]]
    same_code: bool
    """Whether both have the same SASS."""
    effect: Effect | None
    groups: tuple[ComparedGroup, ...]
    not_shown: NotShown


def to_values(comparison: Comparison) -> Compared:
    """The comparison, for programs."""
    before, after = map(_side, comparison.subjects)
    return Compared(
        before=before,
        after=after,
        floor=comparison.options.floor,
        warnings=comparison.warnings,
        unknown=comparison.unknown,
        axes=comparison.axes,
        same_code=comparison.same_code,
        effect=comparison.effect,
        groups=group_values(comparison.groups),
        not_shown=NotShown(
            small=comparison.small,
            near_zero=comparison.near_zero,
            same=comparison.same,
            others=comparison.others,
        ),
    )


def _side(subject: Subject) -> ComparedSide:
    return ComparedSide(
        label=subject.label,
        about=subject.about,
        evidence=tuple(evidence_of(subject.arm)),
        conditions=subject.conditions,
    )


def group_values(groups: Sequence[Group]) -> tuple[ComparedGroup, ...]:
    """All findings, by group."""
    return tuple(map(_group_values, groups))


def _group_values(group: Group) -> ComparedGroup:
    findings = (
        ComparedFigure(
            metric=finding.difference.metric.name,
            label=finding.difference.metric.label.strip(),
            unit=finding.difference.metric.unit,
            better=finding.difference.metric.better,
            before=finding.difference.before,
            after=finding.difference.after,
            change=finding.difference.change,
            direction=_direction(finding.difference),
            others=finding.others,
        )
        for finding in group.findings
    )
    return ComparedGroup(group=group.name, kind=group.kind, findings=tuple(findings))


def _direction(difference: Difference) -> str:
    """Whether the change is `better` or `worse`; empty where that depends on the kernel."""
    if (
        isinstance(difference.before, str)
        or isinstance(difference.after, str)
        or not difference.metric.better
    ):
        return ""
    if figures.growth(difference) in ("same", "+0.0%", "-0.0%"):
        return ""
    return (
        "better"
        if (difference.after < difference.before) == (difference.metric.better == "less")
        else "worse"
    )


def render(comparison: Comparison, names: bool = False) -> Iterator[Block]:
    """Renders a comparison for 80 columns; with `names` in tables that also have ncu's names."""
    one, other = comparison.subjects
    yield Heading(f"{one.label} → {other.label}")
    for side, subject in zip(("before", "after"), comparison.subjects, strict=True):
        yield paragraph(Span(f"{side}: {'; '.join(_about(subject))}", "dim"))
    if comparison.same_code:
        words = "Both have the same SASS, instruction by instruction."
        yield paragraph(Span(words, "warn"))
    for warning in comparison.warnings:
        yield paragraph(Span(f"warning: {warning}", "warn"))
    for whose, conditions in comparison.unknown.items():
        where = "for either" if whose == "both" else f"for {whose}"
        yield paragraph(Span(f"not recorded {where}: {', '.join(conditions)}", "dim"))
    if comparison.axes:
        rows = [(axis, *map(_spell, values)) for axis, values in comparison.axes.items()]
        yield table(("axes", "before", "after"), rows)
    if comparison.effect:
        yield paragraph(f"time, interleaved in one run: {figures.effect(comparison.effect)}")
    for group in comparison.groups:
        if not names and (comparison.options.metric or group.name == counters.OTHER):
            yield from _lines(group)
        else:
            yield table_of(group, names)
    if words := _sizes(comparison):
        yield paragraph(words)
    if rest := _rest(comparison):
        yield paragraph(rest)


def _about(subject: Subject) -> Sequence[str]:
    return (*subject.about, f"{', '.join(evidence_of(subject.arm))}")


def table_of(group: Group, names: bool) -> Block:
    """A row for each finding; with `names` also ncu's."""
    header = (f"{group.name} ({group.kind})", "before", "after", "", "change", "")
    rows: list[tuple[Cell, ...]] = []
    for finding in group.findings:
        cells = _cells(finding.difference)
        rows.append((*cells, finding.difference.metric.name) if names else cells)
    return table(
        (*header, "metric") if names else header, rows, numbers=(1, 2, 4), unwrapped=(3, 5)
    )


def _cells(difference: Difference) -> tuple[Cell, ...]:
    before, after, unit = figures.pair(difference.before, difference.after, difference.metric.unit)
    direction = _direction(difference)
    style = {"better": Span(direction, "good"), "worse": Span(direction, "bad")}
    label = difference.metric.label.strip()
    return (label, before, after, unit, figures.growth(difference), style.get(direction, ""))


def _lines(group: Group) -> Iterator[Block]:
    """Two lines for a finding: a counter's whole name, which no column holds, and its values."""
    yield paragraph(Span(f"{group.name} ({group.kind})", "strong"))
    for finding in group.findings:
        metric = finding.difference.metric
        _, before, after, unit, growth, direction = _cells(finding.difference)
        label = "" if metric.name.startswith(metric.label) else f"  {metric.label.strip()}:"
        yield paragraph(Span(metric.name, "strong" if label else ""), indent=2)
        words = f"{label}  {before} → {after} {unit}  {growth}  ".replace("   ", "  ")
        yield paragraph(words.rstrip() + "  ", direction or "", indent=2)


def _sizes(comparison: Comparison) -> str:
    """Names the problem of the executed counts, where it is not the full one."""
    kinds = {
        finding.difference.metric.kind for group in comparison.groups for finding in group.findings
    }
    executed = [subject.arm.executed for subject in comparison.subjects]
    sizes = {evidence.size for evidence in executed if evidence} - {"full"}
    if "emulated" not in kinds or not sizes:
        return ""
    words = " and ".join(f"'{size}'" for size in sorted(sizes))
    return f"Emulated counts are of size {words}; at size 'full' changes may differ, even in sign."


def _rest(comparison: Comparison) -> str:
    """Says what is not shown, and how to see it; empty where nothing is left out."""
    floor = f"{100 * comparison.options.floor:g}%"
    parts = [
        (comparison.small, f"changed by less than {floor} (--floor)"),
        (
            comparison.near_zero,
            f"changed, and are below {ranking.NEGLIGIBLE_PERCENT}% on both sides (--all)",
        ),
        (comparison.others, "changed and belong to no group (--all)"),
        (comparison.same, "did not change"),
    ]
    words = ", ".join(f"{count:,} that {what}" for count, what in parts if count)
    return f"Figures not shown: {words}." if words and comparison.options.metric is None else ""


def _spell(value: AxisValue | None) -> str:
    return figures.NONE if value is None else spell(value)
