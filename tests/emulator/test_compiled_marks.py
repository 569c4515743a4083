"""Values that nobody wrote are followed by compiled code just as by Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from harness import marks_at_the_end, ptx, run
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import warpsim as emulator
from warpsim import compiled

# Registers are named by a letter, capital where they are written: r0 to r3, ...
INSTRUCTIONS = (
    *("mov.b32 R, r;", "mov.b64 D, d;", "mov.b32 R, {h, h};", "mov.b32 {%h11, %h12}, r;"),
    *("mov.b64 D, {r, r};", "mov.b64 {%r11, %r12}, d;", "mov.b16 H, h;", "mov.b32 R, 7;"),
    *("and.b32 R, r, r;", "and.b32 R, r, 0xFF;", "or.b32 R, r, 0xFFFF00;", "xor.b32 R, r, r;"),
    *("not.b32 R, r;", "shl.b32 R, r, 8;", "shl.b32 R, r, r;", "shr.u32 R, r, 16;"),
    *("shr.u64 D, d, r;", "shr.s32 R, r, 4;", "shl.b16 H, h, 8;", "bfe.u32 R, r, 8, r;"),
    *("bfe.u64 D, d, 8, 24;", "prmt.b32 R, r, r, 0x5410;", "prmt.b32 R, r, r, r;"),
    *("selp.b32 R, r, r, p;", "and.pred P, p, p;", "or.pred P, p, p;", "setp.lt.u32 P, r, r;"),
    *("add.u32 R, r, r;", "add.s16 H, h, h;", "fma.rn.f32 R, r, r, r;", "add.u64 D, d, d;"),
    *("cvt.u32.u16 R, h;", "cvt.u16.u32 H, r;", "cvt.u32.u8 R, r;", "cvt.u64.u32 D, r;"),
    *("cvt.u32.u64 R, d;", "ex2.approx.f32 R, r;", "st.global.u32 [%own], r;"),
)
SHUFFLE = "shfl.sync.bfly.b32 R, r, 1, 31, -1;"
ACCESSES = (
    *("ld.shared.u32 R, [AT];", "ld.shared.u8 H, [AT];", "ld.shared.s8 R, [AT];"),
    *("ld.shared.u64 D, [AT];", "ld.shared.v2.u16 {%h11, %h12}, [AT];"),
    *("ld.shared.v4.u32 {%r10, %r11, %r12, _}, [AT];", "ld.shared.v2.u64 {%d11, %d12}, [AT];"),
    '.pragma "used_bytes_mask 0x3"; ld.shared.u32 R, [AT];',
    *("st.shared.u32 [AT], r;", "st.shared.u8 [AT], h;", "st.shared.u16 [AT], h;"),
    *("st.shared.u64 [AT], d;", "st.shared.v2.u64 [AT], {d, d};", "st.shared.v2.u16 [AT], {h, h};"),
)
# Each thread has 32 bytes, of which it writes some; %next are those of another one.
HEAD = """
.reg .b32 %at, %next; .reg .b64 %own;
mul.lo.u32 %at, %t, 32; xor.b32 %next, %at, 32;
mov.u32 %r1, buffer; add.u32 %at, %at, %r1; add.u32 %next, %next, %r1;
mul.wide.u32 %own, %t, 4; add.u64 %own, %own, %out;
and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %t, 41; setp.ne.u32 %p3, %t, 9;
st.shared.u32 [%at], %t; st.shared.u16 [%at+10], 0x7F01;
@%p1 st.shared.u64 [%at+16], %own; @!%p3 st.shared.u8 [%at+4], 1;
ld.shared.u32 %r10, [%at]; ld.shared.u32 %r11, [%at+4]; ld.shared.u32 %r12, [%at+8];
ld.shared.u16 %h10, [%at+10]; ld.shared.u16 %h11, [%at+12]; ld.shared.u16 %h12, [%at+2];
ld.shared.u64 %d10, [%at+16]; ld.shared.u64 %d11, [%at+24]; mov.b64 %d12, %own;
mov.pred %p10, %p1; setp.eq.u32 %p11, %r11, 0; mov.pred %p12, %p3;
"""
BUFFER = ".shared .align 32 .b8 buffer[2048];"


@st.composite
def instruction(draw: st.DrawFn) -> str:
    access = draw(st.booleans())
    text = draw(st.sampled_from(ACCESSES if access else INSTRUCTIONS))
    base = draw(st.sampled_from(["%at", "%at", "%at", "%next"]))
    size = 16 if re.search(r"v4.u32|v2.u64", text) else 8 if "u64" in text else 4
    offset = draw(st.integers(0, 31 // size)) * size
    text = text.replace("AT", f"{base}+{offset}")

    def register(match: re.Match[str]) -> str:
        return f"%{match[0].lower()}{draw(st.integers(10, 12))}"

    guard = draw(st.sampled_from(["", "", "", "@%p1 ", "@!%p3 ", "@%p10 ", "@%p11 "]))
    pragma, _, plain = text.rpartition("; ") if "pragma" in text else ("", "", text)
    opcode, _, operands = plain.partition(" ")
    operands = re.sub(r"(?<![%\w])[RHDPrhdp]\b", register, operands)
    return f"{pragma};\n" * bool(pragma) + f"{guard}{opcode} {operands}\n"


@st.composite
def program(draw: st.DrawFn) -> str:
    """Some steps, of which lanes skip some, and shuffles where they do not."""
    before, within, after = (draw(st.lists(instruction(), max_size=9)) for _ in range(3))
    shuffle = SHUFFLE.replace("R", "%r10").replace(" r,", " %r11,") if draw(st.booleans()) else ""
    branch = draw(st.sampled_from(["@%p2 bra SKIP;", "@!%p3 bra SKIP;", "@%p11 bra SKIP;"]))
    return HEAD + "".join([*before, branch, "\n", *within, "SKIP:\n", shuffle, "\n", *after])


def shown(body: str, seed: int) -> tuple[Any, ...]:
    out, schedule = np.zeros(64, np.uint32), emulator.Schedule(seed=seed, asynchrony="late")
    with marks_at_the_end() as marks:
        text = ptx(body, ["out"], shared=BUFFER)
        result = run(text, {"out": out}, threads=64, grid=2, schedule=schedule, unwritten=["out"])
    counted = [(c.executed, c.lanes, c.tally) for c in result.counters.instructions]
    return result.findings, result.warnings, out.tobytes(), counted, marks


# Of the lanes that shift, none is in doubt about how far; but one that skips the shift is.
SKIPPED = """
selp.b32 %r12, 3, %r11, %p3;
@!%p3 bra SKIP;
shl.b32 %r10, %r11, %r12;
SKIP:
"""
STALE = "st.global.u32 [%own], %t; bar.sync 0; ld.global.nc.u32 %r12, [%own];"

# Warp 1 reads what it has stored itself, which was there already.
REPEATED = """
and.b32 %r1, %t, 31; shl.b32 %r1, %r1, 2; mov.u32 %r2, buffer; add.u32 %r1, %r1, %r2;
setp.lt.u32 %p1, %t, 32;
@%p1 st.shared.u32 [%r1], 7; @!%p1 st.shared.u32 [%r1], 7; @!%p1 ld.shared.u32 %r3, [%r1];
"""


@settings(max_examples=25, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@example(body=HEAD + SKIPPED, seed=0)
@example(body=HEAD + STALE, seed=0)
@example(body=REPEATED, seed=0)
@given(body=program(), seed=st.sampled_from([0, 3]))
def test_any_program_on_memory_that_is_written_in_part(library: Path, body: str, seed: int) -> None:
    compiled.unload()
    python = shown(body, seed)
    compiled.load(library)
    assert shown(body, seed) == python
