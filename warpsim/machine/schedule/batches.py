"""Fragments that stand at one instruction, as sets that run together."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Container

from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.warps import ALL, expand
from warpsim.machine.sync.gates import Fragment, Meeting
from warpsim.machine.wave.machine import WarpSet


class Batch:
    """Fragments at one instruction whose warps form a WarpSet."""

    __slots__ = ("fragments", "lanes", "mask", "meets", "set")

    def __init__(self, warps: WarpSet, fragments: list[Fragment]) -> None:
        self.set = warps
        self.fragments = fragments
        masks = [fragment.mask for fragment in fragments]
        meetings = [fragment.meetings for fragment in fragments]
        self.meets = any(meetings)
        self.mask: Mask = True
        self.lanes = 32 * len(masks)
        if masks.count(ALL) != len(masks):
            self.mask = _lanes(tuple(masks))
            self.lanes = sum([mask.bit_count() for mask in masks])


@functools.lru_cache(maxsize=4096)
def _lanes(masks: tuple[int, ...]) -> Array:
    """Lane masks as bool [n, 32], which nobody may change."""
    lanes = expand(list(masks))
    lanes.flags.writeable = False
    return lanes


def merge(fragments: list[Fragment]) -> list[Fragment]:
    """Fragments of one warp at the same place become one."""
    if len(fragments) == 1:
        return fragments
    merged: list[Fragment] = []
    for fragment in fragments:
        last = merged[-1] if merged else None
        if last and last.warp == fragment.warp and last.same_place(fragment):
            last.mask |= fragment.mask
        else:
            merged.append(fragment)
    return merged


def runs(fragments: list[Fragment], resident: int) -> list[list[Fragment]]:
    """Fragments of warps at equal distances: where they are not, those of one index in neighbouring
    CTAs, or, `resident` places apart, of one CTA."""
    if _is_run([fragment.warp for fragment in fragments]):
        return [fragments]
    grouped = []
    while fragments:
        waiting = {fragment.warp: fragment for fragment in reversed(fragments)}
        others = [fragment for fragment in fragments if waiting[fragment.warp] is not fragment]
        while waiting:
            first = min(waiting)
            across, along = (_run(waiting, first, step) for step in (1, resident))
            places = across if len(across) >= len(along) else along
            grouped.append([waiting.pop(place) for place in places])
        fragments = others  # a second fragment of a warp, which has other meetings before it
    return grouped


def _is_run(places: list[int]) -> bool:
    """Whether these places, in ascending order, are at equal distances."""
    if len(places) < 2:
        return len(places) == 1
    step = places[1] - places[0]
    return step > 0 and places == list(range(places[0], places[-1] + 1, step))


def _run(waiting: Container[int], first: int, step: int) -> list[int]:
    """The longest run of places from the first on."""
    places = [first]
    while places[-1] + step in waiting:
        places.append(places[-1] + step)
    return places


def common(fragments: list[Fragment]) -> tuple[Meeting, ...]:
    """The meetings that all of these still have before them."""
    shared = fragments[0].meetings
    for fragment in fragments[1:]:
        pairs = zip(shared, fragment.meetings, strict=False)
        length = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] is pair[1], pairs))
        shared = shared[:length]
    return shared
