"""Calls that are no part of PTX's text: what ptx/outline.py makes of them."""

from __future__ import annotations

from kernelexp.emulator.machine import frames
from kernelexp.emulator.machine.machine import Op
from kernelexp.emulator.ptx.decoder import Decoder
from kernelexp.emulator.ptx.registry import builder
from kernelexp.emulator.ptx.syntax import Operand, Register, Symbol, Vector


def _kept(d: Decoder) -> frames.Kept:
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


@builder("frame.copy")
def copy(d: Decoder) -> Op:
    """An argument or a result is handed over."""
    to, source = (d.source(operand, "u64") for operand in d.operands[:2])
    size = d.constant(d.operands[2])
    return lambda R, m, warps: frames.copy(R, m, warps, to, source, size)


@builder("frame.push")
def push(d: Decoder) -> Op:
    """A call: the registers are kept, and where it goes on."""
    number, kept = d.constant(d.operands[0]), _kept(d)
    return lambda R, m, warps: frames.push(R, m, warps, number, kept)


@builder("frame.pop")
def pop(d: Decoder) -> Op:
    """A call is over: its caller has its registers again."""
    kept = _kept(d)
    return lambda R, m, warps: frames.pop(R, m, warps, kept)


@builder("frame.return")
def where(d: Decoder) -> Op:
    """Where the innermost call goes on."""
    target = d.destination(d.operands[0])
    return lambda R, m, warps: frames.where(R, m, warps, target)


@builder("frame.find")
def find(d: Decoder) -> Op:
    """The function that a pointer names."""
    target, pointer = d.destination(d.operands[0]), d.source(d.operands[1], "u64")
    addresses = tuple(d.source(symbol, "u64") for symbol in _items(d.operands[2]))
    site = d.site
    return lambda R, m, warps: frames.find(R, m, warps, target, pointer, addresses, site)


def _items(vector: Operand) -> tuple[Operand, ...]:
    assert isinstance(vector, Vector)
    return vector.items
