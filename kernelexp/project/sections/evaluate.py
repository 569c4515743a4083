"""A section's values for one profile: figures, derived values, what they mean, what is missing."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Mapping

import msgspec

from kernelexp.facts import derived
from kernelexp.model.arm import ProfiledEvidence, ProfiledInstruction
from kernelexp.project import sections
from kernelexp.project.sections import formula, units
from kernelexp.project.sections.check import PLACEHOLDER
from kernelexp.project.sections.given import NOTHING, Input, Run, family_of, inputs
from kernelexp.project.sections.shape import (
    ConditionalSentence,
    Derived,
    Instructions,
    Section,
    SectionMetric,
    ShownValue,
    Sum,
    Texts,
)


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row: a figure or a derived value; without a value it says why."""

    name: str
    label: str
    group: str = ""
    """The title over its rows."""
    value: float | None = None
    unit: str = ""
    text: str = ""
    """What the value means; empty where the section says nothing of such a value."""
    metric: str = ""
    """ncu's name, of a figure."""
    formula: str = ""
    """Of a derived value."""
    inputs: dict[str, Input] = {}
    """The values that the formula uses, by name."""
    missing: str = ""
    """Why there is no value, as a clause."""
    absent: tuple[str, ...] = ()
    """The names that its formula lacks."""
    shown: bool = True


class Hot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An instruction with many samples, and the reasons that they are divided into."""

    offset: int
    sass: str
    samples: float
    share: float
    """Of all samples, from 0 to 1."""
    reasons: dict[str, float] = {}
    """Samples by reason, most first."""
    file: str = ""
    line: int = 0


class SectionReading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A section, read from one profile."""

    section: str
    title: str
    about: str = ""
    family: str = ""
    values: tuple[Value, ...] = ()
    caveats: tuple[str, ...] = ()
    instructions: tuple[Hot, ...] = ()
    samples: float = 0.0
    """All samples of the source page; 0 without one, or where the section lists none."""
    missing: tuple[str, ...] = ()
    """What the section needs and the profile does not have, as sentences."""


def evaluate(section: Section, evidence: ProfiledEvidence, run: Run = NOTHING) -> SectionReading:
    """The section's values for a profile. What is missing is said in them; nothing is raised."""
    family = family_of(evidence)
    values = [
        *(_figure(name, wanted, evidence, family) for name, wanted in section.metrics.items()),
        *(_sum(name, wanted, evidence) for name, wanted in section.sums.items()),
    ]
    known = {
        **inputs(evidence, run),
        **{item.name: _as_input(item) for item in values if item.value is not None},
    }
    for name, formulas in section.derived.items():
        value = _derive(name, formulas, known)
        values.append(value)
        if value.value is not None:
            known[name] = _as_input(value)
    written: dict[str, ShownValue] = {**section.metrics, **section.sums, **section.derived}
    explained = tuple(
        msgspec.structs.replace(value, text=_explain(written[value.name].text, known))
        if value.value is not None
        else value
        for value in values
    )
    listed = section.instructions
    return SectionReading(
        section=section.name,
        title=section.title,
        about=section.about.strip(),
        family=family,
        values=explained,
        caveats=tuple(_fill(case.text, known) for case in section.caveats if _holds(case, known)),
        instructions=_hot(listed, evidence.instructions) if listed else (),
        samples=_total(listed.column, evidence.instructions) if listed else 0.0,
        missing=_needs_source(section, evidence),
    )


def gap(evidence: ProfiledEvidence, run: Run) -> SectionReading:
    """A measured time against the peer's and against the chip's peak: the terms that the evidence
    gives; each of the others says what it lacks.

    Without a measured time the profile's own duration is used, and its source says so.
    """
    duration = evidence.figures.get("gpu__time_duration.sum")
    if run.time_ms is None and isinstance(duration, int | float):
        clocks = evidence.clock_control or "clocks that are not known"
        run = msgspec.structs.replace(
            run, time_ms=duration / 1e6, time_source=f"profiled, clock control: {clocks}"
        )
    return evaluate(sections.builtin("gap"), evidence, run)


def _needs_source(section: Section, evidence: ProfiledEvidence) -> tuple[str, ...]:
    if evidence.instructions or not (section.sums or section.instructions):
        return ()
    return ("The profile has no source page: nothing is attributed to instructions.",)


def _row(name: str, wanted: ShownValue) -> Value:
    return Value(
        name=name, label=wanted.label, group=wanted.group, unit=wanted.unit, shown=wanted.shown
    )


def _figure(name: str, wanted: SectionMetric, evidence: ProfiledEvidence, family: str) -> Value:
    metric = _name_on(wanted, evidence, family)
    value = msgspec.structs.replace(_row(name, wanted), metric=metric)
    if not metric:
        return msgspec.structs.replace(value, missing=f"{family} has no such counter")
    metric, figure = _read(metric, evidence)
    value = msgspec.structs.replace(value, metric=metric)
    if isinstance(figure, int | float) and math.isfinite(figure):
        unit = wanted.unit or units.base(evidence.units.get(metric, ""))
        return msgspec.structs.replace(value, value=float(figure), unit=unit)
    if figure is not None:
        return msgspec.structs.replace(value, missing="no number in this profile")
    refused = any(
        metric == absent or metric.startswith(f"{absent}.") for absent in evidence.missing
    )
    why = "ncu could not collect it" if refused else "not in this profile"
    return msgspec.structs.replace(value, missing=why)


def _read(metric: str, evidence: ProfiledEvidence) -> tuple[str, float | str | None]:
    """A figure with its name: ncu's, else what is worked out of others of the profile."""
    if metric not in evidence.figures and (other := derived.substitute(metric)):
        figures = {**dict(derived.derive(evidence.figures)), **evidence.figures}
        if other in figures:
            return other, figures[other]
    return metric, evidence.figures.get(metric)


def _name_on(wanted: SectionMetric, evidence: ProfiledEvidence, family: str) -> str:
    """ncu's name on the chip; empty where the chip has none."""
    if isinstance(wanted.metric, str):
        return wanted.metric
    names = wanted.metric
    if family:
        return names.get(family, "")
    return next((name for name in names.values() if name in evidence.figures), min(names.values()))


def _sum(name: str, wanted: Sum, evidence: ProfiledEvidence) -> Value:
    value = _row(name, wanted)
    if not evidence.instructions:
        return msgspec.structs.replace(value, missing="no source page in this profile")
    of = (instruction for instruction in evidence.instructions if _is(instruction, wanted.opcode))
    return msgspec.structs.replace(value, value=_total(wanted.column, of))


def _is(instruction: ProfiledInstruction, opcode: str) -> bool:
    words = instruction.sass.split()
    if words and words[0].startswith("@"):
        words = words[1:]
    return bool(words) and fnmatch.fnmatchcase(words[0].rstrip(";"), opcode)


def _total(column: str, instructions: Iterable[ProfiledInstruction]) -> float:
    return sum(instruction.figures.get(column, 0.0) for instruction in instructions)


def _derive(name: str, wanted: Derived, known: Mapping[str, Input]) -> Value:
    texts = [wanted.formula] if isinstance(wanted.formula, str) else wanted.formula
    formulas = [formula.parse(text) for text in texts]
    numbers = {item: value.value for item, value in known.items()}
    results = [(item, formula.evaluate(item, numbers)) for item in formulas]
    chosen, result = next(
        (pair for pair in results if pair[1] is not None),
        min(results, key=lambda pair: len(_absent(pair[0], known))),
    )
    absent = _absent(chosen, known)
    return msgspec.structs.replace(
        _row(name, wanted),
        value=result,
        formula=chosen.text,
        inputs={item: known[item] for item in chosen.names if item in known},
        missing="" if result is not None else _why(absent),
        absent=absent,
    )


def _absent(wanted: formula.Formula, known: Mapping[str, Input]) -> tuple[str, ...]:
    return tuple(name for name in wanted.names if name not in known)


def _why(absent: tuple[str, ...]) -> str:
    if absent:
        return f"not known without {', '.join(absent)}"
    return "not known, since the formula divides by zero or gives too large a number"


def _as_input(value: Value) -> Input:
    assert value.value is not None
    return Input(label=value.label, value=value.value, unit=value.unit, source=value.metric)


def _explain(texts: Texts, known: Mapping[str, Input]) -> str:
    cases = [ConditionalSentence(text=texts)] if isinstance(texts, str) else texts
    return next((_fill(case.text, known) for case in cases if _holds(case, known)), "")


def _holds(case: ConditionalSentence, known: Mapping[str, Input]) -> bool:
    """Whether its condition is known to hold."""
    if case.without and case.without in known:
        return False
    if not case.when:
        return True
    numbers = {name: value.value for name, value in known.items()}
    return bool(formula.evaluate(formula.parse(case.when), numbers))


def _fill(text: str, known: Mapping[str, Input]) -> str:
    def figure(name: str) -> str:
        value_known = known.get(name)
        return units.spell(value_known.value, value_known.unit) if value_known else "not known"

    return " ".join(PLACEHOLDER.sub(lambda match: figure(match[1]), text).split())


def _hot(wanted: Instructions, instructions: tuple[ProfiledInstruction, ...]) -> tuple[Hot, ...]:
    total = _total(wanted.column, instructions)
    least = max(wanted.at_least, 1)
    rows = [row for row in instructions if row.figures.get(wanted.column, 0.0) >= least]
    rows.sort(key=lambda row: (-row.figures[wanted.column], row.offset))
    return tuple(
        Hot(
            offset=row.offset,
            sass=row.sass.strip(),
            samples=row.figures[wanted.column],
            share=row.figures[wanted.column] / total,
            reasons=_reasons(wanted.reasons, row),
            file=row.file,
            line=row.line,
        )
        for row in rows[: wanted.most]
    )


def _reasons(beginning: str, instruction: ProfiledInstruction) -> dict[str, float]:
    """Samples by reason; columns that count a part of another one (`... (Not Issued)`) are not."""
    counts = {
        column.removeprefix(beginning): count
        for column, count in instruction.figures.items()
        if column.startswith(beginning) and "(" not in column and count > 0
    }
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
