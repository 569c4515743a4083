"""The PTX dialect of nvcc and of inline asm."""

from __future__ import annotations

import pytest
from harness import ptx

from warpsim import PtxSyntaxError, UnsupportedInstruction, load
from warpsim.front.ptx.parser import parse
from warpsim.front.ptx.syntax import Address, Immediate, Pair, Register, Vector


def body(text: str):
    return parse(ptx(text)).functions["k"]


def test_labels_and_registers_of_a_brace_scope_are_its_own():
    wait = "{ .reg .pred p; AGAIN: setp.eq.u32 p, %t, 0; @p bra AGAIN; }"
    function = body(wait + wait)
    first, second = (i for i in function.instructions if i.opcode == "bra")
    assert first.operands != second.operands
    assert first.guard != second.guard
    assert sorted(function.labels) == ["AGAIN@1", "AGAIN@2"]


def test_an_inner_label_hides_an_outer_one():
    function = body("L: { L: bra L; } bra L;")
    inner, outer = (i.operands[0].name for i in function.instructions if i.opcode == "bra")
    assert (function.labels[inner], function.labels[outer]) == (function.labels["L@1"], 1)


def test_several_instructions_may_share_a_line_without_spaces():
    function = body("add.u32 %r1,%r2,3;tcgen05.ld.sync.aligned.32x32b.x2.b32{%r1,%r2},[%r3+4];")
    add, load_ = function.instructions[-3:-1]
    assert add.operands == (Register("%r1"), Register("%r2"), Immediate(3))
    assert load_.operands == (
        Vector((Register("%r1"), Register("%r2"))),
        Address(Register("%r3"), 4),
    )


def test_a_declaration_may_have_no_space_before_its_type():
    function = body("{.reg.b16 x; mov.b16 x, 1;}")
    assert function.registers["x@1"] == "b16"


def test_pairs_sinks_and_float_literals():
    function = body("shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1; mov.b32 {_, %h1}, %r2;")
    shuffle, move = function.instructions[-3:-1]
    assert shuffle.operands[0] == Pair(Register("%r1"), Register("%p1"))
    assert move.operands[0] == Vector((None, Register("%h1")))
    (multiply,) = (
        i for i in body("mul.f32 %r1, %r2, 0f3F800000;").instructions if i.opcode == "mul.f32"
    )
    assert multiply.operands[2] == Immediate(0x3F80_0000, 32)


def test_lines_come_from_loc_with_the_chain_of_inlining():
    text = """
    .loc 1 20 3
    add.u32 %r1, %r1, 1;
    .loc 2 7 1, function_name $info, inlined_at 1 20 3
    add.u32 %r1, %r1, 2;
    """
    text = ptx(text) + '\n.file 1 "/src/kernel.cu"\n.file 2 "/include/wrapper.cuh"\n'
    one, two = (i.source for i in parse(text).functions["k"].instructions if i.opcode == "add.u32")
    assert (str(one), str(two)) == ("kernel.cu:20", "wrapper.cuh:7")
    assert str(two.own()) == "kernel.cu:20"


def test_tensor_map_parameters_and_directives_are_read():
    text = """
    .version 9.0
    .target sm_100a
    .address_size 64
    .extern .shared .align 1024 .b8 smem[];
    .global .align 4 .u32 kx_threads = 224;
    .global .align 4 .b8 table[8] = {1, 2, 3};
    .visible .entry k(.param .align 128 .b8 k_param_0[128], .param .u64 .ptr .align 1 k_param_1)
    .maxntid 224, 1, 1
    .reqnctapercluster 2, 1, 1
    { .pragma "nounroll"; ret; }
    """
    module = parse(text)
    function = module.functions["k"]
    assert [(p.size, p.align) for p in function.parameters] == [(128, 128), (8, 8)]
    assert function.directives["reqnctapercluster"] == (2, 1, 1)
    assert [v.data for v in module.variables] == [b"", b"\xe0\x00\x00\x00", b"\x01\x02\x03"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("add.u32 %r1, %r2, `;", "PTX line 13: unexpected character '`'."),
        ("add.u32 %nowhere, %r2, 3;", "PTX line 13: register '%nowhere' is not declared."),
        ("add.u32 %r1", "PTX line 14: expected ';', found 'ret'."),
    ],
)
def test_what_is_not_ptx_is_refused_with_its_line(text, sentence):
    with pytest.raises(PtxSyntaxError) as refusal:
        parse(ptx("\n" + text).replace("\n\n", "\n"))
    assert str(refusal.value).split(":")[1] == sentence.split(":")[1]


@pytest.mark.parametrize("kind", [".texref", ".samplerref", ".surfref"])
def test_a_texture_is_refused_by_name(kind):
    header, _, rest = ptx("").partition(".visible")
    with pytest.raises(UnsupportedInstruction, match=rf"\{kind}: textures and surfaces are not"):
        load(f"{header}.global {kind} image;\n.visible{rest}")


def test_an_unknown_instruction_is_refused_at_load_with_its_lines():
    text = ptx(".loc 1 42 3\nfrobnicate.b32 %r1, %r2;") + '\n.file 1 "kernel.cu"\n'
    with pytest.raises(UnsupportedInstruction) as refusal:
        load(text)
    assert str(refusal.value).startswith("kernel.cu:42, PTX line 14: `frobnicate.b32 %r1, %r2;`")
    assert str(refusal.value).endswith("is not covered by the emulator.")


@pytest.mark.parametrize(
    "operation",
    ["ld_reduce.relaxed.gpu.global.add.f32 %r1, [%d1]", "st.relaxed.gpu.global.f32 [%d1], %r1"],
)
def test_memory_of_several_gpus_is_refused_as_such(operation):
    with pytest.raises(UnsupportedInstruction, match="memory that several GPUs have in common"):
        load(ptx(f"multimem.{operation};"))


def test_an_unknown_modifier_is_refused_too():
    with pytest.raises(UnsupportedInstruction, match=r"ld\.global\.sideways"):
        load(ptx("ld.global.sideways.b32 %r1, [%d1];"))


@pytest.mark.parametrize(
    "text",
    [
        *[
            "bra 1, 2;",
            "bra;",
            "add.u32 %r1;",
            "add.u32 %r1, %none, 3;",
            "ld.global.u32 %r1, 5, 6;",
        ],
        *["mov.u32 {%r1, %r2}, {%r3};", ".shared .align 4 x[4];", "brx.idx %r1;"],
    ],
)
def test_an_instruction_with_other_operands_is_a_sentence(text: str) -> None:
    with pytest.raises((PtxSyntaxError, UnsupportedInstruction), match=r"^(PTX line|entry k|k\b)"):
        load(ptx(text))


@pytest.mark.parametrize("text", [".file x y", ".file", ".visible .entry k(.param x)"])
def test_a_module_that_is_none_is_a_sentence(text: str) -> None:
    with pytest.raises(PtxSyntaxError, match=r"^PTX line 1: "):
        load(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("010", 8),
        ("0b101", 5),
        ("(1 << 4) + 3 * 2 - !0", 21),
        ("7 > 3 ? 5 : 6", 5),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("~0 & 0x0F ^ 1", 14),
        ("1 + 2 == 3 && 4 != 4 || 2 <= 1", 0),
    ],
)
def test_an_integer_may_be_a_constant_expression(text: str, value: int) -> None:
    assert body(f"mov.u32 %r1, {text};").instructions[-2].operands[1] == Immediate(value)
    (load_,) = (
        i for i in body(f"ld.b32 %r1, [%d1+({text})];").instructions if i.opcode == "ld.b32"
    )
    assert load_.operands[1] == Address(Register("%d1"), value)


def test_a_constant_expression_without_a_value_is_refused() -> None:
    with pytest.raises(PtxSyntaxError, match="has no value"):
        body("mov.u32 %r1, 1 / 0;")


@pytest.mark.parametrize(
    ("text", "bits"), [("-2.0", 0xC0 << 56), ("2.5e1", 0x4039 << 48), ("0F3F800000", 0x3F800000)]
)
def test_decimal_literals_have_signs_and_exponents(text: str, bits: int) -> None:
    operand = body(f"mov.f32 %r1, {text};").instructions[-2].operands[1]
    assert isinstance(operand, Immediate)
    assert operand.value == bits


def test_an_entry_may_be_empty() -> None:
    load(".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {}")
