"""An interval for the ratio of two arms' times from samples, clustered over processes.

A process is one draw of where code and data lie, so its thousand pairs are one observation: its
median log ratio. The interval is Student's t over those medians. Alternatives and what they reach
are in docs/verdicts.md, from benchmarks/verdict_simulation.py.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, wraps
from typing import TypeVar

import msgspec

from kernelexp.model.measurement import (
    EARLY_LOOKS,
    LOOKS_MAX,
    Block,
    Conditions,
    Effect,
    Estimate,
    Measurement,
    Row,
    Times,
    Worker,
)

LEVEL = 0.99
# Of the risk, for each of a race's early looks: with two processes an interval is so wide that only
# an arm many times slower than the others is settled.
EARLY_SHARE = 0.1
# A block is left out when the SM clock after it is this far from the clock before it, or when the
# card was slowed for heat or by the board. Running into the power limit alone is a large GEMM's
# ordinary state, and pairs cancel its slow drift.
CLOCK_CHANGE = 0.05
DISTRUSTED = frozenset(
    ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
)
# Of a process's pairs, left out of its mean at each end: what the machine's other work disturbed.
TRIMMED = 0.05
# The minimal detectable effect is the true effect that this share of measurements would detect.
POWER = 0.8


Result = TypeVar("Result")


def _once(compute: Callable[[Measurement], Result]) -> Callable[[Measurement], Result]:
    """Keeps what the last few measurements gave: a verdict, what qualifies it and whether a record
    agrees with its samples are figures of the same measurement, for one candidate after another."""
    latest: deque[tuple[Measurement, Result]] = deque(maxlen=4)

    @wraps(compute)
    def find(measurement: Measurement) -> Result:
        for known, result in tuple(latest):
            if known is measurement:
                return result
        result = compute(measurement)
        latest.append((measurement, result))
        return result

    return find


@_once
def estimate(measurement: Measurement) -> Estimate:
    """Everything that a measurement's samples say."""
    effects, placebo = ratios(measurement)
    return Estimate(
        effects=effects,
        placebo=placebo,
        peers=tuple(_peers(measurement)),
        times=times(measurement),
        conditions=conditions(measurement.workers),
    )


@_once
def ratios(measurement: Measurement) -> tuple[tuple[Effect, ...], Effect | None]:
    """The candidates' ratios and the placebo's, at LEVEL for all of them and all looks.

    A candidate that no process timed has none.
    """
    base = measurement.position("baseline")
    if base is None:
        return (), None
    candidates = [i for i, arm in enumerate(measurement.arms) if arm.role == "candidate"]
    effects = [_ratio(measurement, i, base, (1.0 - LEVEL) / len(candidates)) for i in candidates]
    placebo = measurement.position("placebo")
    beside = None if placebo is None else _ratio(measurement, placebo, base, 1.0 - LEVEL)
    return tuple(effect for effect in effects if effect is not None), beside


def _ratio(measurement: Measurement, arm: int, base: int, risk: float) -> Effect | None:
    name = measurement.arms[arm].name
    share = share_of_arm(measurement, name)
    effect = clustered(measurement.workers, arm, base, name, risk * share, measurement.version)
    printed = measurement.printed
    if effect is None or printed is None or printed.is_time:
        return effect
    return msgspec.structs.replace(effect, unit=printed.unit, more=printed.better == "more")


def share_of_arm(measurement: Measurement, name: str) -> float:
    """The share of the look that settled an arm; of the last look where none has."""
    departure = measurement.departure(name)
    look = departure.look if departure else len(measurement.looks)
    return share_of_look(look, measurement.options.race)


def share_of_look(look: int, race: bool = False) -> float:
    """The part of the risk that the `look`-th look may use: half the first, the rest the others.

    A race's looks after 2 and 3 processes use a tenth each, from the share of the look after 4. The
    parts sum to 1, so whenever sampling stops, and whatever made it stop, the interval covers with
    at least LEVEL (Bonferroni over the looks).
    """
    early = len(EARLY_LOOKS) if race else 0
    if look > LOOKS_MAX + early:
        raise ValueError(f"{look} looks, and the risk is shared among {LOOKS_MAX + early}")
    if look <= early:
        return EARLY_SHARE
    return 0.5 - early * EARLY_SHARE if look <= early + 1 else 0.5 / (LOOKS_MAX - 1)


def clustered(
    workers: Sequence[Worker], arm: int, base: int, name: str, risk: float, version: int = 1
) -> Effect | None:
    """The ratio of `arm` to `base` over processes; None where no process timed both."""
    medians, errors, pairs, dropped = [], [], 0, 0
    for worker in workers:
        kept = _by_set(worker, arm, base, version)
        count = sum(map(len, kept.values()))
        dropped += _dropped(worker, arm, base)
        if count >= 2:
            pairs += count
            medians.append(center(kept))
            errors.append(math.hypot(*map(median_error, kept.values())) / len(kept))
    if not medians:
        return None
    return _effect(name, medians, errors, risk, pairs, dropped)


def _by_set(worker: Worker, arm: int, base: int, version: int) -> dict[int, list[float]]:
    """One log ratio a usable row, by the set of arrays."""
    kept: dict[int, list[float]] = {}
    for number, row in usable_rows(worker, version):
        if (ratio := log_ratio(row, arm, base)) is not None:
            kept.setdefault(number, []).append(ratio)
    return kept


def average(measurement: Measurement, name: str) -> float | None:
    """The ratio of an arm's times to the baseline's by means of pairs where `ratios()` has medians.

    The two differ where part of the launches take another time: a candidate that is 10% slower in
    every fifth launch is not slower in its median pair. None where no process timed both.
    """
    base = measurement.position("baseline")
    names = [arm.name for arm in measurement.arms]
    if base is None or name not in names:
        return None
    means = []
    for worker in measurement.workers:
        kept = _by_set(worker, names.index(name), base, measurement.version)
        if sum(map(len, kept.values())) >= 2:
            means.append(statistics.fmean(map(_trimmed_mean, kept.values())))
    return math.exp(statistics.fmean(means)) if means else None


def _trimmed_mean(values: Sequence[float]) -> float:
    left_out = int(TRIMMED * len(values))
    return statistics.fmean(sorted(values)[left_out : len(values) - left_out])


def usable_rows(worker: Worker, version: int) -> Iterator[tuple[int, Row]]:
    """The rows of blocks that are usable, each with its set of arrays; 0 where sets are not told
    apart: in early records, and in graphs, which have them all."""
    sets = worker.sets if version > 1 and worker.launches_per_sample == 1 else 1
    for block in worker.blocks:
        if usable(block):
            yield from (((block.set + place) % sets, row) for place, row in enumerate(block.rows))


def center(values: Mapping[int, Sequence[float]]) -> float:
    """The mean of the medians of the sets.

    A kernel may take longer on one set than on another: an attention kernel took 0.975 ms and 0.766
    ms on the two sets of each process, and cuDNN's 0.58 ms on both. The median of all rows fell on
    either: a half-width of 9.3% after four processes (H200, A16).
    """
    return statistics.fmean(statistics.median(own) for own in values.values())


def _effect(
    name: str,
    medians: Sequence[float],
    errors: Sequence[float],
    risk: float,
    pairs: int,
    dropped: int,
) -> Effect:
    count = len(medians)
    center = statistics.fmean(medians)
    spread = statistics.stdev(medians) if count > 1 else math.inf
    error = spread / math.sqrt(count)
    half = t_quantile(1.0 - risk / 2.0, count - 1) * error if count > 1 else math.inf
    detectable = half + t_quantile(POWER, count - 1) * error if count > 1 else math.inf
    return Effect(
        arm=name,
        ratio=math.exp(center),
        low=math.exp(center - half) if math.isfinite(half) else 0.0,
        high=math.exp(min(center + half, 700.0)),
        level=1.0 - risk,
        spread=_finite(spread),
        within=statistics.median(errors),
        detectable=_finite(detectable),
        pairs=pairs,
        dropped=dropped,
        processes=count,
    )


def _finite(value: float) -> float:
    """JSON has no infinity: what one process can't tell is given as 1, a factor of e."""
    return value if math.isfinite(value) else 1.0


def dropped_pairs(measurement: Measurement, candidate: str) -> int:
    """Counts the pairs of a candidate with the baseline that were left out, over all processes."""
    base = measurement.position("baseline")
    names = [arm.name for arm in measurement.arms]
    if base is None or candidate not in names:
        return 0
    arm = names.index(candidate)
    return sum(_dropped(worker, arm, base) for worker in measurement.workers)


def _dropped(worker: Worker, arm: int, base: int) -> int:
    unusable = (row for block in worker.blocks if not usable(block) for row in block.rows)
    return sum({arm, base} <= {*row.order} for row in unusable)


def log_ratios(blocks: Sequence[Block], arm: int, base: int) -> tuple[list[float], int]:
    """One log ratio a row, and how many rows were left out with the blocks that are not usable."""
    kept: list[float] = []
    dropped = 0
    for block in blocks:
        ratios = [r for row in block.rows if (r := log_ratio(row, arm, base)) is not None]
        if usable(block):
            kept += ratios
        else:
            dropped += len(ratios)
    return kept, dropped


def usable(block: Block) -> bool:
    """Whether the device stayed as it was while the block ran."""
    before, after = block.before, block.after
    if DISTRUSTED & {*before.throttle, *after.throttle}:
        return False
    if before.memory_clock_mhz != after.memory_clock_mhz:
        return False
    if before.sm_clock_mhz <= 0 or after.sm_clock_mhz <= 0:
        return True  # not reported on this card
    return abs(math.log(after.sm_clock_mhz / before.sm_clock_mhz)) <= CLOCK_CHANGE


def mean_logs(row: Row) -> dict[int, float]:
    """Mean log time of each arm in one row: what log_ratio() subtracts, for all of them at once."""
    sums: dict[int, float] = {}
    for item, time in zip(row.order, row.times_us, strict=True):
        sums[item] = sums.get(item, 0.0) + math.log(time)
    return {arm: total / row.order.count(arm) for arm, total in sums.items()}


def log_ratio(row: Row, arm: int, base: int) -> float | None:
    """Mean log time of arm less that of base in one row; None if the row lacks one of them."""
    ours, theirs, launches, base_launches = 0.0, 0.0, 0, 0
    for item, time in zip(row.order, row.times_us, strict=True):
        if item == arm:
            ours += math.log(time)
            launches += 1
        if item == base:
            theirs += math.log(time)
            base_launches += 1
    return ours / launches - theirs / base_launches if launches and base_launches else None


def median_error(values: Sequence[float]) -> float:
    """Standard error of the median from the distance of the quartiles, as of normal values."""
    if len(values) < 4:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return 1.2533 * (high - low) / 1.349 / math.sqrt(len(values))


def _peers(measurement: Measurement) -> Iterator[Effect]:
    """Each peer's ratio: from the rows of all arms, or as early records have it.

    At LEVEL whole: what ends a measurement is no peer's ratio, so no look spends any of its risk.
    """
    base = measurement.position("baseline")
    peers = [i for i, arm in enumerate(measurement.arms) if arm.role == "peer"]
    if base is None:
        return
    for index in peers:
        name = measurement.arms[index].name
        if effect := clustered(
            measurement.workers, index, base, name, 1.0 - LEVEL, measurement.version
        ):
            yield effect
    apart = [row for worker in measurement.workers for row in worker.peer_rows]
    for index in peers:
        ratios = [ratio for row in apart if (ratio := log_ratio(row, index, base)) is not None]
        if len(ratios) > 1:
            name, error = measurement.arms[index].name, median_error(ratios)
            yield _effect(name, ratios, [error], 1.0 - LEVEL, len(ratios), 0)


@_once
def times(measurement: Measurement) -> tuple[Times, ...]:
    """Each arm's times alone, over every sample, dropped ones too."""
    return tuple(_times(measurement))


def _times(measurement: Measurement) -> Iterator[Times]:
    rows = [row for w in measurement.workers for block in w.blocks for row in block.rows]
    rows += [row for worker in measurement.workers for row in worker.peer_rows]
    by_arm: dict[int, list[float]] = {}
    for row in rows:
        for index, time_us in zip(row.order, row.times_us, strict=True):
            by_arm.setdefault(index, []).append(time_us)
    for index, samples in sorted(by_arm.items()):
        cuts = statistics.quantiles(samples, n=20) if len(samples) > 1 else samples
        yield Times(
            arm=measurement.arms[index].name,
            median_us=statistics.median(samples),
            low_us=cuts[0],
            high_us=cuts[-1],
            samples=len(samples),
        )


def conditions(workers: Sequence[Worker]) -> Conditions | None:
    """The device's state over all blocks; None where nothing was timed."""
    blocks = [block for worker in workers for block in worker.blocks]
    states = [state for block in blocks for state in (block.before, block.after)]
    if not states:
        return None
    reasons = [set(b.before.throttle) | set(b.after.throttle) for b in blocks]
    names = sorted(set().union(*reasons))
    return Conditions(
        sm_clock_mhz=statistics.median(state.sm_clock_mhz for state in states),
        sm_clock_low_mhz=min(state.sm_clock_mhz for state in states),
        sm_clock_high_mhz=max(state.sm_clock_mhz for state in states),
        memory_clock_mhz=statistics.median(state.memory_clock_mhz for state in states),
        power_w=statistics.median(state.power_w for state in states),
        temperature_c=statistics.median(state.temperature_c for state in states),
        throttle={name: sum(name in r for r in reasons) / len(blocks) for name in names},
    )


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: int) -> float:
    """The p-quantile of Student's t with `df` degrees of freedom.

    Not scipy's: its import alone takes 0.8 s of every command that prints a verdict.
    """
    if not 0.0 < p < 1.0 or df < 1:
        raise ValueError(f"no quantile at {p} with {df} degrees of freedom")
    if p < 0.5:
        return -t_quantile(1.0 - p, df)
    high = 1.0
    while _t_tail(high, df) > 1.0 - p:
        high *= 2.0
    return _bisect(lambda t: _t_tail(t, df) - (1.0 - p), 0.0, high)


def _bisect(falling: Callable[[float], float], low: float, high: float) -> float:
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if falling(middle) > 0.0 else (low, middle)
    return (low + high) / 2.0


def _t_tail(t: float, df: int) -> float:
    """P(T > t) for t >= 0: half the regularised incomplete beta function I_x(df/2, 1/2)."""
    return 0.5 * _incomplete_beta(df / (df + t * t), df / 2.0, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b) by its continued fraction (DLMF 8.17.22)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):  # where the fraction converges slowly, its mirror is quick
        return 1.0 - _incomplete_beta(1.0 - x, b, a)
    log_front = a * math.log(x) + b * math.log1p(-x) - math.log(a)
    log_front += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(log_front) / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d1/(1 + d2/(1 + ...)), from the inside out; 200 terms settle every a up to thousands."""
    value = 1.0
    for n in range(200, 0, -1):
        m = n // 2
        if n % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1.0 + d / value
    return value
