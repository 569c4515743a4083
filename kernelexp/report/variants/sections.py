"""Sections of a profile as a document: metric, value, interpretation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from kernelexp.project.sections import units
from kernelexp.project.sections.evaluate import Hot, SectionReading, Value
from kernelexp.project.sections.given import GIVEN
from kernelexp.report.document.document import (
    Block,
    Document,
    Heading,
    Labelled,
    Listing,
    Span,
    Table,
    paragraph,
    table,
)

HEADER = ("metric", "value", "interpretation")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def document(reading: SectionReading, names: bool = False) -> Document:
    """Its tables, how derived values came about, caveats, and what is missing.

    `names` adds ncu's name of each figure.
    """
    yield Heading(reading.title, 2)
    if reading.about:
        yield paragraph(reading.about)
    shown = [value for value in reading.values if value.shown]
    rows = [value for value in shown if value.value is not None]
    for group, values in groupby(rows, key=lambda value: value.group):
        if group:
            yield paragraph(Span(group, "strong"))
        yield _table(list(values))
    if reading.samples:
        yield from _instructions(reading)
    yield from _formulas(rows)
    for caveat in reading.caveats:
        yield Labelled("note", caveat)
    yield from _missing(reading, shown)
    if names and any(row.metric for row in rows):
        yield paragraph("ncu's names of these figures:")
        yield Listing("\n".join(dict.fromkeys(row.metric for row in rows if row.metric)))


def _table(values: Sequence[Value]) -> Table:
    """The third column only where a value is interpreted."""
    columns = 3 if any(value.text for value in values) else 2
    rows = ((one.label, units.spell(one.value, one.unit), one.text) for one in values)
    return table(HEADER, rows, numbers=(1,), shown=range(columns))


def _formulas(rows: Sequence[Value]) -> Iterator[Block]:
    """Each formula, then with its figures; of a group of rows the first. Then what was given."""
    derived = [row for row in rows if row.formula and row.formula not in row.inputs]
    firsts = {value.group: value for value in reversed(derived) if value.group}
    lines = [
        f"{value.label} = {value.formula}\n    = {_with_figures(value)}"
        for value in derived
        if not value.group or firsts[value.group] is value
    ]
    if lines:
        yield Listing("\n".join(lines))
    given = {
        f"{name}: {units.spell(item.value, item.unit)}, {item.source}"
        for value in derived
        for name, item in value.inputs.items()
        if name in GIVEN and item.source
    }
    if given:
        yield Listing("\n".join(sorted(given)))


def _with_figures(value: Value) -> str:
    def figure(match: re.Match[str]) -> str:
        result = value.inputs.get(match[0])
        return units.spell(result.value, result.unit) if result else match[0]

    return _NAME.sub(figure, value.formula)


def _missing(reading: SectionReading, shown: Sequence[Value]) -> Iterator[Block]:
    """Yields the values that are missing, by reason; not those that lack only what is listed here
    itself."""
    listed = {value.name for value in shown}
    reasons: dict[str, dict[str, None]] = {}
    for value in shown:
        if value.value is not None or (value.absent and listed.issuperset(value.absent)):
            continue
        # What the chip lacks is listed by itself: the rest of a group may be missing as a whole.
        others = [one for one in shown if one.group == value.group and (one.metric or one.formula)]
        whole = (
            value.group and value in others and all(one.missing == value.missing for one in others)
        )
        reasons.setdefault(value.missing, {})[value.group if whole else value.label] = None
    for reason, labels in reasons.items():
        yield Labelled(reason, "; ".join(labels))
    for sentence in reading.missing:
        yield paragraph(sentence)


def _instructions(reading: SectionReading) -> Iterator[Block]:
    if not reading.instructions:
        yield paragraph(f"No instruction has many of the {reading.samples:,.0f} samples.")
        return
    yield table(
        ("offset", "samples", "share", "instruction", "waits for"),
        (_instruction(instruction) for instruction in reading.instructions),
        numbers=(1, 2),
        unwrapped=(0,),
    )
    listed = sum(instruction.share for instruction in reading.instructions)
    yield paragraph(
        f"These {len(reading.instructions)} instructions have {100 * listed:.1f}% of all "
        f"{reading.samples:,.0f} samples."
    )


def _instruction(hot: Hot) -> tuple[str, str, str, str, str]:
    most = [(name, count / hot.samples) for name, count in hot.reasons.items()][:2]
    reasons = ", ".join(f"{name} {100 * share:.0f}%" for name, share in most if share >= 0.05)
    return (
        f"{hot.offset:#06x}",
        f"{hot.samples:,.0f}",
        f"{100 * hot.share:.1f}%",
        hot.sass.rstrip(" ;"),
        reasons,
    )
