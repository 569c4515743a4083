"""Counters of the full problem, from two emulated sizes: what a tile adds, and what a CTA adds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

import msgspec

from kernelexp.facts.counters import PTX
from kernelexp.model.arm import EmulatedEvidence, EmulatedLaunch


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """The quantities that counters grow with."""

    tiles: int
    ctas: int
    loads: int = 0
    """Tiles that load what those after them keep; 0 where every tile loads its own."""
    blocks: int = 0
    """What CTAs have in turn, of several tiles each; 0 where a CTA has one."""

    def of_loads(self) -> Extent:
        """Returns the extent that counters of global loads grow with."""
        return Extent(tiles=self.loads or self.tiles, ctas=self.ctas)


class Scaled(msgspec.Struct, frozen=True, kw_only=True):
    """One counter of a launch of the full problem."""

    counter: str
    per_tile: int
    """To the nearest whole number: what polls count in is a fraction."""
    per_cta: int
    full: int
    """Of the fractions."""


_LOADS = frozenset(
    """sass__inst_executed_global_loads l1tex__t_requests_pipe_lsu_mem_global_op_ld
    l1tex__t_sectors_pipe_lsu_mem_global_op_ld""".split()
)
_LOADS_AND_STORES = frozenset(
    """memory_l1_tag_requests_global memory_l2_theoretical_sectors_global
    memory_l2_theoretical_sectors_global_ideal""".split()
)
_STORES = "sass__inst_executed_global_stores"
_EXECUTED = "sass__inst_executed_global_loads"
_LSU = "sm__inst_executed_pipe_lsu"


Part: TypeAlias = tuple[int, bool]
"""Of a count: how much, and whether it grows with the tiles that load instead of all tiles."""


def parts(
    counter: str, launch: EmulatedEvidence | EmulatedLaunch, full: Extent
) -> tuple[Part, ...]:
    """A launch's count by what it grows with: one part, or that of stores, then that of loads."""
    name, count = counter.removeprefix(PTX), launch.counters.get(counter, 0)
    if not full.loads or name not in _LOADS | _LOADS_AND_STORES | {_LSU}:
        return ((count, False),)
    if name == _LSU:
        executed = launch.counters.get(counter.removesuffix(name) + _EXECUTED, 0)
        return ((count - executed, False), (executed, True))
    stores = launch.counters.get(counter.removesuffix(name) + _STORES, 0)
    if name in _LOADS or not stores:
        return ((count, True),)
    loads = _at_loads(counter, launch, counter.removesuffix(name) + _EXECUTED)
    return ((count, False),) if loads is None else ((count - loads, False), (loads, True))


def _at_loads(counter: str, launch: EmulatedEvidence | EmulatedLaunch, executed: str) -> int | None:
    """Returns the count at source lines that load; None where the lines do not have all of it."""
    lines = launch.lines if isinstance(launch, EmulatedEvidence) else ()
    if sum(line.counters.get(counter, 0) for line in lines) != launch.counters.get(counter, 0):
        return None
    return sum(line.counters.get(counter, 0) for line in lines if line.counters.get(executed))


PIPES = "sm__inst_executed_pipe_"
TOTALS = (
    "smsp__inst_executed",
    "smsp__thread_inst_executed",
    "ptx__inst_executed",
    "ptx__thread_inst_executed",
)
"""What the instructions of all pipes add up to."""


_POLLED = re.compile(
    r"(smsp|sass|ptx)__(thread_)?inst_executed(_pred_on|_mbarrier_wait|_branch)?"
    r"|sm__inst_executed_pipe_(adu|cbu)"
)
"""What polls of mbarriers count in: how often they look depends on timing, so that they have no
solution in whole numbers although the rest of their work has one."""


_AROUND_LOADS = re.compile(
    r"((smsp|sass)__)?(thread_)?inst_executed(_pred_on|_branch)?"
    r"|sm__inst_executed_pipe_(alu|fma\w*|fp16|uniform|cbu|xu)"
)
"""What instructions around a load count in: the addresses, the branch past it."""


def not_by_tiles(counters: Iterable[str], full: Iterable[Extent]) -> Iterator[str]:
    """Counters that grow with the tiles in part and with those that load in part, and small sizes,
    where each tile loads, don't tell which; or with blocks of which those sizes have none.

    A table kept in registers over 10 tiles: 161.1 M instructions by all tiles, 153.3 M by ncu.
    """
    if any(0 < extent.loads < extent.tiles or extent.blocks for extent in full):
        yield from (name for name in counters if _AROUND_LOADS.fullmatch(name.removeprefix(PTX)))


def unsound(unsolved: Iterable[str]) -> tuple[str, ...]:
    """The totals that have no solution because a pipe of theirs has none.

    Attention whose last tile of keys is masked at one small size only: its masks, in the ALU pipe,
    left less than nothing for a tile, and 1,170 instructions of which the other pipes had 1,171.
    """
    return TOTALS if any(name.startswith(PIPES) for name in unsolved) else ()


def is_polled(counter: str) -> bool:
    """Whether polls of mbarriers count in it, so that a solution in fractions is taken for one."""
    return bool(_POLLED.fullmatch(counter))


Third: TypeAlias = tuple[EmulatedEvidence | EmulatedLaunch, Extent]
"""A launch beside the two that counters are solved from."""


def can_scale(one: Extent, other: Extent, full: Extent) -> bool:
    """Whether launches of these two extents say what a launch of the full extent counts."""
    return _determinant(one, other) != 0 or _is_proportional(one, other, full)


def scale(
    one: EmulatedEvidence | EmulatedLaunch,
    one_extent: Extent,
    other: EmulatedEvidence | EmulatedLaunch,
    other_extent: Extent,
    full: Extent,
    third: Third | None = None,
) -> Iterator[Scaled]:
    """Solves count = per_tile * tiles + per_cta * CTAs from two launches, for each counter.

    Where every CTA has as many tiles in all three launches, what a tile adds is part of what its
    CTA adds: count = per_cta * CTAs. Of global loads, tiles are those that load. A counter without
    a solution in whole numbers is left out, unless polls count in it or a `third` launch has just
    the count that the two give it. Raises ValueError where the sizes can't tell.
    """
    if not can_scale(one_extent, other_extent, full):
        raise ValueError("the two sizes have the same number of tiles per CTA")
    for counter in dict.fromkeys([*one.counters, *other.counters]):
        own = (one, other), (one_extent, other_extent)
        solved = list(_of_parts(counter, *own, full, third))
        if None not in solved:
            known = [item for item in solved if item]
            yield Scaled(
                counter=counter,
                per_tile=sum(item.per_tile for item in known),
                per_cta=sum(item.per_cta for item in known),
                full=sum(item.full for item in known),
            )


def solve_blocks(
    launches: Sequence[EmulatedEvidence | EmulatedLaunch], extents: Sequence[Extent], full: Extent
) -> Iterator[tuple[str, int]]:
    """Each counter of the full extent, of CTAs that have several blocks in turn: count = per_tile *
    tiles + per_block * blocks + per_cta * CTAs from three launches. Without a solution in whole
    numbers it is left out, unless polls count in it."""
    whole = [(x.tiles, x.blocks, x.ctas) for x in extents]
    determinant = _of_three(whole)
    if not determinant:
        return
    for counter in dict.fromkeys(name for launch in launches for name in launch.counters):
        counts = [launch.counters.get(counter, 0) for launch in launches]
        solution = [
            Fraction(_of_three(_with_column(whole, place, counts)), determinant)
            for place in range(3)
        ]
        is_whole = all(item.denominator == 1 for item in solution)
        if solution[0] >= 0 and (is_whole or is_polled(counter)):
            total = solution[0] * full.tiles + solution[1] * full.blocks + solution[2] * full.ctas
            yield counter, round(total)


def _with_column(
    rows: Sequence[tuple[int, ...]], place: int, column: Sequence[int]
) -> list[tuple[int, ...]]:
    return [
        (*row[:place], value, *row[place + 1 :]) for row, value in zip(rows, column, strict=True)
    ]


def _of_three(rows: Sequence[tuple[int, ...]]) -> int:
    """The determinant of three rows."""
    (a, b, c), (d, e, f), (g, h, i) = rows
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def solves_blocks(extents: Sequence[Extent]) -> bool:
    """Whether three launches tell what a tile, a block and a CTA add."""
    return _of_three([(x.tiles, x.blocks, x.ctas) for x in extents]) != 0


def least(
    counter: str,
    one: tuple[EmulatedEvidence | EmulatedLaunch, Extent],
    other: tuple[EmulatedEvidence | EmulatedLaunch, Extent],
    full: Extent,
) -> int:
    """Returns the least that a counter without a solution can be at the full extent: what a tile
    adds from one small size to the other, for each tile, without what a CTA does once; 0 if not
    known."""
    (first, x), (second, y) = one, other
    a, b = first.counters.get(counter, 0), second.counters.get(counter, 0)
    if determinant := _determinant(x, y):
        return max(0, (a * y.ctas - b * x.ctas) * full.tiles // determinant)
    if not _is_proportional(x, y, full):
        return 0
    return max(0, (b - a) * full.ctas // (y.ctas - x.ctas))


def _of_parts(
    counter: str,
    launches: tuple[EmulatedEvidence | EmulatedLaunch, EmulatedEvidence | EmulatedLaunch],
    extents: tuple[Extent, Extent],
    full: Extent,
    third: Third | None,
) -> Iterator[Scaled | None]:
    """Each part of a counter; None where it has no solution."""
    both = [parts(counter, launch, full) for launch in launches]
    is_one = len(both[0]) == 1 and not full.loads
    if [is_load for _, is_load in both[0]] != [is_load for _, is_load in both[1]]:
        yield None
        return
    for (first, is_load), (second, _) in zip(*both, strict=True):
        one, other, whole = (x.of_loads() if is_load else x for x in (*extents, full))
        solution = _solve((first, second), one, other)
        is_whole = solution and all(item.denominator == 1 for item in solution)
        is_seen = solution and third and is_one and _gives(solution, counter, third)
        if solution is None or not (is_whole or is_seen or _POLLED.fullmatch(counter)):
            yield None
            continue
        per_tile, per_cta = solution
        yield Scaled(
            counter=counter,
            per_tile=round(per_tile),
            per_cta=round(per_cta),
            full=round(per_tile * whole.tiles + per_cta * whole.ctas),
        )


def _gives(solution: tuple[Fraction, Fraction], counter: str, third: Third) -> bool:
    launch, extent = third
    per_tile, per_cta = solution
    expected = per_tile * extent.tiles + per_cta * extent.ctas
    return expected == launch.counters.get(counter, 0)


def _determinant(one: Extent, other: Extent) -> int:
    return one.tiles * other.ctas - other.tiles * one.ctas


def _is_proportional(one: Extent, other: Extent, full: Extent) -> bool:
    """Whether all have equally many tiles per CTA, as two launches of different grids confirm."""
    same = _determinant(one, other) == 0 and _determinant(one, full) == 0
    return same and one.ctas != other.ctas


def _solve(counts: tuple[int, int], one: Extent, other: Extent) -> tuple[Fraction, Fraction] | None:
    """Counts per tile and per CTA, neither below 0 but for what a CTA's first tile does without;
    None where there are none."""
    first, second = counts
    determinant = _determinant(one, other)
    if determinant == 0:
        if first * other.ctas != second * one.ctas:
            return None
        return Fraction(0), Fraction(first, one.ctas)
    per_tile = Fraction(first * other.ctas - second * one.ctas, determinant)
    per_cta = Fraction(one.tiles * second - other.tiles * first, determinant)
    return (per_tile, per_cta) if per_tile >= 0 and per_cta >= -per_tile else None
