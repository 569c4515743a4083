"""Documents of comparisons: of two subjects, and of two records."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.facts import counters
from kernelexp.judge import ranking
from kernelexp.judge.ranking import ComparedFigure, ComparedGroup
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Heading, Listing, Span, paragraph, table
from kernelexp.services.comparisons import Compared
from kernelexp.services.record_differences import RecordDifference


def render(compared: Compared, names: bool = False, *, whole: bool = False) -> Iterator[Block]:
    """Renders a comparison for 80 columns; with `names` in tables that also have ncu's names, with
    `whole` a figure in two lines, the first its whole name."""
    sides = (("before", compared.before), ("after", compared.after))
    yield Heading(f"{compared.before.label} → {compared.after.label}")
    for name, side in sides:
        about = "; ".join((*side.about, ", ".join(side.evidence)))
        yield paragraph(f"{name}: {about}", style="dim")
    if compared.same_code:
        words = "Both have the same SASS, instruction by instruction."
        yield paragraph(words, style="warn")
    for warning in compared.warnings:
        yield paragraph(f"warning: {warning}", style="warn")
    for whose, conditions in compared.unknown.items():
        where = "for either" if whose == "both" else f"for {whose}"
        yield paragraph(f"not recorded {where}: {', '.join(conditions)}", style="dim")
    if compared.axes:
        rows = [(axis, *map(figures.axis, values)) for axis, values in compared.axes.items()]
        yield table(("axes", "before", "after"), rows)
    if compared.effect:
        yield paragraph(f"time, interleaved in one run: {figures.effect(compared.effect)}")
    for group in compared.groups:
        if not names and (whole or group.group == counters.OTHER):
            yield from _lines(group)
        else:
            yield table_of(group, names)
    if words := _sizes(compared):
        yield paragraph(words)
    if rest := _rest(compared):
        yield paragraph(rest)


def table_of(group: ComparedGroup, names: bool) -> Block:
    """A row for each finding; with `names` also ncu's."""
    header = (f"{group.group} ({group.kind})", "before", "after", "", "change", "")
    rows: list[tuple[Cell, ...]] = []
    for finding in group.findings:
        cells = _cells(finding)
        rows.append((*cells, finding.metric) if names else cells)
    return table(
        (*header, "metric") if names else header, rows, numbers=(1, 2, 4), unwrapped=(3, 5)
    )


def _cells(finding: ComparedFigure) -> tuple[Cell, ...]:
    before, after, unit = figures.pair(finding.before, finding.after, finding.unit)
    direction = finding.direction
    style = {"better": Span(direction, "good"), "worse": Span(direction, "bad")}
    return (finding.label, before, after, unit, figures.growth(finding), style.get(direction, ""))


def _lines(group: ComparedGroup) -> Iterator[Block]:
    """Two lines for a finding: a counter's whole name, which no column holds, and its values."""
    yield paragraph(Span(f"{group.group} ({group.kind})", "strong"))
    for finding in group.findings:
        _, before, after, unit, growth, direction = _cells(finding)
        label = "" if finding.metric.startswith(finding.label) else f"  {finding.label}:"
        yield paragraph(Span(finding.metric, "strong" if label else ""), indent=2)
        words = f"{label}  {before} → {after} {unit}  {growth}  ".replace("   ", "  ")
        yield paragraph(words.rstrip() + "  ", direction or "", indent=2)


def _sizes(compared: Compared) -> str:
    """Names the problem of the executed counts, where it is not the full one."""
    kinds = {group.kind for group in compared.groups}
    conditions = (side.conditions.get("emulated", {}) for side in (compared.before, compared.after))
    sizes = {one["size"] for one in conditions if one} - {"full"}
    if "emulated" not in kinds or not sizes:
        return ""
    words = " and ".join(f"'{size}'" for size in sorted(sizes))
    return f"Emulated counts are of size {words}; at size 'full' changes may differ, even in sign."


def _rest(compared: Compared) -> str:
    """Says what is not shown, and how to see it; empty where nothing is left out."""
    left, floor = compared.not_shown, f"{100 * compared.floor:g}%"
    parts = [
        (left.small, f"changed by less than {floor} (--floor)"),
        (
            left.near_zero,
            f"changed, and are below {ranking.NEGLIGIBLE_PERCENT}% on both sides (--all)",
        ),
        (left.others, "changed and belong to no group (--all)"),
        (left.same, "did not change"),
    ]
    words = ", ".join(f"{count:,} that {what}" for count, what in parts if count)
    return f"Figures not shown: {words}." if words else ""


def of_records(compared: RecordDifference) -> Iterator[Block]:
    """Yields the inputs of the runs, then their figures, then the sources' diffs."""
    difference = compared.differing
    one, other = difference.runs
    yield Heading(f"{one} → {other}")
    rows = [(name, *values) for name, values in difference.facts.items()]
    for arm in difference.arms:
        for axis, (before, after) in arm.axes.items():
            rows.append((f"{arm.name}: {axis}", figures.axis(before), figures.axis(after)))
        if arm.flags:
            rows.append((f"{arm.name}: flags", *arm.flags))
    if rows:
        yield table(("", one, other), rows)
    for arm, different in zip(difference.arms, compared.figures, strict=True):
        figures_rows = [
            (
                own.metric.label.strip(),
                figures.value(own.before),
                figures.value(own.after),
                figures.relative(own),
            )
            for own in different
        ]
        if figures_rows:
            yield table((arm.name, "before", "after", "change"), figures_rows, numbers=(1, 2, 3))
    for name in difference.unpaired:
        yield paragraph(f"only in {name}")
    for name, diff in difference.files.items():
        yield paragraph(Span(name, "strong"))
        yield Listing(diff)
    differing = any(arm.figures for arm in difference.arms)
    if not (rows or difference.files or difference.unpaired or differing):
        yield paragraph("The same variants from the same files, with the same figures.")
