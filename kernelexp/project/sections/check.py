"""The meaning of a section file: names, formulas, sentences. Its form is project.shape's."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping

from kernelexp.model.errors import suggest
from kernelexp.model.text import quote
from kernelexp.project.faults import Fault, KeyPath
from kernelexp.project.sections.formula import FUNCTIONS, FormulaError, parse
from kernelexp.project.sections.given import GIVEN
from kernelexp.project.sections.shape import FAMILIES, ConditionalSentence, Section, Texts
from kernelexp.project.yamlfile import Document

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def faults(document: Document, section: Section) -> Iterator[Fault]:
    """Mistakes of a section whose form is right."""
    known: list[str] = []
    for part, names in (
        ("metrics", section.metrics),
        ("sums", section.sums),
        ("derived", section.derived),
    ):
        for name in names:
            yield from _name(document, (part, name), known)
            if part == "derived":
                yield from _formulas(document, section, name, known)
            known.append(name)
    for name, metric in section.metrics.items():
        if not isinstance(metric.metric, str):
            yield from _chips(document, name, metric.metric)
    if not known and section.instructions is None:
        yield document.fault((), "a section has metrics, sums, derived values or instructions.")
    for part, values in (
        ("metrics", section.metrics),
        ("sums", section.sums),
        ("derived", section.derived),
    ):
        for name, value in values.items():
            yield from _texts(document, (part, name, "text"), value.text, known)
    yield from _texts(document, ("caveats",), section.caveats, known)
    listed = section.instructions
    if listed is not None and listed.most < 1:
        yield document.fault(("instructions", "most"), "at least 1 instruction is listed.")


def _chips(document: Document, name: str, named: Mapping[str, str]) -> Iterator[Fault]:
    path: KeyPath = ("metrics", name, "metric")
    if not named:
        yield document.fault(path, "name the metric on at least one chip.")
    for chip in named:
        if chip not in FAMILIES:
            yield document.fault((*path, chip), f"no chip {quote(chip)}{suggest(chip, FAMILIES)}.")


def _name(document: Document, path: KeyPath, known: Iterable[str]) -> Iterator[Fault]:
    name = str(path[-1])
    if name in known:
        yield document.fault(path, f"{name} is already the name of a value above.")
    elif name in GIVEN or name in FUNCTIONS or keyword.iskeyword(name):
        yield document.fault(path, f"{name} already means something in formulas; rename it.")


def _formulas(
    document: Document, section: Section, name: str, known: Iterable[str]
) -> Iterator[Fault]:
    written = section.derived[name].formula
    path: KeyPath = ("derived", name, "formula")
    if isinstance(written, str):
        yield from _formula(document, path, written, known)
        return
    if not written:
        yield document.fault(path, "give at least one formula.")
    for index, text in enumerate(written):
        yield from _formula(document, (*path, index), text, known)


def _formula(document: Document, path: KeyPath, text: str, known: Iterable[str]) -> Iterator[Fault]:
    try:
        formula = parse(text)
    except FormulaError as error:
        yield document.fault(path, f"{error}.")
        return
    for name in formula.names:
        if name not in known and name not in GIVEN:
            yield document.fault(path, f"no value {quote(name)}{suggest(name, [*known, *GIVEN])}.")


def _texts(
    document: Document, path: KeyPath, texts: Texts, known: Iterable[str]
) -> Iterator[Fault]:
    cases = [ConditionalSentence(text=texts)] if isinstance(texts, str) else texts
    for index, case in enumerate(cases):
        place = path if isinstance(texts, str) else (*path, index)
        if case.when:
            yield from _formula(document, (*place, "when"), case.when, known)
        if case.without and case.without not in known and case.without not in GIVEN:
            yield document.fault(
                (*place, "without"),
                f"no value {quote(case.without)}{suggest(case.without, known)}.",
            )
        for name in PLACEHOLDER.findall(case.text):
            if name not in known and name not in GIVEN:
                yield document.fault(
                    place, f"no value {quote(name)} for {{{name}}}{suggest(name, known)}."
                )
