"""What compiled/*.cpp is given, field by field as interpreter.hpp and access.cpp have it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import numpy as np

SLOTS, NUMBERS = 10, 7
"""Of an instruction."""
READS, DECIDES, WRITES = 8, 2, 8
"""Slots of each kind that marks are handed on between."""
RACES = 256
"""That compiled code notes before Python has to report them."""
COSTS = 8
"""The figures of access.Cost."""
CHANGED = 512
"""mbarriers with a new phase that compiled code notes before Python has to hear of them."""
INSTRUCTION = np.dtype(
    [
        *(
            (name, np.int32)
            for name in ("operation", "guard", "negated", "site", "uniform", "signs")
        ),
        ("slots", np.int32, SLOTS),
        ("numbers", np.int32, NUMBERS),
        ("offset", np.int64),
    ],
    align=True,
)
BLOCK = np.dtype(
    [
        ("code", np.int64),
        *((name, np.int32) for name in ("last", "weight", "held", "joins")),
        *((name, np.int32) for name in ("guard", "negated", "target", "following")),
    ],
    align=True,
)
ENTER = -1
"""For an instruction of a block: it has yet to be entered."""
NEVER, IN_PART, ALWAYS, GATE = range(4)
"""When Python has to enter a block: kx::Held."""
ENTERED = 3
"""What is counted of a block: warps, lanes, and which warps of a CTA, a bit each."""
SLOT = np.dtype([(name, np.int64) for name in ("data", "row", "lane")])
USES = np.dtype(
    [
        ("rule", np.int32),
        ("reads", np.int32, READS),
        ("decides", np.int32, DECIDES),
        ("writes", np.int32, WRITES),
    ]
)
ORIGIN = np.dtype(
    [
        *((name, np.int32) for name in ("loaded", "site", "place", "lane")),
        ("address", np.int64),
    ]
)


def _pointers(*names: str) -> Iterable[tuple[str, type[ctypes.c_void_p]]]:
    return ((name, ctypes.c_void_p) for name in names)


def _integers(*names: str) -> Iterable[tuple[str, type[ctypes.c_int64]]]:
    return ((name, ctypes.c_int64) for name in names)


class MemoryLayout(ctypes.Structure):
    """One memory, its state and its history."""

    _fields_ = (
        *_pointers("data", "state", "written", "read", "pages", "seen", "uses"),
        *_integers("size", "units", "unit", "peers", "others", "engines", "earlier", "agents"),
        *_integers("warps", "ctas"),
        *_integers("first", "before", "is_global", "unordered", "unread", "uncounted"),
        ("cost", ctypes.c_int64 * COSTS),
    )


class WarpsLayout(ctypes.Structure):
    """A set of warps, and where its accesses to one memory may go."""

    _fields_ = (
        *_pointers("base", "lower", "places", "columns"),
        *_integers("rows", "extent", "lane"),
    )


class SetLayout(ctypes.Structure):
    """A set of warps, as instructions execute for it; `warps` by memory, once it has made an
    access."""

    _fields_ = (*_integers("first", "step", "rows", "indices"), ("warps", ctypes.c_void_p * 3))


class CodeLayout(ctypes.Structure):
    """The instructions of a block."""

    _fields_ = (*_pointers("instructions", "uses"), *_integers("count"))


class TurnLayout(ctypes.Structure):
    """Where warps are, and what they have left of their turn."""

    _fields_ = (
        *_integers("block", "at", "turn", "polls", "quantum", "lanes", "meets", "steps", "now"),
    )


class MarksLayout(ctypes.Structure):
    """Marks of registers: see marks.py."""

    _fields_ = (
        *_pointers("marks", "marked", "origins", "registers", "seen", "octets", "expected"),
        *_integers("warps", "total", "expecting"),
    )


class RaceLayout(ctypes.Structure):
    """An access that raced with one to a unit of the history at an epoch; `raced` as kx::Raced."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("memory", "site", "thread", "raced")),
        *_integers("unit", "epoch"),
    )


class RacesLayout(ctypes.Structure):
    """Those that Python has yet to report."""

    _fields_ = (*_integers("count"), ("first", RaceLayout * RACES))


class MachineLayout(ctypes.Structure):
    """What instructions act on."""

    _fields_ = (
        *_pointers("slots"),
        ("memories", ctypes.c_void_p * 3),
        *_pointers("entered", "guarded", "costs", "lanes", "results", "marks", "races"),
        *_pointers("sync"),
    )


class MbarrierLayout(ctypes.Structure):
    """One mbarrier: see mbarrier.py."""

    _fields_ = (
        *_integers("number", "place", "expected", "pending", "phase", "transactions"),
        *_integers("made", "maker", "lost"),
        ("rows", ctypes.c_void_p * 2),
        *_integers("flipped", "is_releasing", "has_released"),
    )


class ProxyFencesLayout(ctypes.Structure):
    """fence.proxy.async of one state space."""

    _fields_ = (*_pointers("times", "seen"),)


class SynchronisationLayout(ctypes.Structure):
    """What warps tell each other by."""

    _fields_ = (
        *_pointers("seen"),
        *_integers("warps", "agents"),
        *_pointers("wide", "fenced_init"),
        ("proxies", ProxyFencesLayout * 2),
        *_integers("kept", "ordered"),
        *_pointers("mbarriers"),
        *_integers("resident", "cluster_size", "stride", "scratch"),
        *_pointers("ended", "used", "waits"),
        *_integers("fences", "waited", "changed_count"),
        ("changed", ctypes.c_int64 * CHANGED),
    )
