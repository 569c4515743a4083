"""Calls of the CUDA runtime's device functions"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsim.front.sass.decoder import SassDecoder
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import RegisterOperand
from warpsim.front.sass.word import BYTES
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.site import Site
from warpsim.machine.wave import runtime
from warpsim.machine.wave.machine import Op, WarpSet
from warpsim.machine.wave.runtime import FUNCTIONS, Thread

_FIRST, _COUNT, _RETURN = 4, 6, 20
"""Registers of the ABI: the first of the arguments and of the result, and the return address's."""


def _print(thread: Thread, site: Site, words: list[int]) -> int:
    return runtime.print_text(thread, _pair(words, 0), _pair(words, 2))


def _fail(thread: Thread, site: Site, words: list[int]) -> int:
    runtime.fail(thread, site, _pair(words, 0), _pair(words, 2), words[4])
    return 0


def _allocate(thread: Thread, site: Site, words: list[int]) -> int:
    return runtime.allocate(thread, _pair(words, 0))


def _free(thread: Thread, site: Site, words: list[int]) -> int:
    runtime.free(thread, site, _pair(words, 0))
    return 0


def _pair(words: list[int], first: int) -> int:
    return words[first + 1] << 32 | words[first]


_EFFECTS: dict[str, Callable[[Thread, Site, list[int]], int]] = dict(
    zip(FUNCTIONS, (_print, _fail, _allocate, _free), strict=True)
)


@covers("LEPC")
def lepc(d: SassDecoder) -> Op:
    """The address of an instruction: its own where it names none."""
    target, *places = d.operands
    address = d.instruction.address
    if places:
        (place,) = d.take(places, 1)
        d.number_at(place)
        address = d.constant(place)
    write, value = d.to_pair(target), np.uint64(address)
    return lambda R, m, warps: write(R, np.full((warps.count, 32), value), m)


@covers("CALL.ABS.NOINC")
def call(d: SassDecoder) -> Op:
    """`printf`, `assert`, `malloc` and `free`, to which no other instruction may return."""
    (target,) = d.take(d.operands, 1)
    where, back, site = d.pair(target), d.pair(RegisterOperand(file="R", index=_RETURN)), d.site
    words = d.words(RegisterOperand(file="R", index=_FIRST), _COUNT)
    following = d.instruction.address + BYTES

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        functions = {warps.machine.world.symbol(name): name for name in _EFFECTS}
        addresses, returns = where(R), back(R)
        for row, thread in runtime.threads(warps, m):
            lane = thread.number % 32
            name = functions.get(int(addresses[row, lane]))
            if name is None or int(returns[row, lane]) != following:
                sentence = f"a call of {int(addresses[row, lane]):#x}, where no function begins."
                warps.machine.report("out-of-bounds", sentence, site, thread.place)
                raise Fatal
            result = _EFFECTS[name](thread, site, [int(R[slot][row, lane]) for slot in words])
            for part, slot in enumerate(words[:2] if name in ("vprintf", "malloc") else ()):
                R[slot][row, lane] = result >> 32 * part & 0xFFFF_FFFF

    return op
