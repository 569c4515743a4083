"""Counters of the full problem, from two emulated sizes: what a tile adds, and what a CTA adds."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kernelexp.model import EmulatedEvidence


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


def scale(
    one: EmulatedEvidence,
    one_extent: Extent,
    other: EmulatedEvidence,
    other_extent: Extent,
    full: Extent,
) -> Iterator[Scaled]:
    """Solves count = per_tile * tiles + per_cta * CTAs from two launches, for each counter.

    A counter that has no solution in whole numbers (one that counts polling, say) is left out.
    Raises ValueError where the two sizes can't tell tiles from CTAs.
    """
    determinant = one_extent.tiles * other_extent.ctas - other_extent.tiles * one_extent.ctas
    if determinant == 0:
        raise ValueError("the two sizes have the same number of tiles for each CTA")
    for counter in dict.fromkeys([*one.counters, *other.counters]):
        first, second = one.counters.get(counter, 0), other.counters.get(counter, 0)
        tile = first * other_extent.ctas - second * one_extent.ctas
        cta = one_extent.tiles * second - other_extent.tiles * first
        if tile % determinant or cta % determinant:
            continue
        per_tile, per_cta = tile // determinant, cta // determinant
        if per_tile < 0 or per_cta < 0:
            continue
        yield Scaled(
            counter=counter,
            per_tile=per_tile,
            per_cta=per_cta,
            full=per_tile * full.tiles + per_cta * full.ctas,
        )
