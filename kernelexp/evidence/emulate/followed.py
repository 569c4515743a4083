"""Which smaller launches stand for one whose arrays or whose loops are too long to execute."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec

from kernelexp.model.errors import KernelexpError
from kernelexp.model.problem import Size
from warpsim.launch import Launch

TILES = 4
"""Per CTA of the smallest launch that is followed: the first ones fill pipelines."""
EVEN = 1.03
"""Times the average, what the busiest CTA has at most."""
LONG = 16
"""Tiles per CTA from which on smaller launches stand for the whole."""


class FollowedLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The work of a launch at some size."""

    ctas: int
    tiles: int
    blocks: int | None = None
    """That CTAs have in turn, each of as many tiles; None: a block is a tile."""

    @property
    def tiles_per_cta(self) -> int:
        """The tiles of those CTAs that have most: whole blocks, but where there are fewer blocks
        than CTAs, which then share them."""
        tiles_per_block = 1
        if self.blocks is not None and self.ctas <= self.blocks <= self.tiles:
            tiles_per_block = self.tiles // self.blocks
        return -(-self.tiles // (tiles_per_block * self.ctas)) * tiles_per_block

    @property
    def is_even(self) -> bool:
        """Whether all CTAs have about as many."""
        return self.tiles_per_cta * self.ctas <= EVEN * self.tiles


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes whose launches are executed, and what the whole one amounts to."""

    sizes: tuple[Size, ...]
    """The smaller one first."""
    loads: tuple[FollowedLoad, ...]
    whole: FollowedLoad
    loops: bool
    """The CTAs of the whole launch do more tiles each, rather than that there are more CTAs."""


def load(launch: Launch, tiles: int | None, blocks: int | None) -> FollowedLoad:
    """Returns the load of a launch; without tiles() in problem.py, a CTA is one tile."""
    ctas = math.prod(launch.grid)
    return FollowedLoad(ctas=ctas, tiles=ctas if tiles is None else tiles, blocks=blocks)


def choose(
    size: Size, whole: FollowedLoad, enough: int, measure: Callable[[Size], FollowedLoad]
) -> Followed:
    """The launch itself, or two smaller ones: with as many CTAs that do fewer tiles, or with fewer
    CTAs, `enough` at least, that do as many.

    Sizes are made smaller in one figure, by a divisor of it, as problem.py may ask for.
    """
    if whole.tiles_per_cta > LONG:
        for smaller in _smaller(size, measure):
            fewer = [
                (item, now)
                for item, now in smaller
                if now.ctas == whole.ctas and TILES <= now.tiles_per_cta <= whole.tiles_per_cta / 2
            ]
            twice = [(x, y) for x in fewer for y in fewer if y[1].tiles == 2 * x[1].tiles]
            even = [(x, y) for x, y in twice if x[1].is_even and y[1].is_even]
            if twice:
                return _followed(*(even or twice)[0], whole, loops=True)
    elif whole.ctas > 4 * enough:
        for smaller in _smaller(size, measure):
            fewer = [
                (item, now)
                for item, now in smaller
                if enough <= now.ctas < whole.ctas and now.tiles_per_cta == whole.tiles_per_cta
            ]
            if len(fewer) > 1:
                return _followed(fewer[0], fewer[1], whole, loops=False)
    return Followed(sizes=(size,), loads=(whole,), whole=whole, loops=False)


def _smaller(
    size: Size, measure: Callable[[Size], FollowedLoad]
) -> Iterator[list[tuple[Size, FollowedLoad]]]:
    """Yields smaller sizes for each parameter of a size, the smallest first."""
    for key, value in size.items():
        result = []
        for part in (item for item in range(1, min(value, 100_000)) if value % item == 0):
            smaller = {**size, key: part}
            try:
                result.append((smaller, measure(smaller)))
            except KernelexpError:
                continue  # problem.py allows no such size
        yield sorted(result, key=lambda item: item[1].tiles)


def _followed(
    first: tuple[Size, FollowedLoad],
    second: tuple[Size, FollowedLoad],
    whole: FollowedLoad,
    loops: bool,
) -> Followed:
    return Followed(
        sizes=(first[0], second[0]), loads=(first[1], second[1]), whole=whole, loops=loops
    )
