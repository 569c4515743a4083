"""What the device side of the CUDA runtime does for a kernel: printf, assert, malloc, free."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from warpsim.machine.core.arrays import Mask
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.site import Site
from warpsim.machine.memory.execution import Printed
from warpsim.machine.memory.layout import GLOBAL_BASE, LOCAL_WINDOW, WINDOW, WINDOW_BITS
from warpsim.machine.wave.machine import WarpSet

HEAP_BYTES = 8 << 20
"""As much as the driver sets aside for malloc() unless it is told otherwise."""
FUNCTIONS = ("vprintf", "__assertfail", "malloc", "free")

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d+|\*)?(?:\.(?P<precision>\d+|\*))?"
    r"(?P<length>hh|h|ll|l|z|j|t)?(?P<kind>[diouxXcsfFeEgGaAp%])"
)


class Thread:
    """A thread's memory, as a call of the runtime reads it."""

    def __init__(self, warps: WarpSet, row: int, lane: int) -> None:
        self.machine = warps.machine
        self.place = int(warps.warps[row])
        self.cta = self.machine.cta_of(self.place).number
        self.number = self.machine.warp_of(self.place) * 32 + lane
        self._own = int(warps.local[row, lane])

    def read(self, address: int, size: int) -> bytes:
        """Bytes at a generic address in global or in the thread's local memory."""
        arena, at = self.machine.world.arena, address - GLOBAL_BASE
        if address >> WINDOW_BITS == LOCAL_WINDOW >> WINDOW_BITS:
            arena, at = self.machine.local, (address & WINDOW) + self._own
        return arena.data[max(0, at) : at + size].tobytes()

    def argument(self, at: int, size: int = 8) -> int:
        """A parameter of the call, by its place in local memory."""
        return int.from_bytes(self.read(LOCAL_WINDOW | at, size), "little")

    def returns(self, at: int, value: int, size: int) -> None:
        first = self._own + at
        self.machine.local.scatter(np.array([first]), np.array([value], f"u{size}"), size, 1)

    def text(self, address: int) -> str:
        """The string at a generic address."""
        return self.read(address, 4096).partition(b"\0")[0].decode(errors="replace")


def threads(warps: WarpSet, m: Mask) -> list[tuple[int, Thread]]:
    """(row, thread) of every active lane."""
    return [(row, Thread(warps, row, lane)) for row, _, lane in warps.each_lane(m)]


def print_text(thread: Thread, form: int, values: int) -> int:
    """printf: notes the text; how many values it has shown."""
    at = values

    def take(size: int) -> bytes:
        nonlocal at
        first = -(-at // size) * size
        at = first + size
        return thread.read(first, size)

    shown = 0

    def one(match: re.Match[str]) -> str:
        nonlocal shown
        if match["kind"] == "%":
            return "%"
        shown += 1
        return _converted(thread, match, take)

    text = _CONVERSION.sub(one, thread.text(form))
    thread.machine.execution.printed.append(
        Printed(cta=thread.cta, thread=thread.number, text=text)
    )
    return shown


def _converted(thread: Thread, match: re.Match[str], take: Callable[[int], bytes]) -> str:
    """One conversion of a format, as C's printf would show it."""

    def number(size: int, *, signed: bool = False) -> int:
        return int.from_bytes(take(size), "little", signed=signed)

    width, precision = (
        number(4, signed=True) if match[name] == "*" else match[name]
        for name in ("width", "precision")
    )
    kind, size = match["kind"], 8 if match["length"] in ("l", "ll", "z", "j", "t") else 4
    value: object
    if kind in "diouxXc":
        value, kind = number(size, signed=kind in "di"), {"i": "d", "u": "d"}.get(kind, kind)
    elif kind == "s":
        value = thread.text(number(8))
    elif kind == "p":
        value, kind = f"{number(8):#x}", "s"
    else:
        value = float(np.frombuffer(take(8), np.float64)[0])
        if kind in "aA":
            value, kind = float(value).hex(), "s"
    point = "" if precision is None else f".{precision}"
    return f"%{match['flags']}{'' if width is None else width}{point}{kind}" % value


def fail(thread: Thread, site: Site, condition: int, file: int, line: int) -> None:
    """assert(): ends the launch with a finding."""
    thread.machine.report(
        "assertion",
        f"thread {thread.number}: {thread.text(file)}:{line}: assertion "
        f"`{thread.text(condition)}` failed.",
        site,
        thread.place,
    )
    raise Fatal


def allocate(thread: Thread, size: int) -> int:
    """malloc(): a generic address, 0 if the heap is full."""
    world = thread.machine.execution.world
    address = world.reserve(size)
    if address:
        world.allocated[address] = size
    return address


def free(thread: Thread, site: Site, address: int) -> None:
    """free() of what malloc() gave."""
    world = thread.machine.execution.world
    size = world.allocated.pop(address, None)
    if size is not None:
        world.release(address, size)
    elif address:
        sentence = f"free() of {address:#x}, which malloc() did not give."
        thread.machine.report("heap", sentence, site, thread.place)
