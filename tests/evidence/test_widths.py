"""Widths of memory accesses by source line: SASS compared with PTX."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.evidence.emulate import widths
from kernelexp.evidence.emulate.job import LineCost, PtxAccess
from kernelexp.facts import widths as words
from kernelexp.model.arm import AccessWidths, EmulatedEvidence
from warpsim.lineinfo import Source

LOOP, OTHER = Source("variants/k/k.cu", 9), Source("variants/k/k.cu", 12)
WIDTHS = st.sampled_from([8, 16, 32, 64, 128])


def ptx(*bits: int, source: Source = LOOP, what: str = "shared load") -> LineCost:
    accesses = tuple(PtxAccess(what=what, bits=bit, count=1) for bit in bits)
    return LineCost(source=source, warps=1, counters={}, accesses=accesses)


def sass(*texts: str, source: Source = LOOP) -> list[SassInstruction]:
    return [
        SassInstruction(offset=16 * number, text=text, source=source)
        for number, text in enumerate(texts)
    ]


def load(bits: int) -> str:
    modifier = {8: ".U8", 16: ".U16", 32: "", 64: ".64", 128: ".128"}[bits]
    return f"@!P0 LDS{modifier} R4, [R2+UR4]"


def test_merged_loads_are_fewer_by_what_each_moves() -> None:
    (result,) = widths.compare([ptx(*[32] * 16)], sass(*["LDS R1, [R2]"] * 8, *[load(128)] * 2))
    assert (result.line, result.what) == (9, "shared load")
    assert (result.ptx, result.sass) == ({32: 16}, {32: 8, 128: 2})
    assert result.ratio == 10 / 16


@given(st.lists(WIDTHS, min_size=1), st.integers(1, 4))
def test_unrolled_accesses_of_the_same_widths_are_no_difference(bits: list[int], by: int) -> None:
    assert widths.compare([ptx(*bits)], sass(*map(load, bits * by))) == ()


@given(st.integers(1, 8))
def test_unrolling_does_not_change_what_merging_saves(by: int) -> None:
    (result,) = widths.compare([ptx(32, 32, 32, 32)], sass(*[load(128)] * by))
    assert result.ratio == 0.25


def test_an_access_that_only_moved_to_another_line_is_no_difference() -> None:
    elsewhere = sass(load(32), source=OTHER)
    assert widths.compare([ptx(32)], elsewhere) == ()
    (result,) = widths.compare([ptx(64)], elsewhere)
    assert result.sass == {}


def test_bytes_beyond_those_of_the_line_leave_no_ratio() -> None:
    (gap,) = widths.compare([ptx(32, 32, 32)], sass(load(128)))
    assert (gap.sass, gap.ratio) == ({128: 1}, None)


def test_accesses_that_moved_to_another_line_leave_no_ratio() -> None:
    lines = [ptx(32), ptx(32, source=OTHER)]
    merged, gone = widths.compare(lines, sass("LDS.64 R2, [R4]"))
    assert (merged.line, merged.sass, merged.ratio) == (9, {64: 1}, None)
    assert (gone.line, gone.sass, gone.ratio) == (12, {}, None)
    assert words.spell(merged) == "SASS loads 64 bits where PTX loads 2 x 32 (shared)"
    assert words.spell(gone).startswith("SASS has no shared load at this line")


@pytest.mark.parametrize(
    ("what", "instruction"),
    [
        ("shared store", "STS.128 [R2], R4"),
        ("local load", "LDL.128 R4, [R1]"),
        ("global load", "LDG.E.128.CONSTANT R4, desc[UR6][R2.64]"),
        ("global store", "@P1 STG.E.128 desc[UR6][R2.64], R4"),
    ],
)
def test_other_accesses_are_compared_with_their_own_kind(what: str, instruction: str) -> None:
    code = [*sass(instruction), *sass(load(64))]
    assert widths.compare([ptx(128, what=what)], code) == ()
    (result,) = widths.compare([ptx(32, what=what)], code)
    assert (result.what, result.sass) == (what, {128: 1})


@pytest.mark.parametrize(
    "text",
    ["LDSM.16.M88.4 R4, [R2]", "LDGSTS.E.128 [R2], desc[UR4][R6.64]", "LDG.E.LTC128B R1, [R2]"],
)
def test_copies_and_prefetch_sizes_are_no_widths_of_loads(text: str) -> None:
    assert (
        widths.compare(
            [ptx(32), ptx(32, what="global load")], sass(load(32), text, "LDG.E R1, [R2]")
        )
        == ()
    )


def test_lines_of_a_wrapper_are_those_of_the_kernel_that_calls_it() -> None:
    wrapper = Source("variants/include/load.cuh", 3, LOOP)
    (result,) = widths.compare([ptx(32, source=wrapper)], sass(load(128), source=wrapper))
    assert (result.file, result.line) == ("variants/k/k.cu", 9)


def on_line(line: int, what: str, sass: dict[int, int]) -> AccessWidths:
    return AccessWidths(file="variants/k/k.cu", line=line, what=what, ptx={32: 4}, sass=sass)


def test_a_summary_names_each_kind_with_its_lines() -> None:
    every = (
        on_line(1, "shared load", {128: 1}),
        on_line(2, "shared load", {32: 2, 128: 1}),
        on_line(5, "local store", {64: 2}),
    )
    evidence = EmulatedEvidence(size="emulated", widths=every)
    assert words.summarize(evidence).startswith(
        "counted on PTX, and ptxas merges shared loads on 2 lines (k.cu:1, k.cu:2), local stores "
        "on 1 line (k.cu:5): "
    )


def test_what_ptxas_leaves_out_is_not_called_merged() -> None:
    evidence = EmulatedEvidence(size="emulated", widths=(on_line(1, "shared load", {}),))
    assert "ptxas changes the widths of shared loads on 1 line" in words.summarize(evidence)


def test_nothing_is_said_where_the_widths_are_those_of_the_ptx() -> None:
    assert words.summarize(EmulatedEvidence(size="emulated")) == ""
