"""Findings of a sweep on its axes: which made a difference, and what all variants share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import msgspec

from kernelexp.facts import metrics
from kernelexp.facts.counters import PTX
from kernelexp.facts.metrics import Figure
from kernelexp.judge.statistics.racing import Interval, RaceResult, Scores, of_values
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import Point, spell

_CONFLICTS = tuple(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}" for op in ("ld", "st"))


def _counted(name: str) -> tuple[str, ...]:
    """Returns the names of an ncu counter in emulations: counted on SASS, and on PTX."""
    return name, f"{PTX}{name}"


def _spelled(name: str) -> tuple[str, ...]:
    """Returns the names in emulations of a counter that ncu lacks, on SASS and on PTX."""
    return f"sass__{name}", f"{PTX}{name}"


# What may hold all variants of a sweep back alike, by names of which the first that all of them
# have is read: evidence that is the same in all is worth a line.
TELLING = (
    ("occupancy_limit",),
    ("ctas_per_sm",),
    ("warps_per_sm",),
    _spelled("inst_executed_barrier"),
    _spelled("inst_executed_mbarrier"),
    _counted("memory_l1_wavefronts_shared"),
    *map(_counted, _CONFLICTS),
    _counted("memory_l2_theoretical_sectors_global"),
    _spelled("inst_executed_mma"),
    _counted("smsp__sass_inst_executed_op_shared_gmma"),
)


class PairChange(msgspec.Struct, frozen=True, kw_only=True):
    """Two variants that differ in one axis only."""

    before: str
    after: str
    """Their arms."""
    change: float
    """Of the log time, on average over the processes that timed both."""

    def turned(self) -> PairChange:
        """The change from `after` to `before`."""
        return PairChange(before=self.after, after=self.before, change=-self.change)


class AxisEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Two values of an axis over all pairs of variants that differ in nothing else."""

    axis: str
    before: str
    after: str
    change: Interval
    """Of the log time, from `before` to `after`, averaged over the pairs."""
    pairs: int
    least: PairChange
    most: PairChange
    """The pairs that changed least and most: what an average of opposite changes hides."""

    def turned(self) -> AxisEffect:
        """The effect from `after` to `before`."""
        return AxisEffect(
            axis=self.axis,
            before=self.after,
            after=self.before,
            change=self.change.turned(),
            pairs=self.pairs,
            least=self.most.turned(),
            most=self.least.turned(),
        )

    def depends(self, margin: float) -> bool:
        """Whether it is for the better with some values of the other axes and for the worse with
        others, by more than the margin either way."""
        return self.least.change < -math.log1p(margin) and self.most.change > math.log1p(margin)

    @property
    def is_proved(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.change.low > 0.0 or self.change.high < 0.0

    @property
    def bound(self) -> float:
        """The largest relative change that this interval leaves possible: 0.01 is 1%."""
        return math.expm1(max(abs(self.change.low), abs(self.change.high)))


class AxisFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of a sweep on one axis."""

    axis: str
    effects: tuple[AxisEffect, ...]
    """One for each pair of its values that some pair of variants compares."""
    is_idle: bool
    """No two of its values are further apart than the margin."""

    @property
    def largest(self) -> AxisEffect:
        """The pair of values that may differ most."""
        return max(self.effects, key=lambda effect: effect.bound)

    def from_best(self) -> tuple[AxisEffect, ...]:
        """Returns effects from the value fastest on average to each other, the nearest first."""
        both = (*self.effects, *(effect.turned() for effect in self.effects))
        gains: dict[str, float] = {}
        for effect in both:
            gains[effect.before] = gains.get(effect.before, 0.0) + effect.change.center
        best = max(gains, key=lambda value: gains[value])
        own = (effect for effect in both if effect.before == best)
        return tuple(sorted(own, key=lambda effect: effect.change.center))

    def shown(self) -> tuple[AxisEffect, ...]:
        """Returns the effects that a page shows: where the axis matters, from its best value to the
        others, and whatever else is proved; else the pair of values that may differ most."""
        if not self.matters:
            return (self.largest,)
        from_best = self.from_best()
        if any(effect.is_proved for effect in from_best):
            return from_best
        return (*from_best, *(effect for effect in self.effects if effect.is_proved))

    @property
    def matters(self) -> bool:
        """Whether two of its values are proved to differ."""
        return any(effect.is_proved for effect in self.effects)


class Plateau(msgspec.Struct, frozen=True, kw_only=True):
    """Variants that make no difference beyond the margin, and what they have in common."""

    widest: float
    """The largest relative distance of any variant from the fastest that the samples allow."""
    shared: dict[str, metrics.Value]
    """Figures of `TELLING` that are the same in all of them, by name."""
    differing: tuple[str, ...]
    """The labels of those that are not."""
    same_code: int
    """How many have the SASS of another one: as many of each instruction, in as many bytes."""
    hot_line: str
    """The source line with the most bank conflicts in each of them; empty where it is not one."""


class CountedPlateau(msgspec.Struct, frozen=True, kw_only=True):
    """A plateau judged by the counts of variants that were not timed."""

    variants: int
    shared: tuple[Figure, ...]
    """Figures of `TELLING` that are the same in all of them, and not 0."""
    spreads: dict[str, float]
    """By how much the largest count is above the least, by its label: 0.1 is 10%; the counts that
    differ, the widest first."""
    axes: dict[str, tuple[str, float]]
    """Of each axis, the label of the count that it changes most with all other axes the same, and
    by how much; 0 where it changes none."""
    same_code: int

    @property
    def is_likely(self) -> bool:
        """Whether no count differs by more than a few percent."""
        return all(spread <= ALIKE for spread in self.spreads.values())


ALIKE = 0.05
"""Relative difference of counts below which variants do the same work."""


def counted(arms: Sequence[Arm]) -> CountedPlateau | None:
    """Returns the plateau of emulated arms; None for fewer than two, or where one was timed."""
    members = [arm for arm in arms if arm.is_built and arm.executed and not arm.refused]
    if len(members) < 2 or any(arm.measured for arm in arms):
        return None
    shared, _ = _telling(members)
    every = [metrics.figures(arm, "emulated") for arm in members]
    spreads: dict[str, float] = {}
    points = {str(number): arm.axes for number, arm in enumerate(members)}
    axes = dict.fromkeys(_differing(points), ("", 0.0))
    for names in (_counted("smsp__inst_executed"), ("ptx__inst_executed",), *TELLING):
        name = next((name for name in names if all(name in figures for figures in every)), "")
        values = [figures[name].value for figures in every] if name else []
        counts = [float(value) for value in values if isinstance(value, int | float)]
        if counts and max(counts) > min(counts):
            label = every[0][name].metric.label.strip()
            spreads[label] = _above(max(counts), min(counts))
            for axis, (_, most) in axes.items():
                moved = _moved(axis, points, counts)
                axes[axis] = (label, moved) if moved > most else axes[axis]
    return CountedPlateau(
        variants=len(members),
        shared=tuple(figure for figure in shared if figure.value),
        spreads=dict(sorted(spreads.items(), key=lambda item: -item[1])),
        axes=axes,
        same_code=_same_code(members),
    )


def _above(most: float, least: float) -> float:
    return most / least - 1 if least else math.inf if most else 0.0


def _moved(axis: str, points: Mapping[str, Point], counts: Sequence[float]) -> float:
    """Returns the largest change of a count between arms that differ in this axis only."""
    pairs = (pair for own in _pairs(axis, points).values() for pair in own)
    values = (sorted(counts[int(name)] for name in pair) for pair in pairs)
    return max((_above(most, least) for least, most in values), default=0.0)


def findings(
    taken: Sequence[Scores],
    points: Mapping[str, Point],
    risk: float,
    margin: float,
    result: RaceResult | None = None,
) -> tuple[AxisFinding, ...]:
    """Each axis in which arms differ, from the processes' scores; `points` are the arms' axes.

    `risk` is that of all intervals together. An axis no two of whose values were compared, as where
    they never occur with the same values of the others, is left out. Two values that only the
    leader of `result` and one arm behind it have differ by what the race says of that arm: 12
    kernels have 11 pairs with the leader and 66 in all, and after 3 processes the interval of one
    pair of 66 was twice as wide.
    """
    comparisons = [
        (axis, values, pairs)
        for axis in _differing(points)
        for values, pairs in _pairs(axis, points).items()
    ]
    effects: dict[str, list[AxisEffect]] = {}
    for axis, (before, after), pairs in comparisons:
        change = _raced(result, pairs) or of_values(
            list(_changes(taken, pairs)), risk / len(comparisons)
        )
        if change is not None:
            ordered = sorted(_each(taken, pairs), key=lambda pair: pair.change)
            effect = AxisEffect(
                axis=axis,
                before=before,
                after=after,
                change=change,
                pairs=len(pairs),
                least=ordered[0],
                most=ordered[-1],
            )
            effects.setdefault(axis, []).append(effect)
    return tuple(
        AxisFinding(axis=axis, effects=tuple(own), is_idle=all(x.bound <= margin for x in own))
        for axis, own in effects.items()
    )


def _raced(result: RaceResult | None, pairs: Sequence[tuple[str, str]]) -> Interval | None:
    if result is None or len(pairs) != 1:
        return None
    ((before, after),) = pairs
    if before == result.leader:
        return result.behind.get(after)
    behind = result.behind.get(before) if after == result.leader else None
    return behind and behind.turned()


def _differing(points: Mapping[str, Point]) -> list[str]:
    names = dict.fromkeys(axis for point in points.values() for axis in point)
    return [name for name in names if len({spell(point[name]) for point in points.values()}) > 1]


def _pairs(axis: str, points: Mapping[str, Point]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Pairs of arms that differ in this axis only, by their values of it."""
    values = list(dict.fromkeys(spell(point[axis]) for point in points.values()))
    groups: dict[tuple[object, ...], dict[str, str]] = {}
    for arm, point in points.items():
        others = tuple((name, spell(value)) for name, value in point.items() if name != axis)
        groups.setdefault(others, {})[spell(point[axis])] = arm
    result: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for before, after in combinations(values, 2):
        pairs = [(own[before], own[after]) for own in groups.values() if {before, after} <= {*own}]
        if pairs:
            result[before, after] = pairs
    return result


def _changes(taken: Sequence[Scores], pairs: Sequence[tuple[str, str]]) -> Iterator[float]:
    """One mean of the pairs for each process that timed any of them."""
    for scores in taken:
        changes = [scores[b] - scores[a] for a, b in pairs if a in scores and b in scores]
        if changes:
            yield math.fsum(changes) / len(changes)


def _each(taken: Sequence[Scores], pairs: Sequence[tuple[str, str]]) -> Iterator[PairChange]:
    """The change of each pair that some process timed."""
    for before, after in pairs:
        changes = [
            scores[after] - scores[before] for scores in taken if {before, after} <= scores.keys()
        ]
        if changes:
            mean = math.fsum(changes) / len(changes)
            yield PairChange(before=before, after=after, change=mean)


def plateau(
    result: RaceResult, axes: Sequence[AxisFinding], arms: Mapping[str, Arm], margin: float
) -> Plateau | None:
    """Finds a plateau; None where some variant differs by more than the margin, or may.

    Each variant is compared with the fastest; where these intervals are too wide one by one, axes
    each of which is idle will do, if nothing was told apart.
    """
    widest = max((math.expm1(interval.high) for interval in result.behind.values()), default=0.0)
    told_apart = any(interval.low > 0.0 for interval in result.behind.values())
    idle = bool(axes) and all(axis.is_idle for axis in axes) and not told_apart
    if not result.behind or (widest > margin and not idle):
        return None
    members = [arms[name] for name in (result.leader, *result.behind) if name in arms]
    shared, differing = _telling(members)
    return Plateau(
        widest=widest,
        shared={figure.metric.name: figure.value for figure in shared},
        differing=differing,
        same_code=_same_code(members),
        hot_line=_hot_line(members),
    )


def _telling(arms: Sequence[Arm]) -> tuple[tuple[Figure, ...], tuple[str, ...]]:
    every = [metrics.figures(arm) for arm in arms]
    shared, differing = [], []
    for names in TELLING:
        name = next(
            (name for name in names if all(name in figures for figures in every)), names[-1]
        )
        own = [figures[name] for figures in every if name in figures]
        if len(own) == len(every) and len({figure.value for figure in own}) == 1:
            shared.append(own[0])
        elif own:
            differing.append(own[0].metric.label)
    return tuple(shared), tuple(differing)


def _same_code(arms: Sequence[Arm]) -> int:
    codes = [
        (
            metrics.read("sass_bytes", arm),
            arm.build.others if arm.build else {},
            sorted(code.opcodes.items()),
        )
        for arm in arms
        if (code := arm.build or arm.program)
    ]
    return sum(codes.count(code) > 1 for code in codes)


def _hot_line(arms: Sequence[Arm]) -> str:
    """Its file and number."""
    hottest = set()
    on_sass = all(arm.counted for arm in arms)
    names = _CONFLICTS if on_sass else [f"{PTX}{name}" for name in _CONFLICTS]
    for arm in arms:
        counted = arm.counted if on_sass else arm.emulated
        weights = {
            f"{line.file}:{line.line}": sum(line.counters.get(name, 0) for name in names)
            for line in (counted.lines if counted else ())
        }
        heaviest = max(weights, key=lambda place: weights[place], default="")
        hottest.add(heaviest if weights.get(heaviest) else "")
    return hottest.pop() if len(hottest) == 1 else ""
