"""Calls of the CUDA runtime's device functions."""

from __future__ import annotations

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.inline import LEAVE
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Symbol
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.wave import frames, runtime
from warpsim.machine.wave.machine import Op, WarpSet


def _places(d: PtxDecoder) -> list[int]:
    """Slots of the addresses of the call's results and parameters in local memory."""
    return [d.source(operand, "u64") for operand in d.operands]


@builder(LEAVE)
def leave(d: PtxDecoder) -> Op:
    """What the function's variables held is gone."""
    sizes = {variable.name: variable.size for variable in d.function.variables}
    spans = [
        (d.source(operand, "u64"), sizes[operand.name])
        for operand in d.operands
        if isinstance(operand, Symbol)
    ]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        first = warps.local if m is True else warps.local[m]
        for slot, size in spans:
            frames.forget(warps.machine.local, first + int(R[slot][0, 0]), size)

    return op


@builder("builtin.vprintf")
def vprintf(d: PtxDecoder) -> Op:
    """`call vprintf`: the text is kept with its CTA and thread."""
    result, form, values = _places(d)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for row, thread in runtime.threads(warps, m):
            own = thread.argument(int(R[form][row, 0])), thread.argument(int(R[values][row, 0]))
            thread.returns(int(R[result][row, 0]), runtime.print_text(thread, *own), 4)

    return op


@builder("builtin.assertfail")
def assertfail(d: PtxDecoder) -> Op:
    """`call __assertfail`: ends the launch with a finding."""
    condition, file, line, *_ = _places(d)
    site = d.site

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        row, thread = runtime.threads(warps, m)[0]
        words = [int(R[slot][row, 0]) for slot in (condition, file, line)]
        texts = thread.argument(words[0]), thread.argument(words[1])
        runtime.fail(thread, site, *texts, thread.argument(words[2], 4))

    return op


@builder("builtin.malloc")
def malloc(d: PtxDecoder) -> Op:
    """`call malloc`: from a heap of 8 MiB."""
    result, size = _places(d)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for row, thread in runtime.threads(warps, m):
            address = runtime.allocate(thread, thread.argument(int(R[size][row, 0])))
            thread.returns(int(R[result][row, 0]), address, 8)

    return op


@builder("builtin.free")
def free(d: PtxDecoder) -> Op:
    """`call free`: later accesses are out of bounds."""
    (address,) = _places(d)
    site = d.site

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for row, thread in runtime.threads(warps, m):
            runtime.free(thread, site, thread.argument(int(R[address][row, 0])))

    return op
