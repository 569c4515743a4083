"""Counters of the full problem, from two emulated sizes: what a tile adds, and what a CTA adds."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kernelexp.model.arm import EmulatedEvidence, EmulatedLaunch


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """What counters grow with."""

    tiles: int
    ctas: int


class Scaled(msgspec.Struct, frozen=True, kw_only=True):
    """One counter of a launch of the full problem."""

    counter: str
    per_tile: int
    per_cta: int
    full: int


def can_scale(one: Extent, other: Extent, full: Extent) -> bool:
    """Whether launches of these two extents say what a launch of the full extent counts."""
    return _determinant(one, other) != 0 or _is_proportional(one, other, full)


def scale(
    one: EmulatedEvidence | EmulatedLaunch,
    one_extent: Extent,
    other: EmulatedEvidence | EmulatedLaunch,
    other_extent: Extent,
    full: Extent,
) -> Iterator[Scaled]:
    """Solves count = per_tile * tiles + per_cta * CTAs from two launches, for each counter.

    Where every CTA has as many tiles in all three launches, what a tile adds is part of what its
    CTA adds: count = per_cta * CTAs. A counter without a solution in whole numbers (one that counts
    polling, say) is left out. Raises ValueError where the sizes can't tell.
    """
    if not can_scale(one_extent, other_extent, full):
        raise ValueError("the two sizes have the same number of tiles per CTA")
    for counter in dict.fromkeys([*one.counters, *other.counters]):
        counts = one.counters.get(counter, 0), other.counters.get(counter, 0)
        solution = _solve(counts, one_extent, other_extent)
        if solution is None:
            continue
        per_tile, per_cta = solution
        yield Scaled(
            counter=counter,
            per_tile=per_tile,
            per_cta=per_cta,
            full=per_tile * full.tiles + per_cta * full.ctas,
        )


def _determinant(one: Extent, other: Extent) -> int:
    return one.tiles * other.ctas - other.tiles * one.ctas


def _is_proportional(one: Extent, other: Extent, full: Extent) -> bool:
    """As many tiles per CTA everywhere, and two launches that differ, to see that it is so."""
    same = _determinant(one, other) == 0 and _determinant(one, full) == 0
    return same and one.ctas != other.ctas


def _solve(counts: tuple[int, int], one: Extent, other: Extent) -> tuple[int, int] | None:
    """Whole, not negative counts per tile and per CTA; None where there are none."""
    first, second = counts
    determinant = _determinant(one, other)
    if determinant == 0:
        if first * other.ctas != second * one.ctas or first % one.ctas:
            return None
        return 0, first // one.ctas
    tile = first * other.ctas - second * one.ctas
    cta = one.tiles * second - other.tiles * first
    if tile % determinant or cta % determinant:
        return None
    per_tile, per_cta = tile // determinant, cta // determinant
    return (per_tile, per_cta) if per_tile >= 0 and per_cta >= 0 else None
