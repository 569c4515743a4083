"""Many arms on several GPUs: heats, each on one GPU with the baseline, then a final on one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.measure import measured
from kernelexp.evidence.measure.measured import Answerer, MeasurementTaken
from kernelexp.judge.statistics import racing
from kernelexp.model.arm import Arm
from kernelexp.model.limits import Limits
from kernelexp.model.measurement import Measurement, Measuring
from kernelexp.system.live import Joined, OnProgress
from kernelexp.system.process import processes
from warpsim.launch import Launch

FINAL_SHARE = 1 / 3
"""Of the time for measuring, what is kept for the final."""


def take(
    root: Path,
    arms: Mapping[str, Arm],
    measuring: Measuring,
    limits: Limits,
    answerer: Answerer,
    cards: int,
    *,
    on_progress: OnProgress | None = None,
    launches: Mapping[str, Sequence[Launch]] | None = None,
) -> MeasurementTaken:
    """Times arms by their names, the baseline first: as a race on one GPU, or in heats on several.

    `launches` are as in measured.take, for one GPU. Raises what measured.take raises.
    """
    base, *candidates = arms
    number = racing.count(len(candidates), cards)
    if number == 1:
        return measured.take(
            root, arms, measuring, limits, answerer, on_progress=on_progress, launches=launches
        )
    early, late = shares(measuring)
    dealt = racing.deal(candidates, number)
    groups = [{name: arms[name] for name in (base, *names)} for names in dealt]
    takens = side_by_side(root, groups, early, limits, answerer, on_progress=on_progress)
    return final(root, arms, takens, late, limits, answerer, on_progress=on_progress)


def shares(measuring: Measuring) -> tuple[Measuring, Measuring]:
    """Returns the settings of all heats together, and of the final."""
    budget = measuring.budget_s
    if budget is None:
        return measuring, measuring
    late = budget * FINAL_SHARE
    early = msgspec.structs.replace(measuring, budget_s=budget - late)
    return early, msgspec.structs.replace(measuring, budget_s=late)


def side_by_side(
    root: Path,
    groups: Sequence[Mapping[str, Arm]],
    measuring: Measuring,
    limits: Limits,
    answerer: Answerer,
    *,
    on_progress: OnProgress | None = None,
) -> list[MeasurementTaken]:
    """One measurement for each group of arms, each on a GPU of its own, at the same time."""
    joined = Joined(on_progress)

    def one(place: int) -> MeasurementTaken:
        tell = joined.of(place)
        return measured.take(
            root, groups[place], measuring, limits, answerer, place=place, on_progress=tell
        )

    return processes.parallel(one, range(len(groups)), workers=len(groups))


def final(
    root: Path,
    arms: Mapping[str, Arm],
    taken: Sequence[MeasurementTaken],
    measuring: Measuring,
    limits: Limits,
    answerer: Answerer,
    *,
    on_progress: OnProgress | None = None,
) -> MeasurementTaken:
    """The best of all heats once more, on one GPU and in new samples; `taken` are the heats.

    The baseline is among them, unless it is many times slower than the best: all ratios to it are
    then the heats'.
    """
    played: tuple[Measurement, ...] = tuple(heat.measurement for heat in taken)
    journals = tuple(path for heat in taken for path in heat.journals)
    names = racing.finalists(played, measuring.margin)
    if len(played) == 1 or not names:
        # One heat had them all; of several without a finalist the first says why.
        return msgspec.structs.replace(taken[0], journals=journals, heats=played[1:])
    alone = racing.among_themselves(played, measuring.margin)
    best = {name: arms[name] for name in alone or (next(iter(arms)), *names)}
    last = measured.take(root, best, measuring, limits, answerer, place=0, on_progress=on_progress)
    return msgspec.structs.replace(last, journals=(*journals, *last.journals), heats=played)
