"""What a measurement on this machine can and can't tell: A/A, and known slowdowns.

Many identical arms are timed at once, and comparisons are drawn from what was recorded: some of the
processes, two or three of the arms. Draws that share processes are not independent; `Rates` says
how many disjoint comparisons the recording holds.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.gpu.job import ArmJob, Job
from kernelexp.gpu.measure import OnProgress, measure
from kernelexp.gpu.worker import load_problem
from kernelexp.judge import stats
from kernelexp.judge.stats import LEVEL
from kernelexp.judge.verdict import decided
from kernelexp.measurement import Measurement, Options, Role, TimedArm
from kernelexp.model import Status

VERDICTS = (Status.IMPROVED, Status.REJECTED)


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """What many comparisons of one true effect came to."""

    truth: float
    """The true ratio minus 1."""
    comparisons: int
    disjoint: int
    """Comparisons that share no process and arm with another, of those that could be drawn."""
    statuses: dict[str, int]
    detected: int
    """Comparisons whose interval leaves out a ratio of 1."""
    covered: int
    """Comparisons whose interval holds the true ratio."""
    bias: float
    """Mean of the estimates minus the truth."""
    spread: float
    """Standard deviation of the estimates."""
    half_width: float
    """Median half width of the intervals."""
    detectable: float
    """Median minimal detectable effect."""

    @property
    def false_verdicts(self) -> int:
        """IMPROVED or REJECTED; false where the truth is within the margin."""
        return sum(self.statuses.get(status, 0) for status in VERDICTS)


def record_same_arms(
    knob: Knob,
    *,
    arms: int = 8,
    options: Options | None = None,
    device: str | None = None,
    on_progress: OnProgress | None = None,
) -> Measurement:
    """A/A on a GPU: the knob kernel as baseline, placebo and `arms` - 2 candidates."""
    points: list[tuple[str, Role, int]] = [*ITSELF]
    points += [(f"same-{i}", "candidate", 0) for i in range(max(1, arms - 2))]
    return measure(knob.job(points), options or RECORDING, device=device, on_progress=on_progress)


def record_injected(
    knob: Knob,
    extra: Sequence[int],
    *,
    copies: int = 2,
    options: Options | None = None,
    device: str | None = None,
    on_progress: OnProgress | None = None,
) -> Measurement:
    """The knob kernel against itself with `extra` thousandths of added work, `copies` arms of each.

    One more arm does all work twice and gives the true effects: time is linear in work, so an added
    thousandth costs a thousandth of what doubling costs.
    """
    points: list[tuple[str, Role, int]] = [*ITSELF]
    points += [(f"extra-{e}-{i}", "candidate", e) for e in extra for i in range(copies)]
    points.append((f"extra-{DOUBLE}-0", "candidate", DOUBLE))
    return measure(knob.job(points), options or RECORDING, device=device, on_progress=on_progress)


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """The calibration kernel, built: kernelexp/knob/problem.py, its cubin, a size's name."""

    problem: str
    cubin: str
    arch: str
    size: str = "full"

    def job(self, points: Sequence[tuple[str, Role, int]]) -> Job:
        """Arms of these names, roles and amounts of extra work; one cubin serves all of them."""
        problem: Any = load_problem(Path(self.problem))
        size = dict(problem.SIZES[self.size])
        arms = tuple(
            ArmJob(
                arm=TimedArm(name=name, role=role),
                cubin=self.cubin,
                arch=self.arch,
                launch=problem.launch({"extra": extra}, size, {}),
                axes={"extra": extra},
            )
            for name, role, extra in points
        )
        return Job(problem=self.problem, size=size, arms=arms)


# Twelve processes are three disjoint groups of four. Many arms share a process's time, so it takes
# longer than a measurement's.
RECORDING = Options(
    processes=12, processes_max=12, timing_s=1.0, budget_s=600.0, checks_during=2, peers=False
)
ITSELF: tuple[tuple[str, Role, int], ...] = (
    ("baseline", "baseline", 0),
    ("placebo", "placebo", 0),
)
DOUBLE = 1000


def true_effects(measurement: Measurement) -> dict[str, float]:
    """Each candidate's true effect (0.005 is 0.5% slower), from arms that do all work twice."""
    found = {effect.arm: effect.ratio - 1.0 for effect in stats.ratios(measurement)[0]}
    extra = {name: int(name.split("-")[1]) for name in found}
    doubled = statistics.fmean(found[name] for name in found if extra[name] == DOUBLE)
    return {name: doubled * extra[name] / DOUBLE for name in found if extra[name] != DOUBLE}


def draw(
    measurement: Measurement,
    bases: Sequence[int],
    candidates: Sequence[int],
    processes: int,
    count: int,
    rng: random.Random,
) -> Iterator[Measurement]:
    """`count` measurements of `processes` workers each: a base, another as placebo, a candidate."""
    for _ in range(count):
        base, placebo = rng.sample(list(bases), 2)
        candidate = rng.choice([i for i in candidates if i not in (base, placebo)])
        roles = {base: "baseline", placebo: "placebo", candidate: "candidate"}
        arms = tuple(
            msgspec.structs.replace(arm, role=roles.get(index, "peer"))
            for index, arm in enumerate(measurement.arms)
        )
        workers = tuple(rng.sample(list(measurement.workers), processes))
        yield msgspec.structs.replace(measurement, arms=arms, workers=workers, looks=(processes,))


def rates(
    drawn: Sequence[Measurement],
    truth: float,
    disjoint: int,
    margin: float = 0.01,
    level: float = LEVEL,
) -> Rates:
    """What the verdicts of these measurements come to, each of one candidate."""
    statuses: Counter[str] = Counter()
    ratios, halves, detectables = [], [], []
    detected = covered = 0
    for each in drawn:
        (effect,), placebo = stats.ratios(each, level)
        statuses[decided(effect, placebo, margin).status] += 1
        ratios.append(effect.ratio)
        halves.append((effect.high - effect.low) / 2.0)
        detectables.append(effect.detectable)
        detected += not effect.low <= 1.0 <= effect.high
        covered += effect.low <= 1.0 + truth <= effect.high
    return Rates(
        truth=truth,
        comparisons=len(drawn),
        disjoint=disjoint,
        statuses=dict(statuses),
        detected=detected,
        covered=covered,
        bias=statistics.fmean(ratios) - 1.0 - truth,
        spread=statistics.stdev(ratios) if len(ratios) > 1 else math.nan,
        half_width=statistics.median(halves),
        detectable=statistics.median(detectables),
    )


def of_same_arms(
    measurement: Measurement,
    processes: int = 4,
    count: int = 300,
    margin: float = 0.01,
    seed: int = 1,
) -> Rates:
    """A/A rates from what `record_same_arms` recorded."""
    arms = [i for i, arm in enumerate(measurement.arms) if arm.role != "peer"]
    rng = random.Random(seed)
    drawn = list(draw(measurement, arms, arms, processes, count, rng))
    disjoint = len(measurement.workers) // processes * (len(arms) // 2)
    return rates(drawn, 0.0, disjoint, margin)


def of_injected(
    measurement: Measurement,
    processes: int = 4,
    count: int = 200,
    margin: float = 0.01,
    seed: int = 1,
) -> dict[str, Rates]:
    """Rates for each amount of extra work (in thousandths) that `record_injected` recorded."""
    truths = true_effects(measurement)
    bases = [i for i, a in enumerate(measurement.arms) if a.role in ("baseline", "placebo")]
    rng = random.Random(seed)
    groups: dict[str, list[int]] = {}
    for index, arm in enumerate(measurement.arms):
        if arm.name in truths:
            groups.setdefault(arm.name.split("-")[1], []).append(index)
    found = {}
    for extra, candidates in groups.items():
        drawn = list(draw(measurement, bases, candidates, processes, count, rng))
        disjoint = len(measurement.workers) // processes * min(len(candidates), len(bases))
        truth = truths[measurement.arms[candidates[0]].name]
        found[extra] = rates(drawn, truth, disjoint, margin)
    return found
