"""The stack, and calls that are no part of PTX's text: what ptx/outline.py makes of them."""

from __future__ import annotations

from warpsim.front.ptx.decoder import PtxDecoder, copyto
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Operand, Register, Symbol, Vector
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.wave import frames
from warpsim.machine.wave.machine import Op, WarpSet


def _kept(d: PtxDecoder) -> frames.Kept:
    """Registers and parameters that each call of a function has for itself."""
    function = d.function
    kinds = {name: kind for name, kind in function.registers.items() if "<>" not in name}
    registers = tuple(d.destination(Register(name)) for name in kinds)
    passed = [v for v in function.variables if v.space == "param"]
    spans = tuple(
        (d.source(Symbol(v.name), "u64"), v.size)
        for v in passed
        if not v.name.startswith("@result")
    )
    return frames.Kept(registers, spans)


@builder("alloca.{t:u32|u64}")
def alloca(d: PtxDecoder) -> Op:
    """Local memory from a stack of 1,024 bytes per thread, until the kernel ends or
    stackrestore."""
    target, size = d.destination(d.operands[0]), d.source(d.operands[1], d.parts[-1])
    base = d.source(Symbol(frames.STACK), d.parts[-1])
    align = max(16, d.constant(d.operands[2]) if len(d.operands) > 2 else 8)
    site = d.site

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        first = frames.take(warps, R[size], align, m, site).astype(R[base].dtype)
        copyto(R[target], R[base] + first, where=m)

    return op


@builder("stacksave.{t:u32|u64}")
def stacksave(d: PtxDecoder) -> Op:
    """How much of the stack is taken."""
    target = d.destination(d.operands[0])
    return lambda R, m, warps: copyto(R[target], frames.taken(warps), where=m, casting="unsafe")


@builder("stackrestore.{t:u32|u64}")
def stackrestore(d: PtxDecoder) -> Op:
    """Gives back what alloca has taken since stacksave."""
    saved = d.source(d.operands[0], d.parts[-1])
    return lambda R, m, warps: copyto(frames.taken(warps), R[saved], where=m, casting="unsafe")


@builder("frame.copy")
def copy(d: PtxDecoder) -> Op:
    """An argument or a result is handed over."""
    to, source = (d.source(operand, "u64") for operand in d.operands[:2])
    size = d.constant(d.operands[2])
    return lambda R, m, warps: frames.copy(R, m, warps, to, source, size)


@builder("frame.push")
def push(d: PtxDecoder) -> Op:
    """A call: the registers are kept, and where it goes on."""
    number, kept, site = d.constant(d.operands[0]), _kept(d), d.site
    return lambda R, m, warps: frames.push(R, m, warps, number, kept, site)


@builder("frame.pop")
def pop(d: PtxDecoder) -> Op:
    """A call is over: its caller has its registers again."""
    kept = _kept(d)
    return lambda R, m, warps: frames.pop(R, m, warps, kept)


@builder("frame.return")
def where(d: PtxDecoder) -> Op:
    """Where the innermost call goes on."""
    target = d.destination(d.operands[0])
    return lambda R, m, warps: frames.where(R, m, warps, target)


@builder("frame.find")
def find(d: PtxDecoder) -> Op:
    """The function that a pointer names."""
    target, pointer = d.destination(d.operands[0]), d.source(d.operands[1], "u64")
    addresses = tuple(d.source(symbol, "u64") for symbol in _items(d.operands[2]))
    site = d.site
    return lambda R, m, warps: frames.find(R, m, warps, target, pointer, addresses, site)


def _items(vector: Operand) -> tuple[Operand, ...]:
    assert isinstance(vector, Vector)
    return vector.items
