"""Sparse products in a kernel: what counts as metadata, what is refused, what ptxas makes of them.

That they compute what an H200 computes is the subject of conformance/sparse.py.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import EARLY, LATE, assemble, found, ptx, run, run_sass

import warpsim as emulator
from warpsim.arithmetic.matrices.fragments import WIDTH
from warpsim.front.ptx import isa as isa
from warpsim.front.ptx.registry import TABLE

LOADS = "mul.wide.u32 %d0, %t, 4; add.u64 %d1, %in, %d0; add.u64 %d2, %out, %d0;\n" + "\n".join(
    f"ld.global.b32 %r{index}, [%d1+{128 * index}];" for index in range(13)
)
STORES = "\n".join(f"st.global.b32 [%d2+{128 * i}], %r{8 + i};" for i in range(4))
LONG = "{%r8, %r9, %r10, %r11}, {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9, %r10, %r11}"
F16 = "m16n8k32.row.col.f32.f16.f16.f32"
ORDERED = "sp::ordered_metadata"


def program(
    opcode: str = F16, variant: str = ORDERED, selector: int = 0, before: str = "", shared: str = ""
) -> str:
    product = f"mma.{variant}.sync.aligned.{opcode} {LONG}, %r12, {selector};"
    return ptx(f"{LOADS}\n{before}\n{product}\n{STORES}", ["in", "out"], shared=shared)


def findings(text: str, metadata: np.ndarray | int) -> set[str]:
    words = np.zeros((13, 32), np.uint32)
    words[12] = metadata
    return found(run(text, {"in": words, "out": np.zeros((4, 32), np.uint32)}))


def test_metadata_that_means_nothing_is_a_finding():
    assert findings(program(), 0x44444444) == set()
    assert findings(program(), 0x44440444) == {"sparsity-metadata"}
    assert findings(program("m16n8k16.row.col.f32.tf32.tf32.f32"), 0xEEEE4444) == set()
    assert findings(program("m16n8k16.row.col.f32.tf32.tf32.f32"), 0x8EEE4444) == {
        "sparsity-metadata"
    }


def test_indices_have_to_ascend_only_where_the_instruction_says_so():
    assert findings(program(), 0x44444441) == {"sparsity-metadata"}
    assert findings(program(variant="sp"), 0x44444441) == set()


def test_metadata_of_lanes_that_are_not_selected_does_not_count():
    words = np.full(32, 0x44444444, np.uint32)
    words[np.arange(32) % 4 < 2] = 0xFFFFFFFF
    assert findings(program(selector=1), words) == set()
    assert findings(program(selector=0), words) == {"sparsity-metadata"}


def test_metadata_that_was_never_written_is_a_finding():
    before = "mov.u32 %r13, tile; ld.shared.b32 %r12, [%r13];"
    text = program(before=before, shared=".shared .align 4 .b8 tile[4];")
    assert "sparsity-metadata" in findings(text, 0)


@pytest.mark.parametrize(
    ("opcode", "selector"), [(F16, 2), ("m16n8k64.row.col.s32.s8.s8.s32", 1), (F16, -1)]
)
def test_a_selector_beyond_the_lanes_is_refused(opcode: str, selector: int) -> None:
    with pytest.raises(emulator.UnsupportedInstruction, match="as its sparsity selector"):
        findings(program(opcode, selector=selector), 0x44444444)


def test_sparse_block_scaled_products_are_refused_by_name():
    opcode = "m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    text = program(opcode).replace(", 0;", ", 0, %r0, {0, 0}, %r1, {0, 0};")
    with pytest.raises(emulator.UnsupportedInstruction, match="block_scale"):
        findings(text, 0x44444444)


GROUP = """
mul.wide.u32 %d0, %t, 4; add.u64 %d1, %in, %d0; ld.global.b32 %r0, [%d1];
mov.u32 %r1, tile; shl.b32 %r2, %t, 4; add.u32 %r2, %r2, %r1; mov.b32 %r3, 0x3C003C00;
st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3};
fence.proxy.async.shared::cta; bar.sync 0;
shr.u32 %r4, %r1, 4; cvt.u64.u32 %d2, %r4; mov.b64 %d3, 0x0000001000080000; or.b64 %d4, %d2, %d3;
mov.b32 %r8, 0; mov.b32 %r9, 0; mov.b32 %r10, 0; mov.b32 %r11, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16
    {%r8, %r9, %r10, %r11}, {%r3, %r3, %r3, %r3}, %d4, %r0, 0, 1, 1, 1, 0;
CHANGE
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r8;
"""


@pytest.mark.parametrize("schedule", [LATE, EARLY])
def test_a_warpgroup_takes_metadata_from_every_warp_when_it_comes(schedule) -> None:  # type: ignore[no-untyped-def]
    text = ptx(
        GROUP.replace("CHANGE", "mov.b32 %r0, 0;"),
        ["in", "out"],
        shared=".shared .align 128 .b8 tile[2048];",
        target="sm_90a",
    )
    for word, names in ((0x44444444, set()), (0x4444444A, {"sparsity-metadata"})):
        out = np.zeros(128, np.float32)
        arrays = {"in": np.full(128, word, np.uint32), "out": out}
        assert found(run(text, arrays, threads=128, schedule=schedule)) == names
        assert (out == 16).all()  # of K = 32 half the elements, all of them 1


INTEGERS = [
    ("m16n8k64.row.col.s32.s4.u4.s32", ""),
    ("m16n8k64.row.col.satfinite.s32.u4.u4.s32", ""),
    ("m16n8k128.row.col.s32.s4.s4.s32", ORDERED),
    ("m16n8k64.row.col.s32.u8.s8.s32", ORDERED),
]


@pytest.mark.slow
@pytest.mark.parametrize(("opcode", "variant"), INTEGERS)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_what_ptxas_makes_of_integers_has_the_same_bits(
    opcode: str, variant: str, target: str
) -> None:
    text = program(opcode, variant).replace("sm_100a", target)
    if not variant:
        text = text.replace("mma..sync", "mma.sync").replace(", %r12, 0;", ";")
        text = text.replace("{%r4, %r5, %r6, %r7}", "{%r4, %r5}")
    words = np.random.default_rng(3).integers(0, 1 << 32, (13, 32), dtype=np.uint32)
    words[12] = 0x4C8E9D44
    outs = np.zeros((2, 4, 32), np.uint32)
    assert not run(text, {"in": words, "out": outs[0]}).findings
    assert not run_sass(text, target, {"in": words, "out": outs[1]}).findings
    assert np.array_equal(*outs)


def test_integers_of_four_bits_are_multiplied_as_bytes_would_be():
    rng = np.random.default_rng(4)
    words = rng.integers(0, 1 << 32, (13, 32), dtype=np.uint32)
    text = program("m16n8k64.row.col.s32.s4.u4.s32", "x").replace("mma.x.sync", "mma.sync")
    text = text.replace(", %r12, 0;", ";").replace("{%r4, %r5, %r6, %r7}", "{%r4, %r5}")
    out = np.zeros((4, 32), np.uint32)
    run(text, {"in": words, "out": out})
    # Row 0 of A: lanes 0 to 3 hold eight codes each of registers 0 and 2; column 0 of B alike.
    a, b = (
        np.concatenate([words[i, :4, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15 for i in x])
        for x in ((0, 2), (4, 5))
    )
    a = a.astype(np.int64)
    total = int(((a ^ 8) - 8).ravel() @ b.astype(np.int64).ravel()) + int(words[8, 0])
    assert int(out[0, 0]) == total & 0xFFFFFFFF


# What ptxas rejects.


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%r0, %r1, %r2, %r3}, "
            "{%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r0, %r1};",
            "accumulator of f16 and a result of f32",
        ),
        ("ld.u64 %d0, [k_in];", "names the parameter k_in"),
        ("cvta.global.u64 %d0, k_in;", "names the parameter k_in"),
        ("prefetch.tensormap [k_in];", "names the parameter k_in"),
        (
            "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 "
            "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14, "
            "%r15, %r16, %r17, %r18, %r19}, %d0, %d1, 1;",
            "is not covered",
        ),
    ],
)
def test_what_ptxas_rejects_is_refused(body: str, said: str) -> None:
    text = ptx(body, ["in"], target="sm_90a")
    with pytest.raises(AssertionError):
        assemble(text, "sm_90a")
    with pytest.raises(emulator.UnsupportedInstruction, match=said):
        run(text, {"in": np.zeros(4, np.uint32)})


def alike(opcode: str) -> bool:
    """Whether another opcode has another N only, of wgmma, and the same types."""
    every_n = ("m64n16k", ".f32.bf16", ".f32.tf32", ".s32.s8.s8")
    return opcode.startswith("wgmma") and not any(name in opcode for name in every_n)


def spelled(opcode: str) -> str | None:
    """An instruction of mma.sync or wgmma with operands; None for one that is not for ptxas."""
    if ".scale_vec::4X" in opcode and opcode.endswith("ue8m0"):
        return None  # of PTX ISA 9.1; ptxas 13.0 knows 9.0
    parts = [p for p in opcode.split(".") if p != "sp" and not p.startswith(("ue", "satfinite"))]
    sparse, group = ".sp" in opcode, opcode.startswith("wgmma")
    shape = re.search(r"m(?:16|64)n(\d+)k(\d+)", opcode)
    assert shape is not None
    n, k = int(shape[1]), int(shape[2])
    if group:
        d_type, a_type = parts[5:7]
        rest = ", %r200, 0, 1" if sparse else ", 1"
        rest += "" if d_type == "s32" else ", 1, 1" + ", 0, 0" * (WIDTH[a_type] == 16)
        return f"{opcode} {registers(n // (4 if d_type == 'f16' else 2))}, %d0, %d1{rest};"
    d_type, a_type, _, c_type = parts[-4:]
    if d_type != c_type:
        return None
    width = 4 if "block_scale" in opcode and k == 64 else WIDTH[a_type]
    stored = k // 2 if sparse else k
    counts = 4 - 2 * (d_type == "f16"), stored * width // 64, k * width // 128
    operands = ", ".join(registers(count) for count in (*counts, counts[0]))
    rest = ", %r9, 0" if sparse else ", %r8, {0, 0}, %r9, {0, 0}" if "block_scale" in opcode else ""
    return f"{opcode} {operands}{rest};"


def registers(count: int) -> str:
    return "{" + ", ".join(f"%r{index}" for index in range(count)) + "}"


def expand(pattern: str) -> Iterator[str]:
    """Every opcode of a registry's pattern."""
    group = re.compile(r"\{\w+:([^}]*)\}")
    template = group.sub("{}", pattern)
    for chosen in itertools.product(*(item.split("|") for item in group.findall(pattern))):
        yield template.format(*chosen)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm_90a", "sm_120a"])
def test_ptxas_takes_what_the_emulator_takes(target: str, tmp_path: Path) -> None:
    opcodes = [
        opcode
        for pattern in TABLE.rows
        if pattern.area == "mma" or (pattern.area == "wgmma" and "mma_async" in pattern.text)
        for opcode in expand(pattern.text)
        if ("kind::" in opcode) == (target == "sm_120a") and not alike(opcode)
    ]
    lines = [line for line in map(spelled, opcodes) if line is not None]
    body = "\n".join([".reg .b32 %r<256>; .reg .b64 %d<2>;", *lines])
    head = f".version 9.0\n.target {target}\n.address_size 64\n"
    text = f"{head}.visible .entry k()\n{{\n{body}\nret;\n}}"
    assemble(text, target)
    assert len(lines) > 150
