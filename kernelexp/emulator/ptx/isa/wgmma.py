"""Hopper's warpgroup matrix multiplication."""

from __future__ import annotations

from kernelexp.emulator.machine import warpgroup
from kernelexp.emulator.machine.machine import Op, each_warp
from kernelexp.emulator.machine.warpgroup import Wgmma, WgmmaWait
from kernelexp.emulator.ptx.decoder import Decoder
from kernelexp.emulator.ptx.registry import builder
from kernelexp.emulator.ptx.syntax import Immediate, Vector

_N = "{n:" + "|".join(f"m64n{n}" for n in range(8, 257, 8)) + "}"
_HEAD = "wgmma.mma_async.sync.aligned." + _N


@builder(_HEAD + "k16.{d:f32|f16}.f16.f16", sync=True)
@builder(_HEAD + "k16.f32.bf16.bf16", sync=True)
@builder(_HEAD + "k8.f32.tf32.tf32", sync=True)
@builder(_HEAD + "k32.{d:f32|f16}.{a:e4m3|e5m2}.{b:e4m3|e5m2}", sync=True)
@builder(_HEAD + "k32.s32.{a:s8|u8}.{b:s8|u8}{x:|.satfinite}", sync=True)
def mma_async(d: Decoder) -> Op:
    """The four warps' parts land together; accumulators hold poison until the wait; FP8 keeps 13
    bits as Hopper does. Sparse forms are rejected."""
    wgmma = _decoded(d)
    return lambda R, m, warps: warpgroup.join(warps, wgmma)


def _decoded(d: Decoder) -> Wgmma:
    parts = d.parts
    n = int(parts[4].split("n")[1].split("k")[0])
    d_type, a_type, b_type = parts[5:8]
    target, a, b, *rest = d.operands
    scale = d.predicate(rest.pop(0)) if rest else None
    # The signs of A and B, which integers don't have, then what is transposed: A only from memory.
    numbers = [operand.value for operand in rest if isinstance(operand, Immediate)]
    signs = [value == -1 for value in numbers[:2]]
    if d_type == "s32" or len(signs) < 2:
        signs = [False, False]
    majors = [bool(value) for value in numbers[2:]]
    return Wgmma(
        site=d.site,
        n=n,
        d_type=d_type,
        a_type=a_type,
        b_type=b_type,
        d=tuple(d.destinations(target, n // (2 if d_type in ("f32", "s32") else 4))),
        a=tuple(d.sources(a, "b32", 4)) if isinstance(a, Vector) else (d.source(a, "b64"),),
        b=(d.source(b, "b64"),),
        scale=scale,
        negate=(signs[0], signs[1]),
        transpose_a=majors[0] if len(majors) == 2 else False,
        transpose_b=majors[-1] if majors else False,
        saturate="satfinite" in parts,
    )


@builder("wgmma.fence.sync.aligned", sync=True)
def fence(d: Decoder) -> Op:
    """Registers are read when the operation lands; a missing fence is a warning."""
    return each_warp(warpgroup.fence)


@builder("wgmma.commit_group.sync.aligned", sync=True)
def commit(d: Decoder) -> Op:
    """Closes the warp's group."""
    return each_warp(warpgroup.commit)


@builder("wgmma.wait_group.sync.aligned", gate=True)
def wait(d: Decoder) -> WgmmaWait:
    """At most N groups pending; the registers of the others hold their results."""
    return WgmmaWait(d.site, d.constant(d.operands[0]))
