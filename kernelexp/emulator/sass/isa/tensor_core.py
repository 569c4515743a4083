"""The fifth-generation tensor core: products into tensor memory, and their commit"""

from __future__ import annotations

from kernelexp.emulator.machine import tensor_core
from kernelexp.emulator.machine.arrays import Array
from kernelexp.emulator.machine.asynchronous import Issuer
from kernelexp.emulator.machine.instruction_descriptor import Shape
from kernelexp.emulator.machine.machine import Machine, Op
from kernelexp.emulator.machine.tensor_core import Mma
from kernelexp.emulator.sass.decoder import Decoder, once_per_warp
from kernelexp.emulator.sass.operands import is_predicate
from kernelexp.emulator.sass.registry import covers
from kernelexp.emulator.sass.syntax import ZERO, Described, Operand, Register

_TF32 = 2
"""The type of A in an instruction descriptor."""
_COLLECTOR = {"A_KEEP", "A_REUSE"}
_KINDS = {"UTCQMMA": "f8f6f4", "UTCIMMA": "i8"}


def _described(d: Decoder, operand: Operand, *kinds: str) -> Described:
    if not isinstance(operand, Described) or operand.kind not in kinds or operand.offset:
        raise d.refuse("has an operand that is not covered")
    return operand


def _kind(base: str, descriptor: int) -> str:
    """What PTX calls the kind of the product; UTCHMMA has two."""
    if base in _KINDS:
        return _KINDS[base]
    return "tf32" if descriptor >> 7 & 7 == _TF32 else "f16"


@covers("{:UTCHMMA|UTCQMMA|UTCIMMA}{:|.2CTA}")
def mma(d: Decoder) -> Op:
    """Pairs of registers of the warp describe A and B, A may lie in tensor memory; registers may
    name lanes that are not written. Sparse, block-scaled and `.WS` forms are refused, and inputs
    that are scaled."""
    a, b, to, _, descriptor, *rest = d.operands
    *lanes, accumulates = rest
    if len(lanes) > 1 or not is_predicate(accumulates):
        raise d.refuse("has operands that are not covered")
    left = _described(d, a, "gdesc", "tmem")
    if not set(left.parts) <= _COLLECTOR:
        raise d.refuse("has an operand that is not covered")
    group, base = 2 if "2CTA" in d.modifiers else 1, d.instruction.base
    a_in_tmem = left.kind == "tmem"
    a_slots = d.words(left.register, 1 if a_in_tmem else 2)
    b_slots = d.words(_described(d, b, "gdesc").register, 2)
    (d_slot,) = d.words(_described(d, to, "tmem").register, 1)
    (shape,) = d.words(_described(d, descriptor, "idesc").register, 1)
    disabled = [slot for each in lanes for slot in _lanes(d, each, 4 * group)]
    enable, flip = d.predicate_slot(accumulates)

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        value = int(R[shape][row, 0])
        product = Mma(
            shape=Shape(value, _kind(base, value), group),
            d=int(R[d_slot][row, 0]),
            a=d.joined(R, a_slots, row),
            a_in_tmem=a_in_tmem,
            b=d.joined(R, b_slots, row),
            accumulate=bool(R[enable][row, 0]) != flip,
            disabled=tuple(int(R[slot][row, 0]) for slot in disabled),
        )
        tensor_core.issue(machine, issuer, product)

    return once_per_warp(d, act)


def _lanes(d: Decoder, operand: Operand, count: int) -> list[int]:
    if not isinstance(operand, Register) or operand.file != "UR":
        raise d.refuse("has operands that are not covered")
    return d.words(d.unsigned(operand), count)


@covers("UTCBAR", "UTCBAR{:|.2CTA}.MULTICAST", "UTCBAR.2CTA")
def commit(d: Decoder) -> Op:
    """One arrival when the warp's products so far have landed, with `.MULTICAST` in every CTA of a
    mask."""
    address, unused, *mask = d.operands
    d.take(mask, 1 if "MULTICAST" in d.modifiers else 0)
    if not (isinstance(unused, Register) and unused.index == ZERO):
        raise d.refuse("has operands that are not covered")
    (bar,) = d.uniform(address, 1)
    ranks = d.words(d.unsigned(mask[0]), 1)[0] if mask else None

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        named = None if ranks is None else int(R[ranks][row, 0]) & 0xFFFF
        tensor_core.commit(machine, issuer, int(R[bar][row, 0]), named)

    return once_per_warp(d, act)
