"""What each candidate waits for: one rule for an experiment's page, the first page and `show`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp.dossier.standing import Standing, Standings
from kernelexp.judge.verdict import WRONG
from kernelexp.logs import records
from kernelexp.model.arm import Status, Verdict
from kernelexp.model.experiment import Point, holds, spell_point
from kernelexp.model.record import Record
from kernelexp.report.document import figures
from kernelexp.report.log import logbook
from kernelexp.report.log.listing import RECORDS_SHOWN
from kernelexp.services import kernel_logs
from kernelexp.services.kernel_logs import KernelLog

RecordsOf: TypeAlias = Callable[[str], Sequence[Record]]
"""The latest records of an experiment that timed something, on other cards too."""


def records_of(root: Path) -> RecordsOf:
    """Reads them from the records of a project."""
    return lambda name: records.last_timed(root, name, RECORDS_SHOWN, {})


class Waits(Enum):
    """What a candidate waits for, the first first."""

    BASELINE = "its baseline is wrong"
    RUN = "a run"
    MENDING = "to be mended"
    TIME = "a time"
    ACCEPTANCE = "to be accepted"
    CARD = "a choice between cards"
    LONGER = "a longer run"
    REJECTION = "to be rejected"


DECISIONS = (Waits.ACCEPTANCE, Waits.CARD, Waits.REJECTION)
"""Those that a person's word ends."""


class PendingArm(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that waits for something."""

    waits: Waits
    number: int
    """Of the candidate, from 1."""
    point: str
    gain: float = 0.0
    """The least that its interval says it saves, as a share of the baseline's time."""
    kept: str = ""
    """Why there is no choice left: what the kernel has now."""
    is_default: bool = False


def of_log(log: KernelLog, records_of: RecordsOf) -> dict[str, tuple[PendingArm, ...]]:
    """What each experiment and step of a kernel waits for, which may be nothing."""
    wrong, lineage = found_wrong(log.standings), _Lineage(log)
    result = {}
    for name, entry in log.standings.items():
        contested = kernel_logs.by_card(entry, records_of(name)) if name in log.experiments else ()
        every = list(_of_experiment(log, name, contested, name in wrong, lineage))
        alone = all(one.waits is Waits.REJECTION for one in every)
        # Of several candidates, those that lost to another need no word of their own.
        result[name] = tuple(
            one
            for one in every
            if one.waits is not Waits.REJECTION
            or (alone and len(every) == len(entry.candidates))
            or _is_predicted(entry, entry.candidates[one.number - 1])
        )
    return result


def _of_experiment(
    log: KernelLog, name: str, contested: Collection[str], is_wrong: bool, lineage: _Lineage
) -> Iterator[PendingArm]:
    entry = log.standings[name]
    for number, (standing, point) in enumerate(entry.points, 1):
        waits = _waits(
            entry, standing, spell_point(point) in contested, is_wrong, name in log.history
        )
        if waits is not None:
            settled = lineage.kept(name, point) if waits is Waits.ACCEPTANCE else ("", False)
            yield PendingArm(
                waits=waits,
                number=number,
                point=spell_point(point),
                gain=1 - standing.effect.high if standing.effect else 0.0,
                kept=settled[0],
                is_default=settled[1],
            )


def _waits(
    entry: Standings, standing: Standing, contested: bool, is_wrong: bool, is_step: bool
) -> Waits | None:
    written = entry.experiment.decision.strip().lower() not in ("", "none yet")
    decided = written or any(one.decision for one in entry.candidates)
    own = written or standing.decision is not None
    if is_wrong and not decided:
        return Waits.BASELINE
    if is_placebo(standing):
        return None if decided or is_step else Waits.REJECTION
    if standing.verdict is None or standing.changed:
        return Waits.RUN
    if own:
        return None
    status = standing.verdict.status
    if status is Status.UNMEASURED:
        return Waits.TIME
    if standing.is_wrong:
        return Waits.REJECTION if _is_predicted(entry, standing) else Waits.MENDING
    if status is Status.INCONCLUSIVE and standing.record and standing.record.measurement:
        return Waits.LONGER
    if is_step:
        return None
    if contested:
        return Waits.CARD
    if status is Status.IMPROVED:
        return Waits.ACCEPTANCE
    return Waits.REJECTION if _is_slower(standing) and not decided else None


def _is_predicted(entry: Standings, standing: Standing) -> bool:
    """Whether the hypothesis says of a wrong candidate that it is: "Predicted: INCORRECT"."""
    status = standing.verdict.status if standing.verdict else None
    words = " ".join(entry.experiment.hypothesis.split())
    return standing.is_wrong and re.search(rf"Predicted: {status}\b", words) is not None


def is_predicted(standings: Standings) -> bool:
    """Whether what is wrong with its candidates is what the hypothesis says."""
    wrong = [one for one in standings.candidates if one.is_wrong]
    return bool(wrong) and all(_is_predicted(standings, one) for one in wrong)


def _is_slower(standing: Standing) -> bool:
    """Whether it is slower at every size that was timed."""
    sizes_timed = standing.record.sizes if standing.record else ()
    verdicts = [verdict for one in sizes_timed for verdict in one.verdicts.values()]
    return (
        standing.verdict is not None
        and standing.verdict.status is Status.REJECTED
        and not any(verdict.status is Status.IMPROVED for verdict in verdicts)
    )


class _Lineage:
    """What the experiments of a kernel build on: the improvements that later baselines have, or the
    defaults, though nobody has written that down."""

    def __init__(self, log: KernelLog) -> None:
        self._defaults = log.defaults
        self._order = {name: place for place, name in enumerate(log.experiments)}
        self._bases = {name: one.experiment.baseline for name, one in log.experiments.items()}
        self._last = {_key(base): name for name, base in self._bases.items()}
        self._heirs: dict[_Key, tuple[str, str]] = {}
        """By baseline, the candidate that took its place, and the last experiment on that."""
        for name, entry in log.experiments.items():
            for number, (standing, point) in enumerate(entry.points, 1):
                own, by = _key(self._bases[name]), self._successor(name, point)
                is_better = standing.verdict and standing.verdict.status is Status.IMPROVED
                if by and is_better and {**log.defaults, **self._bases[name]} != log.defaults:
                    called = f"{name}:{number}" if len(entry.candidates) > 1 else name
                    self._heirs[own] = max(
                        self._heirs.get(own, ("", "")),
                        (called, by),
                        key=lambda heir: self._order.get(heir[1], -1),
                    )

    def kept(self, name: str, point: Point) -> tuple[str, bool]:
        """Says why an improvement needs no choice any more, empty where it does; and whether that
        is for being the default."""
        if self._is_default(name, point):
            return "it is the default already", True
        if by := self._successor(name, point):
            return f"{by} builds on it", False
        heir, by = self._heirs.get(_key(self._bases[name]), ("", ""))
        if heir and self._order[by] >= self._order[name]:
            on = f", on which {by} builds" if by != heir.partition(":")[0] else ", the default"
            return f"its baseline gave way to {heir}{on}", False
        return "", False

    def _is_default(self, name: str, point: Point) -> bool:
        return bool(point) and {**self._defaults, **self._bases[name], **point} == self._defaults

    def _successor(self, name: str, point: Point) -> str:
        """The last experiment whose baseline has this candidate's axes, or its own where it is the
        default; empty where nothing builds on it."""
        own = {**self._bases[name], **point}
        later = (
            one
            for one in self._last.values()
            if self._order[one] > self._order[name] and point and holds(own, self._bases[one])
        )
        found = max(later, key=lambda one: self._order[one], default="")
        return found or (name if self._is_default(name, point) else "")


_Key: TypeAlias = frozenset[tuple[str, str]]


def _key(base: Point) -> _Key:
    return frozenset((axis, repr(value)) for axis, value in base.items())


def faster(log: KernelLog, records_of: RecordsOf) -> str:
    """Says which improvement that waits to be accepted took less time than the current best, in a
    sentence; empty where none did, or where times are not known or of different sizes."""
    best = logbook.best_arm(log)[0]
    every = [
        (figures.timed(standing.arm), name, one.number, len(log.standings[name].candidates))
        for name, own in of_log(log, records_of).items()
        for one in own
        if one.waits is Waits.ACCEPTANCE and not one.kept
        for standing in (log.standings[name].candidates[one.number - 1],)
        if standing.arm and best and logbook.took_less(standing.arm, best)
    ]
    if not every:
        return ""
    time, name, number, count = min(every)
    called = f"{name}:{number}" if count > 1 else name
    return f"{called} waits for a decision too, and took less time in its own run: {time}."


# ---- the page's sentences ------------------------------------------------------------------------


def sentences(
    name: str, standings: Standings, pending: Sequence[PendingArm], wrong: str = ""
) -> Iterator[str]:
    """Yields a sentence for each command that an experiment waits for, the most urgent first;
    `wrong` is the experiment that showed its baseline to be wrong."""
    for waits in Waits:
        own = [one for one in pending if one.waits is waits]
        if own and (words := _sentence(waits, name, standings, own, wrong)):
            yield words


def _sentence(
    waits: Waits, name: str, standings: Standings, own: Sequence[PendingArm], wrong: str
) -> str:
    several = len(standings.candidates) > 1
    called = [f"{name}:{one.number}" if several else name for one in own]
    first, points = called[0], " and ".join(one.point for one in own)
    if waits is Waits.BASELINE:
        return (
            f"Next: mend the baseline, which `kernelexp emulate {wrong or name}` finds wrong; then "
            f"`kernelexp run {name}`."
        )
    if waits is Waits.RUN:
        return f"Next: `kernelexp run {name}`."
    if waits is Waits.MENDING:
        return (
            f"Next: `kernelexp emulate {name}` says where; mend it, then `kernelexp run {name}`; "
            f"or drop it: `kernelexp decide reject {first}`."
        )
    if waits is Waits.TIME:
        return timing(standings.candidates[0].variant.arch, [name])
    if waits is Waits.ACCEPTANCE:
        return _acceptance(name, several, sorted(own, key=lambda one: -one.gain))
    if waits is Waits.CARD:
        return (
            f"Next: decide for the card that it is for: `kernelexp decide accept {first}`, or "
            f"`kernelexp decide reject {first}`."
        )
    if waits is Waits.LONGER:
        verdicts = [standings.candidates[one.number - 1].verdict for one in own]
        if all(verdict and verdict.reason == "on_the_edge" for verdict in verdicts):
            return (
                f"Next: `kernelexp run {name} --margin PERCENT`, with the change that matters to "
                f"you, decides on {points}; a longer run hardly will."
            )
        took = _took(standings, own)
        than = f"more than the {took} of its run" if took else "more than its run took"
        whose = f" may decide on {points}" if several else " may decide"
        return f"Next: `kernelexp run {name} --budget TIME`, with {than},{whose}."
    if all(map(is_placebo, standings.candidates)):
        return f"Nothing to time: `kernelexp decide reject {name}`, or give it other values."
    if is_predicted(standings):
        return f"As predicted, so there is nothing to mend: `kernelexp decide reject {name}`."
    return f"Next: `kernelexp decide reject {name}`; `kernelexp explain {name}` says why."


def _acceptance(name: str, several: bool, ranked: Sequence[PendingArm]) -> str:
    """What is open, before what is the default, before what later experiments have settled."""
    choice = [one for one in ranked if not one.kept] or [one for one in ranked if one.is_default]
    if not choice:
        why = "; ".join(dict.fromkeys(one.kept for one in ranked))
        return f"Nothing to choose: {why}. `decision:` in experiments.yaml writes that down."
    called = [f"{name}:{one.number}" if several else name for one in choice]
    more = "".join(f", or `{one}`" for one in called[1:])
    why = f": {choice[0].kept}" if choice[0].kept else ""
    return f"Next: `kernelexp decide accept {called[0]}`{more}{why}."


def _took(standings: Standings, own: Sequence[PendingArm]) -> str:
    record = standings.candidates[own[0].number - 1].record
    seconds = record.measurement.elapsed_s if record and record.measurement else 0.0
    return f"{seconds:.0f} s" if seconds else ""


def timing(arch: str, names: Sequence[str]) -> str:
    """The step that times experiments."""
    return f"Next, on a GPU of {arch}: `kernelexp run {' '.join(names)}`."


# ---- what else is known of a standing ------------------------------------------------------------


def wrong_baseline(standings: Standings) -> Verdict | None:
    """Returns the verdict against the candidates' baseline, as it is now."""
    arms = (c.record.baseline for c in standings.candidates if c.record and not c.changed)
    wrong = (arm.refused for arm in arms if arm.refused and arm.refused.status in WRONG)
    return next(wrong, None)


def found_wrong(every: Mapping[str, Standings]) -> dict[str, str]:
    """Maps each experiment of a kernel whose baseline is wrong to the experiment whose run showed
    it."""
    wrong = [name for name in every if wrong_baseline(every[name])]
    found: dict[str, str] = {name: name for name in wrong}
    for name in every.keys() - found.keys():
        own = every[name].experiment.baseline
        if other := next((one for one in wrong if every[one].experiment.baseline == own), ""):
            found[name] = other
    return found


def is_placebo(standing: Standing) -> bool:
    """Whether it is as it ran, untimed: the instructions of its baseline, launched alike."""
    same = standing.candidate is not None and standing.candidate.same_code
    return same and not standing.changed and not (standing.arm and standing.arm.measured)
