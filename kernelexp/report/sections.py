"""Sections of a profile as a document: metric, value, interpretation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from kernelexp.report.document import (
    Block,
    Document,
    Heading,
    Labelled,
    Listing,
    Span,
    paragraph,
    table,
)
from kernelexp.sections import units
from kernelexp.sections.evaluate import Hot, Reading, Value

HEADER = ("metric", "value", "interpretation")


def document(reading: Reading, names: bool = False) -> Document:
    """Its tables, how derived values came about, caveats, and what is missing.

    `names` adds ncu's name of each figure.
    """
    yield Heading(reading.title, 2)
    if reading.about:
        yield paragraph(reading.about)
    shown = [each for each in reading.values if each.shown]
    rows = [each for each in shown if each.value is not None]
    for group, values in groupby(rows, key=lambda each: each.group):
        if group:
            yield paragraph(Span(group, "strong"))
        yield table(HEADER, (_row(each) for each in values), numbers=(1,))
    if reading.samples:
        yield from _instructions(reading)
    yield from _formulas(rows)
    for caveat in reading.caveats:
        yield Labelled("note", caveat)
    yield from _missing(shown, reading.missing)
    if names and any(each.metric for each in rows):
        yield paragraph("ncu's names of these figures:")
        yield Listing("\n".join(dict.fromkeys(each.metric for each in rows if each.metric)))


def _row(value: Value) -> tuple[str, str, str]:
    return value.label, units.spell(value.value, value.unit), value.text


def _formulas(rows: Iterable[Value]) -> Iterator[Block]:
    lines = [_formula(each) for each in rows if each.formula]
    if lines:
        yield Listing("\n".join(lines))


def _formula(value: Value) -> str:
    inputs = (
        f"    {name} = {units.spell(each.value, each.unit)}"
        + (f", {each.source}" if each.source else "")
        for name, each in value.inputs.items()
    )
    return "\n".join([f"{value.label} = {value.formula}", *inputs])


def _missing(shown: Iterable[Value], sentences: Iterable[str]) -> Iterator[Block]:
    reasons: dict[str, list[str]] = {}
    for each in shown:
        if each.value is None:
            label = (
                f"{each.label} ({each.group.split(',')[0].lower()})" if each.group else each.label
            )
            reasons.setdefault(each.missing, []).append(label)
    for reason, labels in reasons.items():
        yield Labelled(reason, ", ".join(labels))
    for sentence in sentences:
        yield paragraph(sentence)


def _instructions(reading: Reading) -> Iterator[Block]:
    if not reading.instructions:
        yield paragraph(f"No instruction has many of the {reading.samples:,.0f} samples.")
        return
    yield table(
        ("offset", "samples", "share", "instruction", "waits for"),
        (_instruction(each) for each in reading.instructions),
        numbers=(1, 2),
        unwrapped=(0,),
    )
    listed = sum(each.share for each in reading.instructions)
    yield paragraph(
        f"These {len(reading.instructions)} instructions have {100 * listed:.1f}% of all "
        f"{reading.samples:,.0f} samples."
    )


def _instruction(hot: Hot) -> tuple[str, str, str, str, str]:
    most = list(hot.reasons.items())[:2]
    reasons = ", ".join(f"{name} {100 * count / hot.samples:.0f}%" for name, count in most)
    return (
        f"{hot.offset:#06x}",
        f"{hot.samples:,.0f}",
        f"{100 * hot.share:.1f}%",
        hot.sass.rstrip(" ;"),
        reasons,
    )
