"""Accesses to memory by kind and width, in SASS and in PTX."""

from __future__ import annotations

import kept
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.evidence.emulate import ptx_accesses
from kernelexp.facts.accesses import KINDS, Access, of_sass
from kernelexp.system.toolchain import Toolchain
from warpsim.tables import opcodes

KERNEL = """
struct alignas(4) Half4 { short a, b; };
extern "C" __global__ void copy(const float4* x, float* y, const Half4* z, double2* w) {
  __shared__ float tile[256];
  const float4 v = x[threadIdx.x];
  asm volatile("{ cp.async.ca.shared.global [%0], [%1], 8; }" ::
               "r"((unsigned)__cvta_generic_to_shared(tile)), "l"(y));
  tile[threadIdx.x] = v.x + v.y + v.z + v.w + z[threadIdx.x].a;
  __syncthreads();
  w[threadIdx.x] = double2{tile[0], tile[1]};
}
"""


@pytest.mark.parametrize(
    ("mnemonic", "kind", "bits"),
    [
        ("LDG.E", "global load", 32),
        ("LDG.E.128.CONSTANT", "global load", 128),
        ("LDG.E.LTC128B.64", "global load", 64),
        ("LDG.E.ENL2.256", "global load", 256),
        ("STG.E.U16", "global store", 16),
        ("LDS.U8", "shared load", 8),
        ("LDL.64", "local load", 64),
        ("LDGSTS.E.BYPASS.128", "copy to shared", 128),
        ("LDSM.16.M88", "matrix load", 32),
        ("LDSM.16.MT88.4", "matrix load", 128),
        ("LDTM.x32", "tensor memory load", 1024),
        ("LDTM.16dp256bit.x4", "tensor memory load", 512),
        ("LD.E.64", "generic load", 64),
    ],
)
def test_the_width_of_an_access_is_in_its_modifiers(mnemonic: str, kind: str, bits: int) -> None:
    assert of_sass(mnemonic) == Access(kind, bits)


def test_what_moves_nothing_is_no_access() -> None:
    assert of_sass("FFMA") is None
    assert of_sass("LDC.64") is None
    assert of_sass("") is None


@given(st.sampled_from(opcodes.known()), st.lists(st.sampled_from("E 64 M88 x4 16 4".split())))
def test_any_modifiers_give_a_kind_that_is_shown(opcode: str, modifiers: list[str]) -> None:
    access = of_sass(".".join([opcode, *modifiers]))
    assert access is None or (access.kind in KINDS and access.bits > 0)


@given(
    st.sampled_from(["", "@P0 ", "@!P6 ", "@UP1 ", "@!PT "]),
    st.sampled_from(opcodes.known()),
    st.lists(st.sampled_from(["E", "128", "64x64x16", "DEFER_BLOCKING", "A1T0"]), max_size=4),
    st.sampled_from(["", " R1, [R2+UR4]", " PT, R5, R4, 0x10, 0x1f", " 0x0"]),
)
def test_an_instruction_has_its_predicate_opcode_and_modifiers(
    guard: str, opcode: str, modifiers: list[str], operands: str
) -> None:
    mnemonic = ".".join([opcode, *modifiers])
    result = SassInstruction(offset=0, text=f"{guard}{mnemonic}{operands}", source=None)
    assert (result.opcode, result.mnemonic) == (opcode, mnemonic)
    assert result.guard == guard.strip(" @")
    assert result.never_executes == (guard == "@!PT ")


def test_ptx_says_what_the_source_asked_for(tools: Toolchain) -> None:
    argv = [tools.nvcc, "-arch=sm_80", "-ptx", "-o", "copy.ptx", "copy.cu"]
    ptx = kept.run(argv, {"copy.cu": KERNEL}, "copy.ptx").decode()
    result = ptx_accesses.count(ptx, "copy")
    assert result == {
        Access("copy to shared", 64): 1,
        Access("global load", 16): 1,
        Access("global load", 128): 1,
        Access("global store", 128): 1,
        Access("shared load", 32): 2,
        Access("shared store", 32): 1,
    }


@pytest.mark.parametrize(
    ("opcode", "access"),
    [
        ("ld.shared::cluster.u32", Access("generic load", 32)),
        ("ld.shared::cta.v4.f32", Access("shared load", 128)),
        ("ld.global.nc.L1::no_allocate.v4.u32", Access("global load", 128)),
        ("ld.relaxed.gpu.global.u64", Access("global load", 64)),
        ("ld.f16", Access("generic load", 16)),
        ("st.local.v2.f16x2", Access("local store", 64)),
        ("ld.param.u64", None),
        ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", Access("matrix load", 128)),
        ("tcgen05.ld.sync.aligned.32x32b.x32.b32", Access("tensor memory load", 1024)),
        ("tcgen05.ld.sync.aligned.16x256b.x4.b32", Access("tensor memory load", 512)),
        ("fma.rn.f32", None),
    ],
)
def test_the_width_in_ptx_is_that_of_the_type_times_the_vector(
    opcode: str, access: Access | None
) -> None:
    registers = ".reg .b32 %r<2>; .reg .b64 %rd<2>;"
    text = f".visible .entry k() {{ {registers} {opcode} %r1, [%rd1]; ret; }}"
    assert ptx_accesses.count(text, "k") == ({access: 1} if access else {})


def test_text_that_is_no_ptx_has_no_counts() -> None:
    assert ptx_accesses.count(".entry k( {", "k") is None
