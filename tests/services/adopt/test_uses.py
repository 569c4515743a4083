"""What PTX does with an entry's parameters."""

from __future__ import annotations

import pytest

from kernelexp.services.adopt import uses
from kernelexp.services.adopt.uses import F16_SUMS, TF32, ParameterUses
from warpsim.front.ptx.parser import parse

ENTRY = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .align 8 .b8 k_param_1[40], .param .u32 k_param_2)
{{
	.reg .b64 %rd<20>;
	.reg .b32 %r<20>;
	.reg .f32 %f<9>;
	.reg .b16 %rs<9>;
	.reg .pred %p<9>;
{}
	ret;
}}
"""


def used(*lines: str) -> ParameterUses:
    module = parse(ENTRY.format("\n".join(f"\t{line};" for line in lines)))
    return uses.find(module.functions["k"])


def test_memory_is_read_and_written_through_what_is_computed_from_a_parameter() -> None:
    result = used(
        "ld.param.u64 %rd1, [k_param_0]",
        "ld.param.u32 %r1, [k_param_2]",
        "mul.wide.u32 %rd2, %r1, 4",
        "add.s64 %rd3, %rd1, %rd2",
        "ld.global.f32 %f1, [%rd3]",
        "st.global.f32 [%rd1+4], %f1",
    )
    assert result.at(0, 0).read
    assert result.at(0, 0).written
    assert result.loaded_at(2, 0, 4)
    assert not result.addressed


def test_what_is_copied_to_shared_memory_is_read() -> None:
    result = used(
        "ld.param.u64 %rd1, [k_param_0]",
        "ld.param.u32 %r1, [k_param_2]",
        "cp.async.ca.shared.global [%r1], [%rd1], 4",
    )
    assert result.at(0, 0).read
    assert not result.at(0, 0).written
    assert result.at(0, 0).packed


def test_members_of_a_structure_are_told_apart() -> None:
    result = used(
        "ld.param.v2.u64 {%rd1, %rd2}, [k_param_1+8]",
        "ld.global.f32 %f1, [%rd1]",
        "st.global.f32 [%rd2], %f1",
    )
    assert result.at(1, 8).read
    assert not result.at(1, 8).written
    assert result.at(1, 16).written
    assert [result.loaded_at(1, at, 8) for at in (0, 8, 16, 24)] == [False, True, True, False]


def test_the_address_of_a_structure_is_followed_through_constants() -> None:
    result = used(
        "mov.b64 %rd1, k_param_1",
        "add.s64 %rd2, %rd1, 20",
        "ld.param.u64 %rd3, [%rd2+-4]",
        "st.global.u32 [%rd3], 1",
    )
    assert result.at(1, 16).written
    assert not result.loaded_at(1, 0, 8)


def test_an_address_that_is_computed_with_may_be_of_any_member() -> None:
    result = used(
        "ld.param.u32 %r1, [k_param_2]",
        "mov.b64 %rd1, k_param_1",
        "mul.wide.u32 %rd2, %r1, 8",
        "add.s64 %rd3, %rd1, %rd2",
        "ld.param.u64 %rd4, [%rd3]",
    )
    assert all(result.loaded_at(1, at, 8) for at in (0, 8, 32))
    assert not result.loaded_at(0, 0, 8)


def test_fragments_of_wmma_are_loaded_from_memory_and_stored_to_it() -> None:
    fragment = "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}"
    sums = "{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}"
    result = used(
        "ld.param.u64 %rd1, [k_param_0]",
        "ld.param.u64 %rd2, [k_param_1+16]",
        f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {fragment}, [%rd1], %r9",
        f"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd2], {sums}, %r9",
    )
    assert (result.at(0, 0).read, result.at(0, 0).written) == (True, False)
    assert (result.at(1, 16).read, result.at(1, 16).written) == (False, True)


def test_integers_that_are_shifted_are_packed_and_those_that_index_are_not() -> None:
    result = used(
        "ld.param.u64 %rd1, [k_param_0]",
        "ld.param.u64 %rd2, [k_param_1+8]",
        "ld.global.u32 %r1, [%rd1]",
        "shr.u32 %r2, %r1, 4",
        "ld.global.u32 %r3, [%rd2]",
        "shr.u32 %r4, %r3, 4",
        "mul.wide.u32 %rd3, %r4, 4",
        "add.s64 %rd4, %rd1, %rd3",
        "st.global.u32 [%rd4], %r2",
    )
    assert result.at(0, 0).packed
    assert not result.at(1, 8).packed


def test_halves_that_are_loaded_as_wider_words_are_told_by_what_computes_with_them() -> None:
    result = used(
        "ld.param.u64 %rd1, [k_param_0]",
        "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1]",
        "mul.rn.f16x2 %r5, %r1, %r2",
    )
    assert result.at(0, 0, "float4").halves == "f16"
    assert result.at(0, 0, "float").halves is None


def test_halves_that_are_stored_as_wider_words_are_told_by_what_rounds_to_them() -> None:
    stored = ("mov.b32 %f1, %r1", "st.global.f32 [%rd1], %f1")
    load = ("ld.param.u64 %rd1, [k_param_0]", "ld.param.u32 %r2, [k_param_2]")
    for made, dtype in (("cvt.rn.f16x2.f32 %r1, %f2, %f3", "f16"), ("add.u32 %r1, %r2, 1", None)):
        assert used(*load, made, *stored).at(0, 0, "float4").halves == dtype


def test_a_sum_in_float_that_is_rounded_to_half_does_not_make_its_terms_halves() -> None:
    result = used(
        "ld.param.u64 %rd1, [k_param_0]",
        "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]",
        "add.f32 %f5, %f1, %f2",
        "cvt.rn.f16.f32 %r1, %f5",
        "add.f16 %r2, %r1, %r1",
    )
    assert result.at(0, 0, "float4").halves is None


BLOCK = (
    "ld.param.u64 %rd1, [k_param_0]",
    "ld.global.u16 %rs1, [%rd1]",
    "cvt.f32.f16 %f1, %rs1",
    "ld.global.u8 %rs2, [%rd1+2]",
    "cvt.u32.u16 %r1, %rs2",
    "shr.u32 %r2, %r1, 4",
)


def test_bytes_of_a_block_that_begins_with_a_half_are_mixed_and_packed() -> None:
    result = used(*BLOCK)
    assert result.at(0, 0).packed
    assert result.at(0, 0).mixed
    assert not used(*BLOCK[:3]).at(0, 0).mixed
    assert not used(BLOCK[0], *BLOCK[3:]).at(0, 0).mixed


def test_nibbles_that_index_a_table_are_packed_and_whole_values_that_do_are_not() -> None:
    table = ("ld.param.u64 %rd9, [k_param_1]", "mul.wide.u32 %rd3, %r2, 4")
    looked_up = ("add.s64 %rd4, %rd9, %rd3", "ld.global.f32 %f1, [%rd4]")
    start = ("ld.param.u64 %rd1, [k_param_0]", "ld.global.u32 %r1, [%rd1]")
    assert used(*start, "and.b32 %r2, %r1, 15", *table, *looked_up).at(0, 0).packed
    both = ("and.b32 %r5, %r1, 15", "mov.u32 %r2, %r1")
    assert not used(*start, *both, *table, *looked_up).at(0, 0).packed


def test_keys_whose_bits_choose_a_place_are_packed() -> None:
    start = ("ld.param.u64 %rd1, [k_param_0]", "ld.global.u32 %r1, [%rd1]")
    bit = ("and.b32 %r5, %r1, %r6", "setp.eq.s32 %p1, %r5, 0", "selp.b32 %r2, 1, 0, %p1")
    place = ("ld.param.u64 %rd9, [k_param_1]", "mul.wide.u32 %rd3, %r2, 4")
    moved = ("add.s64 %rd4, %rd9, %rd3", "st.global.u32 [%rd4], %r1")
    assert used(*start, *bit, *place, *moved).at(0, 0).packed


DIGITS = (
    "bfe.u32 %r2, %r1, 8, 8",
    "shr.u32 %r2, %r1, 24",
    "and.b32 %r2, %r1, 1020",  # a byte times the bytes of an element
    "rem.u32 %r2, %r1, %r6",
)


@pytest.mark.parametrize("byte", DIGITS)
def test_keys_a_byte_of_which_counts_in_a_histogram_are_packed(byte: str) -> None:
    start = ("ld.param.u64 %rd1, [k_param_0]", "ld.global.u32 %r1, [%rd1]")
    place = ("ld.param.u64 %rd9, [k_param_1]", "mul.wide.u32 %rd3, %r2, 4")
    counted = ("add.s64 %rd4, %rd9, %rd3", "red.global.add.u32 [%rd4], 1")
    result = used(*start, byte, *place, *counted)
    assert result.at(0, 0).packed
    assert not result.at(0, 0).may_index


def test_keys_whose_hash_chooses_a_place_are_packed() -> None:
    start = ("ld.param.u64 %rd1, [k_param_0]", "ld.global.u32 %r1, [%rd1]")
    hashed = ("mul.lo.s32 %r3, %r1, -1640531535", "and.b32 %r2, %r3, 1023")
    place = ("ld.param.u64 %rd9, [k_param_1]", "mul.wide.u32 %rd3, %r2, 4")
    moved = ("add.s64 %rd4, %rd9, %rd3", "st.global.u32 [%rd4], %r1")
    assert used(*start, *hashed, *place, *moved).at(0, 0).packed


@pytest.mark.parametrize("bound", ["setp.lt.s32 %p1, %r5, %r2", "setp.gt.s32 %p1, %r2, 0"])
def test_lengths_whose_loop_is_unrolled_are_small(bound: str) -> None:
    start = ("ld.param.u64 %rd1, [k_param_0]", "ld.global.v2.u32 {%r1, %r3}, [%rd1]")
    rest = ("sub.s32 %r2, %r3, %r1", "and.b32 %r4, %r2, 3", "mov.u32 %r5, 0")
    assert not used(*start, *rest, bound).at(0, 0).packed
    assert used(*start, *rest, "setp.lt.u32 %p1, %r1, %r3").at(0, 0).packed
    assert used(*start, *rest, "setp.lt.s32 %p1, %r1, 0").at(0, 0).packed


def test_values_that_are_shifted_and_index_may_be_either() -> None:
    start = ("ld.param.u64 %rd1, [k_param_0]", "ld.global.u32 %r1, [%rd1]")
    place = ("shr.u32 %r2, %r1, %r6", "ld.param.u64 %rd9, [k_param_1]", "mul.wide.u32 %rd3, %r2, 4")
    counted = ("add.s64 %rd4, %rd9, %rd3", "red.global.add.u32 [%rd4], 1")
    assert used(*start, *place, *counted).at(0, 0).may_index


@pytest.mark.parametrize(
    ("instruction", "found"),
    [
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, "
         "{%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3}", {TF32}),
        ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r2, %r3, %r4, %r5}, "
         "{%r6, %r7}, {%r0, %r1}", {F16_SUMS}),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, "
         "{%r2, %r3, %r4, %r5}, {%r6, %r7}, {%f0, %f1, %f2, %f3}", set()),
    ],
)  # fmt: skip
def test_what_matrix_instructions_round_to_is_known(instruction: str, found: set[str]) -> None:
    module = parse(ENTRY.format(f"\t{instruction};"))
    assert uses.arithmetic(module.functions["k"]) == found
