"""Hopper's warpgroup matrix multiplication, and the registers that its warps pass on"""

from __future__ import annotations

import re

from warpsim.front.sass.decoder import SassDecoder
from warpsim.front.sass.operands import is_predicate
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import ZERO, Described, Operand, Other, RegisterOperand
from warpsim.machine.core import registers
from warpsim.machine.sync.barriers import WarpgroupBarrier
from warpsim.machine.sync.register_pool import SetRegisters
from warpsim.machine.tensor import warpgroup
from warpsim.machine.tensor.products import Sparsity
from warpsim.machine.tensor.warpgroup import WgmmaWait
from warpsim.machine.tensor.wgmma import A_REGISTERS, Wgmma
from warpsim.machine.wave.machine import Op, each_warp

_SHAPE = "64x{:" + "|".join(str(n) for n in range(8, 257, 8)) + "}"
_GROUP = Other("gsb0")


@covers(f"HGMMA.{_SHAPE}x16.{{:F32|F16}}", f"HGMMA.{_SHAPE}x16.F32.BF16")
@covers(
    f"HGMMA.{_SHAPE}x8.F32.TF32", f"QGMMA.{_SHAPE}x32.{{:F32|F16}}.{{:E4M3|E5M2}}.{{:E4M3|E5M2}}"
)
@covers(f"IGMMA.{_SHAPE}x32.{{:S8|U8}}.{{:S8|U8}}{{:|.SAT}}")
@covers(f"HGMMA.SP.{_SHAPE}x32.{{:F32|F16}}", f"HGMMA.SP.{_SHAPE}x32.F32.BF16")
@covers(
    f"HGMMA.SP.{_SHAPE}x16.F32.TF32",
    f"QGMMA.SP.{_SHAPE}x64.{{:F32|F16}}.{{:E4M3|E5M2}}.{{:E4M3|E5M2}}",
)
@covers(f"IGMMA.SP.{_SHAPE}x64.{{:S8|U8}}.{{:S8|U8}}{{:|.SAT}}")
def mma(d: SassDecoder) -> Op:
    """The four warps' parts land together; accumulators hold poison until the wait. A pair of
    registers of the warp describes B, the pair before it A, unless that is in registers. With
    `gsb0` it closes the warp's group. With `.SP` a register has metadata for A, and of HGMMA a
    literal chooses the lanes."""
    wgmma = _decoded(d)
    return d.by_whole_warps(lambda R, m, warps: warpgroup.join(warps, wgmma))


def _decoded(d: SassDecoder) -> Wgmma:
    operands = list(d.operands)
    commits = operands[-1] == _GROUP
    if commits:
        operands.pop()
    target, first, *rest = operands
    a = None if isinstance(first, Described) else first
    described = first if a is None else rest.pop(0)
    if not isinstance(described, Described) or described.kind != "gdesc" or described.offset:
        raise d.refuse("describes no matrices where some are expected")
    sparsity = _sparsity(d, rest) if "SP" in d.modifiers else None
    signs = set(described.parts)
    if a is not None and getattr(a, "negated", False):
        signs.add("negA")
    n = _n(d)
    d_type, a_type, b_type = _types(d)
    descriptors = d.words(described.register, 4)
    count = n // (4 if d_type == "f16" else 2)
    return Wgmma(
        site=d.site,
        n=n,
        d_type=d_type,
        a_type=a_type,
        b_type=b_type,
        d=_results(d, target, count),
        a=tuple(descriptors[:2] if a is None else _registers(d, a)),
        b=tuple(descriptors[2:]),
        scale=_scale(d, target, rest),
        negate=("negA" in signs, "negB" in signs),
        transpose_a="tnspA" in signs,
        transpose_b="tnspB" in signs,
        saturate="SAT" in d.modifiers,
        commits=commits,
        sparsity=sparsity,
    )


def _sparsity(d: SassDecoder, rest: list[Operand]) -> Sparsity:
    """Taken off the end of the operands that follow the matrices."""
    selector = d.constant(rest.pop()) if d.instruction.base == "HGMMA" else 0
    (slot,) = d.words(d.unsigned(rest.pop()), 1)
    return Sparsity(slot, selector)


def _results(d: SassDecoder, target: Operand, count: int) -> tuple[int, ...]:
    """Of D; to RZ, if nobody wants it."""
    if getattr(target, "index", 0) == ZERO:
        return tuple(d.scratch(f"result {index}", 32) for index in range(count))
    return tuple(d.to_words(target, count))


def _n(d: SassDecoder) -> int:
    shapes = (re.fullmatch(r"64x(\d+)x\d+", name) for name in d.instruction.modifiers)
    return next(int(shape[1]) for shape in shapes if shape is not None)


def _types(d: SassDecoder) -> tuple[str, str, str]:
    """Of D, A and B."""
    names = [
        name.lower()
        for name in d.instruction.modifiers
        if name not in ("SP", "SAT") and not name.startswith("64x")
    ]
    if d.instruction.base == "IGMMA":
        return "s32", names[0], names[1]
    d_type, *operands = names
    a_type, *others = operands or ["f16"]
    return d_type, a_type, others[0] if others else a_type


def _registers(d: SassDecoder, operand: Operand) -> list[int]:
    """Of A; the sign has been read."""
    if (
        not isinstance(operand, RegisterOperand)
        or operand.part
        or operand.absolute
        or operand.inverted
    ):
        raise d.refuse("has an operand that is not covered")
    return d.words(RegisterOperand(file=operand.file, index=operand.index), A_REGISTERS)


def _scale(d: SassDecoder, target: Operand, rest: list[Operand]) -> tuple[int, bool] | None:
    """The predicate of adding to D, from the operands that follow the matrices; None: always."""
    addend, *predicates = rest
    if len(predicates) > 1 or not all(is_predicate(predicate) for predicate in predicates):
        raise d.refuse("has another number of operands than are covered")
    never = isinstance(addend, RegisterOperand) and addend.index == ZERO
    if never:
        return d.slot(registers.Literal(1, 1)), True
    if addend != target:
        raise d.refuse("adds to other registers than those of its result")
    return d.predicate_slot(predicates[0]) if predicates else None


@covers("WARPGROUP.ARRIVE")
def fence(d: SassDecoder) -> Op:
    """Registers are read when the operation lands."""
    return d.by_whole_warps(each_warp(warpgroup.fence))


@covers("WARPGROUP.WAIT")
def meet(d: SassDecoder) -> WarpgroupBarrier:
    """The four warps wait for one another: in cuBLAS's kernels, whose `.ARRIVE` comes directly
    before it, around stores of what all of them have put into shared memory."""
    d.take(d.operands, 0)
    return WarpgroupBarrier(d.site)


@covers("WARPGROUP.DEPBAR.LE")
def wait(d: SassDecoder) -> WgmmaWait:
    """At most so many of the warp's groups pending; the registers of the others hold their
    results."""
    group, allowed = d.take(d.operands, 2)
    if group != _GROUP:
        raise d.refuse("waits for a group that is not covered")
    return WgmmaWait(d.site, d.constant(allowed))


@covers("USETMAXREG.TRY_ALLOC.CTAPOOL", "USETMAXREG.DEALLOC.CTAPOOL")
def set_registers(d: SassDecoder) -> SetRegisters:
    """Changes the warp's registers per thread. `.TRY_ALLOC` waits until others have given back
    enough, and never says that they have not."""
    *results, count = d.operands
    takes = "TRY_ALLOC" in d.modifiers
    d.take(results, 1 if takes else 0)
    result = d.to_predicate(results[0]) if takes else None
    return SetRegisters(d.site, d.constant(count), takes, result)
