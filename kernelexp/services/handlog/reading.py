"""A log's sections to entries: what was tried, with the figures and words that it was given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kernelexp.model.arm import PublishedResult, Status, Verdict
from kernelexp.model.experiment import is_name
from kernelexp.services.handlog import figures
from kernelexp.services.handlog.figures import NOTHING
from kernelexp.services.handlog.sections import LabelledText, LogSection, LogTable, Role

BEFORE = "before"
"""The state of the kernel before the first step."""


class LoggedVariant(msgspec.Struct, frozen=True, kw_only=True):
    """A state of the kernel that the log tells of, and its figures there."""

    state: str
    figures: PublishedResult
    verdict: Verdict | None = None
    """Of a candidate."""
    title: str = ""


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """A step or an experiment as it was read."""

    id: str
    title: str
    baseline: LoggedVariant
    candidates: tuple[LoggedVariant, ...]
    hypothesis: str = ""
    changes: tuple[str, ...] = ()
    why: str = ""
    decision: str = ""
    notes: str = ""
    date: str = ""
    commit: str = ""
    line: int = 0


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """All that was made of a log."""

    steps: tuple[Read, ...]
    experiments: tuple[Read, ...]
    doubts: tuple[str, ...]
    """Sentences about what could be meant otherwise."""
    kept: tuple[str, ...]
    """Headings, with their lines, whose text became no entry."""


_STEPS = ("commit", "hash", "revision", "step")
_NAMES = ("kernel", "variant", "version", "config", "configuration", "implementation", "mode")
_DECIDED = ("verdict", "decision", "decided", "kept", "keep", "accepted", "outcome")
_HEADING = re.compile(r"(?:experiment\s+)?([A-Za-z]+\d+)\s*[:.\u2014\u2013-]\s*(.+)", re.IGNORECASE)
_ALSO = re.compile(r"(?:^|[.;]\s*)([^.;()]+?)\s+also tested\s*\(([^)]*)\)", re.IGNORECASE)
_SHA = re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}\b")
_WHY = ("why", "finding", "reason", "lesson", "observation", "analysis", "conclusion")


def read(sections: Sequence[LogSection]) -> Log:
    """The steps of the first history, the experiments, and the rows of tables of variants."""
    steps: list[Read] = []
    experiments: list[Read] = []
    doubts: list[str] = []
    kept: list[str] = []
    for section in sections:
        lost: list[object] = [*section.texts, *section.other]
        heading = _HEADING.fullmatch(section.title)
        if heading and any(text.label for text in section.texts):
            experiments.append(_experiment(section, heading[1], heading[2], steps, doubts))
            lost = []
        for table in section.tables:
            if _is_history(table) and not steps:
                steps += _history(table, section, doubts)
            elif variants := _variants(table, section, experiments, doubts):
                experiments.append(variants)
            else:
                lost.append(table)
        if lost:
            kept.append(f"line {section.line}: {section.title or 'the beginning'}")
    return Log(
        steps=tuple(steps), experiments=tuple(experiments), doubts=tuple(doubts), kept=tuple(kept)
    )


def _is_history(table: LogTable) -> bool:
    return _column(table, *_STEPS) == 0 and _timed(table)


def _timed(table: LogTable) -> bool:
    return not {"time", "tflops"}.isdisjoint(_figure_columns(table))


def _figure_columns(table: LogTable) -> dict[Role, int]:
    """The columns that have figures, by what these are."""
    columns = {role: _column(table, *words) for role, words in _BEGINNINGS.items()}
    return {role: place for role, place in columns.items() if place is not None}


_BEGINNINGS: dict[Role, tuple[str, ...]] = {
    "time": ("time",),
    "tflops": ("tflop", "gflop", "mflop", "pflop"),
    "registers": ("reg",),
}


def _column(table: LogTable, *words: str) -> int | None:
    """The first column whose heading begins with one of these words."""
    heads = [head.lower() for head in table.header]
    return next((i for i, head in enumerate(heads) if head.startswith(words)), None)


def _history(table: LogTable, section: LogSection, doubts: list[str]) -> Iterator[Read]:
    before = LoggedVariant(state=BEFORE, figures=NOTHING)
    change, notes = _column(table, "change", "title", "optimi", "descr"), _column(table, "note")
    for row in table.rows:
        result, name = figures.of_row(table.header, row, _figure_columns(table)), row[0].strip("` ")
        if not is_name(name):
            doubts.append(f"line {section.line}: a step {name!r} has no name that can be an id.")
            continue
        verdict = figures.judge(before.figures, result)
        yield Read(
            id=name,
            title=row[change] if change is not None else name,
            baseline=before,
            candidates=(LoggedVariant(state=name, figures=result, verdict=verdict),),
            decision="committed",
            notes=_notes(table, row, notes),
            commit=name if _SHA.fullmatch(name) else "",
            line=section.line,
        )
        before = LoggedVariant(state=name, figures=result)


def _notes(table: LogTable, row: Sequence[str], notes: int | None) -> str:
    """The row's cells of no column that is known, by their headings."""
    known = {0, _column(table, "change", "title", "optimi", "descr"), notes}
    known |= {*_figure_columns(table).values()}
    parts = [row[notes]] if notes is not None and row[notes] else []
    for place, cell in enumerate(row):
        if place not in known and cell and cell not in "\u2014\u2013-":
            parts.append(f"{table.header[place]}: {cell}")
    return "; ".join(parts)


def _variants(
    table: LogTable, section: LogSection, experiments: Sequence[Read], doubts: list[str]
) -> Read | None:
    """The rows of a table of variants as candidates against the first; not where rows were decided
    on, each after the one before it."""
    if _column(table, *_NAMES) != 0 or not _timed(table) or _column(table, *_DECIDED) is not None:
        return None
    notes = _column(table, "note")
    rows = [
        (row, row_figures)
        for row in table.rows
        if (row_figures := figures.of_row(table.header, row, _figure_columns(table))) != NOTHING
    ]
    if len(rows) < 2:
        return None
    doubts += (
        f"line {section.line}: a row has no figure: {' | '.join(row)}"
        for row in table.rows
        if figures.of_row(table.header, row, _figure_columns(table)) == NOTHING
    )
    number = 1 + sum(
        experiment.id.startswith("T") and experiment.id[1:].isdigit() for experiment in experiments
    )
    name, (first, own) = f"T{number}", rows[0]
    listed = [f"{row[0]}: {text}" for row, _ in rows if (text := _notes(table, row, notes))]
    return Read(
        id=name,
        title=section.title or "a table of variants",
        baseline=LoggedVariant(state=f"{name}_{_token(first[0])}", figures=own, title=first[0]),
        candidates=tuple(
            LoggedVariant(
                state=f"{name}_{_token(row[0])}",
                figures=result,
                verdict=figures.judge(own, result),
                title=row[0],
            )
            for row, result in rows[1:]
        ),
        changes=tuple(row[0] for row, _ in rows[1:]),
        notes="\n".join([f"The baseline is {first[0]}.", *listed]),
        line=section.line,
    )


def _token(text: str) -> str:
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "unnamed"


def _experiment(
    section: LogSection, name: str, title: str, steps: Sequence[Read], doubts: list[str]
) -> Read:
    own = {text.label.lower(): text for text in section.texts if text.label}
    verdict, hypothesis = _first(own, "verdict"), _first(own, "hypothesis")
    changes, date = _first(own, "change"), _text(_first(own, "date"))
    whys = [text for label, text in own.items() if label.startswith(_WHY)]
    base, candidates = _candidates(section, name, own, doubts)
    used = {id(why) for why in (verdict, hypothesis, changes, *whys) if why}
    shas = _SHA.findall(_text(_first(own, "commit"))) or _SHA.findall(_text(verdict))
    return Read(
        id=name,
        title=" ".join(title.split()),
        baseline=_state_of(name, base, steps, doubts),
        candidates=candidates,
        hypothesis=hypothesis.whole if hypothesis else "",
        changes=_changes(changes),
        why="\n\n".join(_named(text, bare=place == 0) for place, text in enumerate(whys)),
        decision=_text(verdict),
        notes="\n\n".join(
            _named(text) for text in (*section.texts, *_others(section)) if id(text) not in used
        ),
        date=date if re.fullmatch(r"\d{4}-\d\d-\d\d", date) else "",
        commit=shas[0] if shas else "",
        line=section.line,
    )


def _candidates(
    section: LogSection, name: str, own: Mapping[str, LabelledText], doubts: list[str]
) -> tuple[PublishedResult, tuple[LoggedVariant, ...]]:
    """The baseline's figures, and the candidates with their verdicts."""
    base, result = _compared(name, own, doubts)
    result += [
        (match[1].strip(), figures.parse(match[2]))
        for text in section.texts
        for match in _ALSO.finditer(text.text)
    ]
    status = _status(_text(_first(own, "verdict")), len(result))
    if status is None and all(
        not figures.spell(published_result, NOTHING) for _, published_result in result
    ):
        doubts.append(f"line {section.line}: {name} has no verdict and no figure that is known.")
    return base, tuple(
        LoggedVariant(
            state=name if len(result) == 1 else f"{name}_{number}",
            figures=published_result,
            verdict=figures.published(status, base, published_result)
            if status
            else figures.judge(base, published_result),
            title=label,
        )
        for number, (label, published_result) in enumerate(result, start=1)
    )


def _first(own: Mapping[str, LabelledText], *words: str) -> LabelledText | None:
    """The text whose label begins with one of the words."""
    return next((text for label, text in own.items() if label.startswith(words)), None)


def _text(labelled: LabelledText | None) -> str:
    return labelled.text if labelled else ""


def _named(labelled: LabelledText, bare: bool = False) -> str:
    if bare or not labelled.label:
        return labelled.whole
    return f"{labelled.label}: {labelled.whole}"


def _others(section: LogSection) -> Iterator[LabelledText]:
    return (LabelledText(label="", text=item) for item in section.other)


def _changes(changes: LabelledText | None) -> tuple[str, ...]:
    if changes is None:
        return ()
    return changes.items if not changes.text else (changes.text, *changes.items)


def _compared(
    name: str, own: Mapping[str, LabelledText], doubts: list[str]
) -> tuple[PublishedResult, list[tuple[str, PublishedResult]]]:
    """The figures of the baseline and of the candidates."""
    text, after, before = (
        _first(own, "result"),
        _first(own, "after"),
        _first(own, "baseline"),
    )
    result = figures.parse(text.text) if text else NOTHING
    if after is not None:
        base = figures.parse(before.text) if before else result
        if before and text:
            doubts.append(f"{name} has a result and one after it: the latter is the candidate's.")
        return base, [(after.label, figures.parse(after.text))]
    if before is not None:
        return figures.parse(before.text), [("", result)]
    if text and "→" in text.text:
        one, _, other = text.text.partition("→")
        pair = figures.parse(one), figures.parse(other)
        replaced = "replaced" in other.lower()
        doubts.append(
            f"{name} has no baseline: of the two figures in its result, the "
            f"{'second' if replaced else 'first'} is taken for it."
        )
        return (pair[1], [("", pair[0])]) if replaced else (pair[0], [("", pair[1])])
    if text and re.search(r"\bboth\b", text.text):
        return result, [("", result)]
    if result != NOTHING:
        doubts.append(f"{name} has no baseline: its result is compared with nothing.")
    return NOTHING, [("", result)]


def _status(text: str, candidates: int) -> Status | None:
    """The verdict that a text begins with, if it is of the one candidate."""
    match = re.match(r"[A-Z_]+", text)
    known = {Statu.value for Statu in Status}
    return Status(match[0]) if match and match[0] in known and candidates == 1 else None


def _state_of(
    name: str, base: PublishedResult, steps: Sequence[Read], doubts: list[str]
) -> LoggedVariant:
    """The step that a baseline's figures are of; a state of its own where there is none."""
    if base == NOTHING and steps:
        return LoggedVariant(state=steps[-1].id, figures=base)
    for step in reversed(steps):
        if figures.same(step.candidates[0].figures, base):
            if base.approximate:
                doubts.append(f"{name} has an approximate baseline: {step.id} has that figure.")
            return LoggedVariant(state=step.id, figures=base)
    return LoggedVariant(state=f"{name}_baseline", figures=base)
