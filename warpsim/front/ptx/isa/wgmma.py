"""Hopper's warpgroup matrix multiplication."""

from __future__ import annotations

from warpsim.arithmetic.matrices import sparse
from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.isa.mma import sparsity
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Immediate, Operand, Vector
from warpsim.machine.tensor import warpgroup
from warpsim.machine.tensor.matrix_operands import K_BYTES
from warpsim.machine.tensor.products import Sparsity
from warpsim.machine.tensor.warpgroup import WgmmaWait
from warpsim.machine.tensor.wgmma import ELEMENT, Wgmma
from warpsim.machine.wave.machine import Op, each_warp

_N = "{n:" + "|".join(f"m64n{n}" for n in range(8, 257, 8)) + "}"
_INTEGERS_N = "{n:" + "|".join(f"m64n{n}" for n in (8, 16, 24, *range(32, 257, 16))) + "}"
_HEAD = "wgmma.mma_async.sync.aligned." + _N
_SPARSE = "wgmma.mma_async.sp.sync.aligned." + _N


@builder(_HEAD + "k16.{d:f32|f16}.f16.f16", sync=True)
@builder(_HEAD + "k16.f32.bf16.bf16", sync=True)
@builder(_HEAD + "k8.f32.tf32.tf32", sync=True)
@builder(_HEAD + "k32.{d:f32|f16}.{a:e4m3|e5m2}.{b:e4m3|e5m2}", sync=True)
@builder(
    "wgmma.mma_async.sync.aligned." + _INTEGERS_N + "k32.s32.{a:s8|u8}.{b:s8|u8}{x:|.satfinite}",
    sync=True,
)
def mma_async(d: PtxDecoder) -> Op:
    """The four warps' parts land together; accumulators hold poison until the wait; FP8 keeps 13
    bits as Hopper does."""
    return _joined(_decoded(d, *d.operands))


@builder(_SPARSE + "k32.{d:f32|f16}.f16.f16", sync=True)
@builder(_SPARSE + "k32.f32.bf16.bf16", sync=True)
@builder(_SPARSE + "k16.f32.tf32.tf32", sync=True)
@builder(_SPARSE + "k64.{d:f32|f16}.{a:e4m3|e5m2}.{b:e4m3|e5m2}", sync=True)
@builder(
    "wgmma.mma_async.sp.sync.aligned." + _INTEGERS_N + "k64.s32.{a:s8|u8}.{b:s8|u8}{x:|.satfinite}",
    sync=True,
)
def mma_async_sparse(d: PtxDecoder) -> Op:
    """The same, and the sum is that of the stored elements. Metadata is read at the instruction;
    one for which the ISA leaves the behaviour undefined is a finding."""
    target, a, b, metadata, selector, *rest = d.operands
    element = ELEMENT[d.parts[7]]
    lanes = sparse.groups(K_BYTES // element, 8 * element) // 4
    sparse_part = sparsity(d, metadata, selector, False, lanes)
    return _joined(_decoded(d, target, a, b, *rest, sparsity=sparse_part))


def _joined(wgmma: Wgmma) -> Op:
    return lambda R, m, warps: warpgroup.join(warps, wgmma)


def _decoded(
    d: PtxDecoder,
    target: Operand,
    a: Operand,
    b: Operand,
    *others: Operand,
    sparsity: Sparsity | None = None,
) -> Wgmma:
    parts = [part for part in d.parts if part != "sp"]
    n = int(parts[4].split("n")[1].split("k")[0])
    d_type, a_type, b_type = parts[5:8]
    rest = list(others)
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
        sparsity=sparsity,
    )


@builder("wgmma.fence.sync.aligned", sync=True)
def fence(d: PtxDecoder) -> Op:
    """Registers are read when the operation lands; a missing fence is a finding."""
    return each_warp(warpgroup.fence)


@builder("wgmma.commit_group.sync.aligned", sync=True)
def commit(d: PtxDecoder) -> Op:
    """Closes the warp's group."""
    return each_warp(warpgroup.commit)


@builder("wgmma.wait_group.sync.aligned", gate=True)
def wait(d: PtxDecoder) -> WgmmaWait:
    """At most N groups pending; the registers of the others hold their results."""
    return WgmmaWait(d.site, d.constant(d.operands[0]))
