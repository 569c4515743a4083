"""The first page's answers: what is best now, changed, regressed, waits, was never timed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from kernelexp.dossier.standing import Standings
from kernelexp.judge.consistency import PROBLEM, unrecorded
from kernelexp.judge.verdict import WRONG
from kernelexp.model.arm import Status
from kernelexp.model.axes import spell_point
from kernelexp.model.record import Record
from kernelexp.report.charts import history
from kernelexp.report.document import figures
from kernelexp.report.document.document import Span, status, text_of
from kernelexp.report.log import logbook
from kernelexp.report.log.log import KernelLog
from kernelexp.report.site import answer
from kernelexp.report.site.front.outlook import (
    Note,
    Outlook,
    ProfileOf,
    RecordsOf,
    evidence_of,
    outlook,
)

LATEST = 8
"""How many of the latest records are listed."""
_SLOWER = 1.01
"""Published times have no interval: what is slower by less than this is no regression."""
_UNDECIDED = ("", "none yet")
_UNCLEAR = (Status.INCONCLUSIVE, Status.INVALID)


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The first page's answers."""

    @property
    def cautions(self) -> tuple[str, ...]:
        """Cautions on figures that are current, and hold all the same."""
        if any("emulated" in text_of(note.state) for note in self.unmeasured if note.state):
            return (
                "What was never timed has counts of a small size: at another they may change "
                "otherwise, even in the other direction.",
                *self.guesses,
            )
        return self.guesses

    outlooks: tuple[Outlook, ...]
    latest: tuple[Note, ...]
    regressed: tuple[Note, ...]
    waiting: tuple[Note, ...]
    doubtful: tuple[Note, ...]
    """What is not to be relied on: run before something changed, inconclusive, contradicted."""
    partial: tuple[Note, ...]
    """Of early versions: what else is measured, but nobody knows by which problem.py."""
    unmeasured: tuple[Note, ...]
    guesses: tuple[str, ...] = ()
    """Where a draft's tolerance decides what is right."""


FileOf: TypeAlias = Callable[[str], str]
"""The text of a file of the project; empty where there is none."""


def overview(
    logs: Sequence[KernelLog],
    profile_of: ProfileOf,
    records_of: RecordsOf = lambda _: (),
    file_of: FileOf = lambda _: "",
) -> Overview:
    """All of them, of every kernel."""
    every = [pair for log in logs for pair in log.standings.items()]
    wrong = [
        Note(id=name, text=f"its baseline is wrong: `kernelexp emulate {found}` says where")
        for log in logs
        for name, found in answer.found_wrong(log.standings).items()
    ]
    doubtful = (*wrong, *_doubtful(every))
    return Overview(
        outlooks=tuple(outlook(log, profile_of, records_of) for log in logs),
        latest=tuple(_latest(every, records_of)),
        regressed=tuple(note for log in logs for note in _regressed(log)),
        waiting=tuple(note for log in logs for note in _waiting(log)),
        doubtful=doubtful,
        partial=tuple(_partial(every, {note.id for note in doubtful})),
        unmeasured=tuple(_unmeasured(every)),
        guesses=_guesses([log.kernel for log in logs], file_of),
    )


def guess(kernel: str, file_of: FileOf) -> str:
    """Says that the tolerance is as it was drafted, in a sentence; empty where it isn't."""
    return next(iter(_guesses([kernel], file_of)), "")


def _guesses(kernels: Iterable[str], file_of: FileOf) -> tuple[str, ...]:
    """Says that the tolerances of these kernels are as they were drafted, in one sentence."""
    every = dict.fromkeys(kernels)
    drafted = {kernel: place for kernel in every if (place := _drafted(kernel, file_of))}
    if not drafted:
        return ()
    whose = " and ".join(drafted) if len(drafted) < 3 else f"{len(drafted)} kernels"
    places = ", ".join(drafted.values())
    return (f"The drafted tolerance of {whose} is a guess: {places}.",)


def _drafted(kernel: str, file_of: FileOf) -> str:
    """The line of the tolerance that nobody has edited; empty where there is none."""
    file = f"variants/{kernel}/problem.py"
    lines = file_of(file).splitlines()
    line = next((at for at, text in enumerate(lines, 1) if 'why="a guess: roundings' in text), 0)
    return f"{file}:{line}" if line else ""


def _latest(every: Iterable[tuple[str, Standings]], records_of: RecordsOf) -> Iterator[Note]:
    """The latest runs here, one line for each experiment, with verdicts that differ between cards:
    publications have no date of ours."""
    dated = [
        (record.created, name, entry)
        for name, entry in every
        if (record := max(_runs(entry), key=lambda item: item.created, default=None))
    ]
    for created, name, entry in sorted(dated, key=lambda item: item[:2], reverse=True)[:LATEST]:
        states = list(dict.fromkeys(map(logbook.verdict, entry.candidates)))
        changes = [
            figures.ratio(candidate.arm.measured.effect)
            for candidate in entry.candidates
            if candidate.arm
            and candidate.arm.measured
            and candidate.arm.measured.effect
            and not candidate.changed
        ]
        words = [", ".join(changes)] if 0 < len(changes) <= 3 else []
        words += [one.removesuffix(".") for one in logbook.by_card(entry, records_of(name))]
        change = f" ({'; '.join(words)})" if words else ""
        yield Note(
            id=name,
            text=f"{entry.experiment.title}{change}",
            state=states[0] if len(states) == 1 else ", ".join(map(text_of, states)),
            date=created[:10],
        )


def _runs(entry: Standings) -> list[Record]:
    return [c.record for c in entry.candidates if c.record and c.record.provenance == "run"]


def _regressed(log: KernelLog) -> Iterator[Note]:
    """Steps of the history that are slower than what they were timed beside, or as they were
    published than the best before them; and what is wrong now."""
    for name, entry in log.history.items():
        arm = None if entry.candidates[0].changed else entry.candidates[0].arm
        effect = arm.measured.effect if arm and arm.measured else None
        if effect and effect.ratio > _SLOWER:
            yield Note(id=name, text=f"{entry.experiment.title}: {figures.effect(effect)}")
    for plot in history.plots((log,)):
        best: tuple[float, str] | None = None
        more = plot.y.unit == "TFLOPS"
        for mark in plot.series[0].marks:
            cost, name = (1 / mark.y if more else mark.y), plot.x.categories[int(mark.x)]
            step = log.history[name].candidates[0].arm if name in log.history else None
            if step and step.measured:
                continue  # in a run of its own, on a card as warm as it was then
            if best and cost > best[0] * _SLOWER:
                change = figures.percent(cost / best[0])
                yield Note(
                    id=name,
                    text=f"{mark.label}: {change} in time to {best[1]} ({plot.series[0].name})",
                )
            best = min(best, (cost, name)) if best else (cost, name)
    for name, entry in log.standings.items():
        if wrong := answer.wrong_baseline(entry):
            yield Note(id=name, text=f"baseline: {wrong.sentence}", state=status(wrong.status))
        for candidate in entry.candidates:
            if candidate.verdict and candidate.verdict.status in WRONG and not candidate.changed:
                yield Note(id=name, text=entry.experiment.title, state=logbook.verdict(candidate))


def _waiting(log: KernelLog) -> Iterator[Note]:
    """Experiments with a verdict of now, about which nobody has said what becomes of it."""
    for name, entry in log.experiments.items():
        if entry.experiment.decision.strip().lower() not in _UNDECIDED:
            continue
        for standing, point in zip(entry.candidates, entry.experiment.candidates, strict=True):
            now = standing.verdict.status if standing.verdict and not standing.changed else None
            if standing.decision is None and now is Status.IMPROVED:
                effect = (
                    standing.arm.measured.effect if standing.arm and standing.arm.measured else None
                )
                change = f": {figures.effect(effect)}" if effect else ""
                yield Note(
                    id=name, text=f"{spell_point(point)}{change}", state=logbook.verdict(standing)
                )


def _doubtful(every: Iterable[tuple[str, Standings]]) -> Iterator[Note]:
    """Yields experiments not to be relied on as they stand, each with its reason."""
    for name, entry in every:
        words = list(dict.fromkeys(word for c in entry.candidates for word in c.changed))
        if words:
            yield Note(id=name, text=f"changed since it ran: {', '.join(words)}")
            continue
        known = [c for c in entry.candidates if c.verdict]
        unclear = [c for c in known if c.verdict and c.verdict.status in _UNCLEAR]
        if unclear:
            both = zip(entry.candidates, entry.experiment.candidates, strict=True)
            points = [spell_point(point) for c, point in both if c in unclear]
            which = f": {'; '.join(points)}" if len(entry.candidates) > 1 else ""
            text = f"{entry.experiment.title}{which}"
            yield Note(id=name, text=text, state=logbook.verdict(unclear[0]))
        elif any(c.candidate and c.candidate.reproduces is False for c in known):
            yield Note(id=name, text="an earlier run came out otherwise")


def _partial(every: Iterable[tuple[str, Standings]], others: Collection[str]) -> Iterator[Note]:
    for name, entry in every:
        records = [c.record for c in entry.candidates if c.verdict and c.record]
        if name not in others and any(r.measurement and PROBLEM in unrecorded(r) for r in records):
            yield Note(id=name, text=entry.experiment.title)


def _unmeasured(every: Iterable[tuple[str, Standings]]) -> Iterator[Note]:
    """Experiments none of whose candidates was ever timed, nor published with a time."""
    for name, entry in every:
        arms = [candidate.arm for candidate in entry.candidates if candidate.arm]
        if not any(arm.measured or arm.published for arm in arms):
            words = dict.fromkeys(map(evidence_of, entry.candidates))
            yield Note(id=name, text=entry.experiment.title, state=Span(", ".join(words), "dim"))
