"""The log as a document: the two tables of `kernelexp log`, and logs/EXPERIMENTS.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kernelexp.dossier.standing import Standing, Standings, before_change, rewritten, since
from kernelexp.dossier.tree import same_code_words
from kernelexp.judge import consistency
from kernelexp.judge.statistics import racing
from kernelexp.model.arm import Arm
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import spell_point
from kernelexp.model.record import Record, swept_axes
from kernelexp.report.document import figures
from kernelexp.report.document.document import (
    Block,
    Cell,
    Document,
    Heading,
    Items,
    Labelled,
    Span,
    as_markdown,
    paragraph,
    status,
    table,
)
from kernelexp.report.log import decisions
from kernelexp.services.kernel_logs import KernelLog
from kernelexp.system import disk

HISTORY_HEADER = ("Commit", "Change", "Time (ms)", "TFLOPS", "Regs", "Notes")
EXPERIMENT_HEADER: tuple[str, ...] = ("Id", "Experiment", "Baseline", "Candidate", "Verdict")
NOT_RUN = "not run"
CHANGED = "changed since"
"""What stands where the verdict of a variant that is no longer the same would."""


def tables(logs: Sequence[KernelLog]) -> Iterator[Block]:
    """History and experiments of each kernel, in two tables."""
    for log in logs:
        yield paragraph(f"{log.kernel}, {log.arch}. ", *_best(log))
        if log.history:
            yield history(log)
        if log.experiments:
            rows = [
                row for name, standings in log.experiments.items() for row in _rows(name, standings)
            ]
            yield _with_decisions(rows, log.experiments)
        if log.sweeps:
            yield _sweeps(log)
        for line in (*_changes(log), _sources(log)):
            if line:
                yield paragraph(line, style="dim")


def file(logs: Sequence[KernelLog]) -> Iterator[Block]:
    """Header, history and a section for each experiment of each kernel."""
    yield Heading("Experiment log")
    yield paragraph(
        "Rendered by `kernelexp log --write` from experiments.yaml and logs/runs; edit those."
    )
    for log in logs:
        yield Heading(f"`{log.kernel}`: {log.title}", 2)
        yield paragraph(f"Problem: {log.problem}.")
        yield paragraph(f"Target: {log.device} ({log.arch})")
        if best := _best(log):
            yield paragraph(*best)
        if sources := _sources(log):
            yield paragraph(sources)
        if log.history:
            yield Heading("Optimization history (committed)", 3)
            yield history(log)
            for line in _changes(log, steps=True):
                yield paragraph(line)
        if log.experiments:
            yield Heading("Experiments", 3)
        for name, standings in log.experiments.items():
            yield from _section(name, standings)
        if log.sweeps:
            yield Heading("Sweeps", 3)
            yield _sweeps(log)
            for run, changed in log.sweeps_changed.items():
                yield paragraph(f"Sweep {run}: {since('run', changed)}.")


def _best(log: KernelLog) -> tuple[Cell, ...]:
    if log.best is None:
        return ()
    arm, whose = best_arm(log)
    rate = figures.tflops_of(arm)
    registers = figures.registers_of(arm)
    known = arm if arm and figures.time_of(arm) != figures.NONE else None
    if known is None and log.accepted:
        return Span(f"Accepted without a time: {log.best}", "strong"), f" ({whose})"
    words = "Current best: " + (figures.timed(known) if known else log.best)
    words += "" if rate == figures.NONE else f" / {rate} TFLOPS"
    words += f" at size {_size(known)}" if known and _size(known) != "full" else ""
    used = "" if registers == figures.NONE else f", {registers} registers"
    return Span(words, "strong"), f"{used} ({log.best}, {whose})"


def slower(before: KernelLog, after: KernelLog) -> str:
    """Says that the current best takes longer than the one before a decision, in a sentence; empty
    where it does not, where a time is not known, or where the two are of different sizes."""
    (was, whose), (now, by) = best_arm(before), best_arm(after)
    if was is None or now is None or not took_less(was, now):
        return ""
    return (
        f"It takes longer than the best before it: {figures.timed(now)} ({after.best}, {by}), not "
        f"{figures.timed(was)} ({before.best}, {whose})."
    )


def took_less(arm: Arm, other: Arm) -> bool:
    """Whether an arm took less time than another one of the same size."""
    return _size(arm) == _size(other) and 0 < _milliseconds(arm) < _milliseconds(other)


def _size(arm: Arm) -> str:
    return arm.measured.size if arm.measured else "full"


def _milliseconds(arm: Arm) -> float:
    """0 where the time is not known."""
    if arm.measured:
        return (arm.measured.time_us or 0.0) / 1000
    return (arm.published.time_ms or 0.0) if arm.published else 0.0


def best_arm(log: KernelLog) -> tuple[Arm | None, str]:
    """The arm of the current best, if it still stands, and who says that it is the best."""
    standing = log.best_standing
    arm = standing.current if standing else None
    if log.accepted is None:
        return arm, "measured" if arm and arm.measured else "published"
    kind = "measured, " if arm and arm.measured else "published, " if arm and arm.published else ""
    at = f" at {decisions.short(log.accepted.commit)}" if log.accepted.commit else ""
    return arm, f"{kind}accepted{at}"


def _sources(log: KernelLog) -> str:
    """Names the sources of the figures, a sentence for each kind; empty where there are none."""
    records = _standing_records(log)
    devices = _cards((*records, *log.sweeps))
    published = sorted({record.source for record in records if record.source})
    sentences = []
    if devices:
        how = "the baseline's median, and changes from interleaved pairs."
        sentences.append(f"Measured figures: {', '.join(devices)}; {how}")
    if published:
        sentences.append(f"Published figures: {'; '.join(published)}.")
    steps = (step for entry in log.history.values() for step in entry.candidates)
    timed = (step for step in steps if step.record and step.record.measurement)
    if sum(not step.changed for step in timed) > 1:
        sentences.append(
            "Each measured step was timed beside the one before it, in a run of its own: changes "
            "compare, the times of two steps do not."
        )
    measured = [record for record in records if record.measurement]
    for detail in (consistency.PROBLEM, consistency.HEADERS):
        silent = [one.experiment for one in measured if detail in consistency.unrecorded(one)]
        if silent:
            names = ", ".join(dict.fromkeys(silent))
            sentences.append(f"Runs that did not record {detail}: {names}.")
    standings = [(name, c) for name, entry in log.standings.items() for c in entry.candidates]
    if rewritten := [(name, one) for name, one in standings if one.rewritten]:
        names = ", ".join(dict.fromkeys(name for name, _ in rewritten))
        files = (name for _, one in rewritten for name in one.rewritten)
        sentences.append(f"{names}: {same_code_words(files)}.")
    return " ".join(sentences)


def _standing_records(log: KernelLog) -> list[Record]:
    return [c.record for entry in log.standings.values() for c in entry.candidates if c.record]


def _cards(records: Iterable[Record]) -> list[str]:
    return sorted({record.device for record in records if record.measurement})


def _changes(log: KernelLog, steps: bool = False) -> Iterator[str]:
    """Yields what is no longer as it was measured, a line for each candidate."""
    entries = log.history if steps else log.standings
    for name, entry in entries.items():
        for standing, point in entry.points:
            if standing.changed:
                several = f", {spell_point(point)}" if len(entry.candidates) > 1 else ""
                yield f"{name}{several}: {before_change(standing)}."
    for run, changed in ({} if steps else log.sweeps_changed).items():
        yield f"Sweep {run}: {since('run', changed)}."


def _sweeps(log: KernelLog) -> Block:
    """A row per sweep: its axes with the other values that it fixed, its GPU where the experiments
    were measured on another, and the fastest variant, if any was timed."""
    cards = _cards(_standing_records(log))
    rows: list[tuple[Cell, ...]] = []
    for record in log.sweeps:
        axes = record.title.removeprefix("Sweep of ") + figures.held(record, log.defaults)
        if record.measurement and cards not in ([], [record.device]):
            axes += f"; {record.device}"
        former = (figures.NONE, Span(CHANGED, "warn"))
        rows.append((record.run, axes, *(former if log.changes(record) else fastest(record))))
    return table(("Sweep", "Axes", "Time (ms)", "Fastest"), rows, numbers=(2,))


def fastest(record: Record) -> tuple[str, str]:
    """Time and variant of a sweep's fastest arm, and whether that is settled; empty where none was
    timed."""
    race = racing.result(record.measurement, record.margin) if record.measurement else None
    if race is None:
        return figures.NONE, _best_untimed(record)
    arm = record.by_name[race.leader]
    others = len(race.contenders) - 1
    name = f"{others} other{'s' if others > 1 else ''}"
    also = f", or {name}, within {100 * record.margin:g}%" if others else ""
    doubt = also if race.is_decided else " (undecided)"
    swept = swept_axes(record)
    own = spell_point({axis: value for axis, value in arm.axes.items() if axis in swept})
    return figures.time_of(arm), f"{own}{doubt}"


def _best_untimed(record: Record) -> str:
    """The best row of a search by another figure than the time."""
    if record.tuning is None or record.measurement:
        return "not timed"
    from kernelexp.report.runs import sweep  # few logs have such a search

    return sweep.best_row(record, record.tuning)


def history(log: KernelLog) -> Block:
    """The committed steps, one row each."""
    rows = [history_row(name, entry) for name, entry in log.history.items()]
    return table(HISTORY_HEADER, rows, numbers=(2, 3, 4), unwrapped=(0,))


def history_row(name: str, entry: Standings) -> tuple[Cell, ...]:
    """A measured step's notes begin with its change: times of different runs do not compare."""
    step = entry.candidates[0]
    arm = step.current
    stale = before_change(step) if step.changed else ""
    taken = decisions.sentence(step.decision) if step.decision else ""
    notes = (figures.ratio(step.effect), stale, entry.experiment.notes, taken)
    registers = figures.registers_of(arm) if arm and (arm.measured or arm.published) else None
    return (
        name,
        entry.experiment.title,
        figures.time_of(arm),
        figures.tflops_of(arm),
        registers or figures.NONE,
        "; ".join(filter(None, notes)),
    )


def _rows(name: str, entry: Standings) -> Iterator[tuple[Cell, ...]]:
    """A row for each candidate of an experiment; a baseline is shown with each run of it."""
    shown, several = None, len(entry.candidates) > 1
    for index, (standing, point) in enumerate(entry.points):
        run = standing.record.run if standing.record else None
        baseline = _baseline(standing) if index == 0 or run != shown else None
        shown = run
        which = f"{spell_point(point)}: " if several else ""
        yield (
            name if index == 0 else "",
            entry.experiment.title if index == 0 else "",
            "" if index and baseline is None else _short(baseline, standing.record),
            which + _short(standing.current, standing.record),
            verdict(standing),
        )


def _with_decisions(rows: Sequence[tuple[Cell, ...]], entries: Mapping[str, Standings]) -> Block:
    """The table of experiments; with people's decisions where there are any."""
    header = EXPERIMENT_HEADER
    decided = [candidate.decision for entry in entries.values() for candidate in entry.candidates]
    if any(decided):
        header = (*header, "Decision")
        rows = [(*row, decisions.word(one)) for row, one in zip(rows, decided, strict=True)]
    return table(header, rows, numbers=(2, 3), unwrapped=(4,))


def _baseline(standing: Standing) -> Arm | None:
    return None if standing.changed else standing.baseline


def verdict(standing: Standing) -> Cell:
    """The verdict that stands; where there is none, why."""
    if standing.changed:
        return Span(CHANGED, "warn")
    return NOT_RUN if standing.verdict is None else status(standing.verdict.status)


def _short(arm: Arm | None, record: Record | None) -> str:
    if arm and arm.measured:
        change = f", {figures.ratio(arm.effect)}" if arm.effect else ""
        return f"{_time(arm)}{change}{figures.standing_conditions(record)}".removeprefix(", ")
    if arm and arm.published and arm.published.time_ms is not None:
        return f"{figures.time_of(arm)} ms"
    if arm and arm.published and arm.published.tflops is not None:
        return f"{figures.tflops_of(arm)} TFLOPS"
    return figures.NONE


def _time(arm: Arm) -> str:
    """Empty over several sizes."""
    return figures.timed(arm) if figures.time_of(arm) != figures.NONE else ""


def _section(name: str, entry: Standings) -> Iterator[Block]:
    experiment, first = entry.experiment, entry.candidates[0]
    yield Heading(f"{name}: {experiment.title}", 4)
    dates = dict.fromkeys(c.record.created[:10] for c in entry.candidates if c.record)
    if any(dates):
        yield Labelled("Date", ", ".join(filter(None, dates)))
    yield Labelled("Baseline", _long(first, _baseline(first), spell_point(experiment.baseline)))
    for standing, point in entry.points:
        arm = standing.current
        yield Labelled("Result", _long(standing, arm, spell_point(point)))
    yield Labelled("Verdict", _verdicts(entry))
    for candidate in entry.candidates:
        if candidate.changed:
            words = f"{spell_point(candidate.variant.axes)} {before_change(candidate)}."
            then = f" The verdict then: {_status(candidate)}." if candidate.verdict else ""
            yield Labelled("Changed since", f"{words}{then}")
    yield from _words(entry)


_HYPOTHESIS = {
    "": "Hypothesis",
    "reworded": "Hypothesis (reworded since it was measured, with the same figures)",
    "edited": "Hypothesis (edited since it was measured)",
}


def _words(entry: Standings) -> Iterator[Block]:
    """Yields the texts that people wrote about an experiment."""
    experiment = entry.experiment
    if experiment.decision:
        yield Labelled("Decision", experiment.decision)
    for sentence in decided(entry):
        yield Labelled("Decided", sentence)
    yield Labelled(_HYPOTHESIS[rewritten(entry)], experiment.hypothesis)
    if experiment.changes:
        yield Labelled("Changes", "")
        yield Items(tuple(experiment.changes))
    reasons = [decision.why for one in entry.candidates for decision in one.decisions]
    for label, words in (
        *(("Why", fromkey) for fromkey in dict.fromkeys((experiment.why, *reasons))),
        ("Notes", experiment.notes),
    ):
        if words:
            yield Labelled(label, words)


def decided(entry: Standings) -> Iterator[str]:
    """Every decision on an experiment in a sentence, oldest first; the last of each candidate
    holds."""
    several = len(entry.candidates) > 1
    for standing, point in entry.points:
        for decision in standing.decisions:
            which = f"{spell_point(point)}: " if several else ""
            yield f"{which}{decisions.sentence(decision)}"


def _long(standing: Standing, arm: Arm | None, variant: str) -> str:
    if arm is None:
        return variant
    if arm.measured:
        rate = figures.tflops_of(arm)
        speed = "" if rate == figures.NONE else f", {rate} TFLOPS"
        change = f", {figures.effect(arm.effect)}" if arm.effect else ""
        whose = f"measured, {arm.measured.device}{figures.standing_conditions(standing.record)}"
        return f"{_time(arm)}{speed}{change} ({whose}); {variant}".removeprefix(", ").lstrip()
    if arm.published:
        return f"{figures.published_line(arm.published)} (published); {variant}"
    if (registers := figures.registers_of(arm)) != figures.NONE:
        return f"{registers} registers (built); {variant}"
    return variant


def _verdicts(entry: Standings) -> str:
    parts = []
    for standing, point in entry.points:
        is_published = standing.record and standing.record.provenance == "published"
        several = f"{spell_point(point)} " if len(entry.candidates) > 1 else ""
        word = CHANGED if standing.changed else _status(standing)
        parts.append(f"{several}{word}{' (published)' if is_published else ''}")
    return "; ".join(parts)


def _status(standing: Standing) -> str:
    return standing.verdict.status.value if standing.verdict else NOT_RUN


NAME = "logs/EXPERIMENTS.md"
_BEGINNING = "# Experiment log\n\nRendered by `kernelexp log --write` from"
_ATTRIBUTES = "logs/.gitattributes"
# Two branches that both ran would conflict in a rendered file; git's own union driver takes both
# sides, and the next rendering puts it right.
_ATTRIBUTES_TEXT = "EXPERIMENTS.md merge=union linguist-generated\n"


def write(root: Path, document: Document, force: bool = False) -> bool:
    """Writes the log, and returns whether it was another one; UsageError if the file there does
    not begin as a rendered one, unless `force`."""
    path = root / NAME
    if not force and not _is_rendered(path):
        raise UsageError(
            f"{NAME} was not written by kernelexp, and is left as it is: move it, or overwrite it "
            "with `kernelexp log --write --force`."
        )
    text = as_markdown(document)
    with disk.FilesTogether() as files:
        if not (root / _ATTRIBUTES).exists():
            files.write(root / _ATTRIBUTES, _ATTRIBUTES_TEXT.encode())
        if path.is_file() and path.read_text(encoding="utf-8", errors="replace") == text:
            return False
        files.write(path, text.encode())
    return True


def is_current(root: Path, document: Document) -> bool:
    """Whether the file is what would be written now."""
    path = root / NAME
    return path.is_file() and path.read_bytes() == as_markdown(document).encode()


def _is_rendered(path: Path) -> bool:
    if not path.is_file():  # a link to a device has no end
        return not path.exists()
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING
