"""Tiles and CTAs of a variant's launches at each size, and which sizes say what of another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kernelexp.evidence.emulate.scaling import (
    Extent,
    can_scale,
)
from kernelexp.model.arm import Arm
from kernelexp.model.limits import Limits
from kernelexp.project import Project
from kernelexp.project.problem import consult
from kernelexp.project.problem.consult import Consulted
from warpsim.launch import main_launch

Extents: TypeAlias = tuple[Extent, ...]
"""Of a job, by launch."""


def has_tiles(answer: Consulted) -> bool:
    return any(facts.tiles for facts in answer.points)


def second_size(one: Extents, others: Mapping[str, Extents], full: Extents) -> str | None:
    """The smallest that counters can be solved from, by tiles; a size above the full one, which a
    problem may have to be timed at, would take hours."""

    def tiles(extents: Extents) -> int:
        return sum(extent.tiles for extent in extents)

    able = (x for x, item in others.items() if _can_scale(one, item, full))
    return min(
        (x for x in able if tiles(others[x]) < tiles(full)),
        key=lambda x: tiles(others[x]),
        default=None,
    )


def solving(
    size: str, one: Extents, others: Mapping[str, Extents], full: Extents
) -> tuple[str, str] | None:
    """The two sizes that counters are solved from: two besides `size` where the problem has them,
    as it checks results at edges that the full problem may not have; else `size` and another."""
    other = second_size(one, others, full)
    if other is None:
        return None
    more = second_size(others[other], without(others, other), full)
    return (size, other) if more is None else (other, more)


def without(extents: Mapping[str, Extents], name: str) -> dict[str, Extents]:
    return {key: value for key, value in extents.items() if key != name}


def _can_scale(one: Extents, other: Extents, full: Extents) -> bool:
    """Whether this is so of each launch, and the job has the same launches at each size."""
    alike = len(one) == len(other) == len(full)
    return alike and all(map(can_scale, one, other, full))


def launches(project: Project, arm: Arm, sizes: Sequence[str], limits: Limits) -> Consulted:
    """Returns what problem.py says of a built arm, at those of these sizes that it can launch."""
    return consult.consult(
        *(project.root, arm.kernel, [arm], sizes, limits.problem_s),
        exports=[arm.exports],
        separately=True,
    )


def extents_of(answer: Consulted, size: str) -> Extents:
    """Tiles and CTAs of each launch of this size; a CTA is a tile unless the problem says else."""
    (facts,) = answer.points
    job = facts.launch_of(size)
    counts = [math.prod(launch.grid) for launch in job]
    return tuple(
        Extent(
            tiles=facts.tiles.get(size, ctas),
            ctas=ctas,
            loads=facts.loads.get(size, 0),
            blocks=facts.blocks.get(size, 0),
        )
        if launch is main_launch(job)
        else Extent(tiles=ctas, ctas=ctas)
        for launch, ctas in zip(job, counts, strict=True)
    )


def others(answer: Consulted, size: str, wanted: str = "full") -> dict[str, Extents]:
    """Returns the extents of sizes with launches, other than `size`, `wanted` and the full one.

    Parameters in which `size` equals the full size, such as the columns of a head, must equal those
    of `wanted`: counts of another loop say nothing of it.
    """
    (facts,) = answer.points
    return {
        name: extents_of(answer, name)
        for name in facts.launches
        if name not in (size, wanted, "full")
        and is_alike(answer, name, size, wanted)
        and is_even(answer, name, wanted)
    }


_UNEVEN = 2.0
"""Of the FLOPs of a tile: what a tile beyond an edge lacks is less."""


def is_even(answer: Consulted, name: str, wanted: str) -> bool:
    """Whether a tile has about as much work at both sizes, where work() and tiles() say so: CTAs
    that have nothing to do at the small one are tiles there too."""
    small, large = (_work_of_tile(answer, size)[0] for size in (name, wanted))
    return not (small and large) or 1 / _UNEVEN < small / large < _UNEVEN


def _work_of_tile(answer: Consulted, size: str) -> tuple[float, float]:
    """FLOPs and bytes by work() and tiles(); 0 where they don't say."""
    work, tiles = answer.work.get(size), sum(point.tiles.get(size, 0) for point in answer.points)
    return (work.flops / tiles, work.bytes / tiles) if work and tiles else (0.0, 0.0)


_AS_FULL = 0.01
"""Of the bytes of a tile. A stencil's tiles of 30 columns, 2.8 to a row of 84, had 784 elements for
894 at the full size; its instructions came out as 14.5% fewer, and are 13.6%."""


def is_as_full(answer: Consulted, names: Sequence[str], wanted: str) -> bool:
    """Whether a tile has as many bytes at these sizes, by work() and tiles(): those at an edge do
    less. Of kernels with FLOPs it is not asked: their MMAs are of whole tiles. Where the sizes
    differ in it, or by a factor of two, bytes do not grow with the tiles at all."""
    (flops, full), *small = (_work_of_tile(answer, size) for size in (wanted, *names))
    least, most = min(own for _, own in small), max(own for _, own in small)
    if flops or not (least and full) or most > (1 + _AS_FULL) * least:
        return True
    return abs(least / full - 1) <= _AS_FULL or not 1 / _UNEVEN < least / full < _UNEVEN


def unlike(answer: Consulted, name: str, wanted: str) -> str:
    """Says why counts of one size say nothing of another; empty where they may."""
    if is_even(answer, name, wanted):
        return ""
    small, large = (_work_of_tile(answer, size)[0] for size in (name, wanted))
    return (
        f"a tile of size '{name}' has {small:,.0f} FLOPs, one of '{wanted}' {large:,.0f}, by "
        "work() and tiles() in problem.py"
    )


def is_alike(answer: Consulted, name: str, size: str, wanted: str) -> bool:
    own, full, target = (answer.sizes[item] for item in (size, "full", wanted))
    same = [key for key, value in own.items() if full.get(key) == value]
    return all(answer.sizes[name].get(key) == target.get(key) for key in same)
