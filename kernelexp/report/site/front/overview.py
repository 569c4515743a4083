"""The first page's answers: what is best, changed, regressed, waiting, or never timed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from kernelexp.dossier.standing import Standings
from kernelexp.judge.consistency import PROBLEM, unrecorded
from kernelexp.model.arm import Status
from kernelexp.model.experiment import spell_point
from kernelexp.report.charts import changes as change_charts
from kernelexp.report.document import figures
from kernelexp.report.document.document import Span, status, text_of
from kernelexp.report.log import logbook, pending
from kernelexp.report.log.pending import PendingArm, RecordsOf, Waits
from kernelexp.report.site.front.outlook import Note, Outlook, ProfileOf, evidence_of, outlook
from kernelexp.services import kernel_logs
from kernelexp.services.kernel_logs import KernelLog

LATEST = 8
"""How many of the latest records are listed."""
_SLOWER = 1.01
"""Published times have no interval: what is slower by less than this is no regression."""
_UNCLEAR = (Status.INCONCLUSIVE, Status.INVALID)


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The first page's answers."""

    @property
    def cautions(self) -> tuple[str, ...]:
        """Cautions that apply to current figures."""
        if any("emulated" in text_of(one) for note in self.unmeasured for one in note.states):
            return (
                "What was never timed has counts of a small size: at another they may change "
                "otherwise, even in the other direction.",
                *self.guesses,
            )
        return self.guesses

    outlooks: tuple[Outlook, ...]
    latest: tuple[Note, ...]
    regressed: tuple[Note, ...]
    predicted: tuple[str, ...]
    """Experiments that are wrong as their hypotheses say."""
    waiting: tuple[Note, ...]
    """What a choice is to be made of: the most gained first, then what cards disagree about."""
    settled: tuple[Note, ...]
    """Decisions that are clear, and only to be written down."""
    unclear: tuple[Note, ...]
    """What its run could not tell."""
    doubtful: tuple[Note, ...]
    """What is not to be relied on: run before something changed, of a wrong baseline,
    contradicted."""
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
    pending_of: Mapping[str, Sequence[PendingArm]] | None = None,
) -> Overview:
    """All of them, of every kernel; `pending_of`: what each experiment waits for, where that is
    known already."""
    if pending_of is None:
        found = [pending.of_log(log, records_of) for log in logs]
        pending_of = {name: own for one in found for name, own in one.items()}
    every = [pair for log in logs for pair in log.standings.items()]
    wrong = [
        Note(id=name, text=f"its baseline is wrong: `kernelexp emulate {found}` says where")
        for log in logs
        for name, found in pending.found_wrong(log.standings).items()
    ]
    doubtful = (*wrong, *_doubtful(every))
    waiting = [pair for log in logs for pair in _to_decide(log, pending_of)]
    return Overview(
        outlooks=tuple(outlook(log, profile_of, records_of, pending_of) for log in logs),
        latest=tuple(_latest(every, records_of)),
        regressed=tuple(note for log in logs for note in _regressed(log)),
        predicted=tuple(name for name, entry in every if pending.is_predicted(entry)),
        waiting=tuple(_ranked([one for one in waiting if not _is_settled(one[0])])),
        settled=tuple(dict.fromkeys(note for one, note in waiting if _is_settled(one))),
        unclear=tuple(_unclear(every)),
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
    dated = []
    for name, entry in every:
        runs = [record.created for record in entry.by_run.values() if record.provenance == "run"]
        if runs:
            dated.append((max(runs), name, entry))
    for created, name, entry in sorted(dated, key=lambda item: item[:2], reverse=True)[:LATEST]:
        states = list(dict.fromkeys(map(logbook.verdict, entry.candidates)))
        changes = [figures.ratio(one.effect) for one in entry.candidates if one.effect]
        words = [", ".join(changes)] if 0 < len(changes) <= 3 else []
        cards = kernel_logs.by_card(entry, records_of(name))
        words += [f"{point}: {verdicts}" for point, verdicts in cards.items()]
        change = f" ({'; '.join(words)})" if words else ""
        yield Note(
            id=name,
            text=f"{entry.experiment.title}{change}",
            states=tuple(states),
            date=created[:10],
        )


def _regressed(log: KernelLog) -> Iterator[Note]:
    """Steps of the history that are slower than what they were timed beside, or as they were
    published than the best before them; and what is wrong now, but where that was predicted."""
    for name, entry in log.history.items():
        effect = entry.candidates[0].effect
        if effect and effect.ratio > _SLOWER:
            yield Note(id=name, text=f"{entry.experiment.title}: {figures.effect(effect)}")
    for plot in change_charts.of_history((log,)):
        best: tuple[float, str] | None = None
        more = plot.y.unit == "TFLOPS"
        for mark in plot.series[0].marks:
            cost, name = (1 / mark.y if more else mark.y), plot.x.categories[int(mark.x)]
            step = log.history[name].candidates[0].arm if name in log.history else None
            if step and step.measured:
                continue  # in a run of its own, on a card as warm as it was then
            if best and cost > best[0] * _SLOWER:
                change = f"{figures.percent(cost / best[0])} in time to {best[1]}"
                yield Note(id=name, text=f"{mark.label}: {change} ({plot.series[0].name})")
            best = min(best, (cost, name)) if best else (cost, name)
    for name, entry in log.standings.items():
        if wrong := pending.wrong_baseline(entry):
            yield Note(id=name, text=f"baseline: {wrong.sentence}", states=(status(wrong.status),))
        for one in () if pending.is_predicted(entry) else entry.candidates:
            if one.is_wrong and not one.changed:
                yield Note(id=name, text=entry.experiment.title, states=(logbook.verdict(one),))


def _to_decide(
    log: KernelLog, pending_of: Mapping[str, Sequence[PendingArm]]
) -> Iterator[tuple[PendingArm, Note]]:
    """Yields what only a person's word ends, in the order of the file."""
    for name, entry in log.experiments.items():
        for one in pending_of.get(name, ()):
            standing = entry.candidates[one.number - 1]
            if one.waits not in pending.DECISIONS:
                continue
            change = figures.effect(standing.effect)
            at = figures.standing_conditions(standing.record)
            words = [f"{one.point}: {change}{at}" if change else one.point, one.kept]
            if one.waits is Waits.CARD:
                words.append("cards disagree")
            elif one.waits is Waits.REJECTION:
                words = [entry.experiment.title, "as predicted" * pending.is_predicted(entry)]
            text = "; ".join(filter(None, words))
            yield one, Note(id=name, text=text, states=(logbook.verdict(standing),))


def _is_settled(one: PendingArm) -> bool:
    return bool(one.kept) or one.waits is Waits.REJECTION


def _ranked(waiting: Sequence[tuple[PendingArm, Note]]) -> Iterator[Note]:
    """Experiments by what the best of their candidates gains at least."""
    best: dict[str, float] = {}
    for one, note in waiting:
        best[note.id] = max(one.gain, best.get(note.id, one.gain))
    order = sorted(waiting, key=lambda pair: (-best[pair[1].id], pair[1].id, -pair[0].gain))
    yield from (note for _, note in order)


def _unclear(every: Iterable[tuple[str, Standings]]) -> Iterator[Note]:
    """Yields experiments with candidates that their run could not judge, by their names where there
    are others."""
    for name, entry in every:
        own = [
            (one, point)
            for one, point in entry.points
            if one.verdict and not one.changed and one.verdict.status in _UNCLEAR
        ]
        if own:
            points = "; ".join(spell_point(point) for _, point in own)
            which = f": {points}" if len(entry.candidates) > 1 else ""
            text = f"{entry.experiment.title}{which}"
            yield Note(id=name, text=text, states=(logbook.verdict(own[0][0]),))


def _doubtful(every: Iterable[tuple[str, Standings]]) -> Iterator[Note]:
    """Yields experiments not to be relied on as they stand, each with its reason."""
    for name, entry in every:
        words = list(dict.fromkeys(word for c in entry.candidates for word in c.changed))
        if words:
            yield Note(id=name, text=f"changed since it ran: {', '.join(words)}")
            continue
        if any(c.candidate and c.candidate.reproduces is False for c in entry.candidates):
            yield Note(id=name, text="an earlier run came out otherwise")


def _partial(every: Iterable[tuple[str, Standings]], others: Collection[str]) -> Iterator[Note]:
    for name, entry in every:
        timed = (record for record in entry.by_run.values() if record.measurement)
        if name not in others and any(PROBLEM in unrecorded(record) for record in timed):
            yield Note(id=name, text=entry.experiment.title)


def _unmeasured(every: Iterable[tuple[str, Standings]]) -> Iterator[Note]:
    """Experiments none of whose candidates was ever timed, nor published with a time."""
    for name, entry in every:
        arms = [candidate.arm for candidate in entry.candidates if candidate.arm]
        if not any(arm.measured or arm.published for arm in arms):
            words = dict.fromkeys(map(evidence_of, entry.candidates))
            yield Note(
                id=name, text=entry.experiment.title, states=(Span(", ".join(words), "dim"),)
            )
