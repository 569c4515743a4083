"""mma.sync of FP8 and narrower numbers for sm_120a, with and without scale factors.

No GPU of this kind was at hand: layouts are those of the PTX ISA's text, written out here once
more, and results those of double precision, with operands of which no sum loses a bit.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from harness import found, ptx, run, run_sass

import warpsim as emulator
from warpsim.arithmetic.operands import code_table

LOADS = "mul.wide.u32 %d0, %t, 4; add.u64 %d1, %in, %d0; add.u64 %d2, %out, %d0;\n" + "\n".join(
    f"ld.global.b32 %r{index}, [%d1+{128 * index}];" for index in range(12)
)
STORES = "\n".join(f"st.global.b32 [%d2+{128 * i}], %r{20 + i};" for i in range(4))
OPERANDS = "{%r20, %r21, %r22, %r23}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r6, %r7, %r8, %r9}"
NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
SCALED = {
    "mxf8": "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.{a}.{b}.f32.ue8m0",
    "mxf8 by default": "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.{a}.{b}.f32.ue8m0",
    "mxf4": "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
    "mxf4 2X": "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
    "nvf4 2X": "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
    "nvf4 4X": "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
}


def program(opcode: str, rest: str = "", before: str = "") -> str:
    body = f"{LOADS}\n{before}\nmma.sync.aligned.{opcode} {OPERANDS}{rest};\n{STORES}"
    return ptx(body, ["in", "out"], target="sm_120a")


def random_codes(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    """Codes whose products differ by less than a sum keeps."""
    if kind == "e2m1":
        return rng.integers(0, 16, shape)
    if kind in ("e3m2", "e2m3"):
        return rng.integers(0, 64, shape)
    low, high = (0x30, 0x47) if kind == "e4m3" else (0x38, 0x44)
    return rng.integers(low, high, shape) | rng.integers(0, 2, shape) << 7


def fragment(codes: np.ndarray, bits: int) -> list[np.ndarray]:
    """Registers [32] of A, 16 rows, or of B, 8 columns: codes as they lie in `bits` each."""
    per, blocks = 32 // bits, len(codes) // 8
    registers = []
    for index in range(codes.shape[1] * len(codes) * bits // 1024):
        words = np.zeros(32, np.uint32)
        for lane, place in itertools.product(range(32), range(per)):
            row = lane // 4 + 8 * (index % blocks)
            column = lane % 4 * per + place + 4 * per * (index // blocks)
            words[lane] |= np.uint32(int(codes[row, column]) << bits * place)
        registers.append(words)
    return registers


def in_register(codes: np.ndarray, kind: str, bits: int) -> np.ndarray:
    return codes << 2 if kind == "e2m1" and bits == 8 else codes


def inputs(a: np.ndarray, b: np.ndarray, c: np.ndarray, types: tuple[str, str], bits: int) -> list:
    """The registers of A, B and C: those of C are four of floats."""
    lane = np.arange(32)
    addends = [
        c[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2].view(np.uint32) for i in range(4)
    ]
    first, second = (in_register(x, kind, bits) for x, kind in zip((a, b), types, strict=True))
    return [*fragment(first, bits), *fragment(second, bits), *addends]


def result(out: np.ndarray) -> np.ndarray:
    """D [16, 8] from its registers [4, 32]."""
    matrix, lane = np.zeros((16, 8), np.float32), np.arange(32)
    for i in range(4):
        matrix[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2] = out[i].view(np.float32)
    return matrix


def factors(rng: np.random.Generator, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """A word for each lane, and what its bytes are worth [32, 4]."""
    if kind == "ue8m0":
        codes = rng.integers(124, 131, (32, 4))
        values = 2.0 ** (codes - 127)
    else:
        codes = rng.integers(0x28, 0x48, (32, 4))
        values = code_table("e4m3").values[codes]
    return codes.astype(np.uint8).view(np.uint32).ravel(), values


SELECTORS = {
    1: [(0, 0, 0, 0), (3, 1, 2, 3), (1, 0, 3, 1), (2, 1, 0, 2)],
    2: [(0, 0, 0, 0), (2, 1, 2, 3), (0, 1, 2, 2)],
    4: [(0, 0, 0, 0), (0, 1, 0, 3), (0, 1, 0, 1)],
}


def scaled_case(name: str, types: tuple[str, str], seed: int) -> tuple[str, dict, np.ndarray]:
    """(opcode, the words of the operands by name, whatever the selector) and values."""
    rng = np.random.default_rng(seed)
    opcode = SCALED[name].format(a=types[0], b=types[1])
    bits, k = (8, 32) if "mxf8" in opcode else (4, 64)
    a, b = (random_codes(rng, kind, (rows, k)) for kind, rows in zip(types, (16, 8), strict=True))
    c = rng.integers(-64, 64, (16, 8)).astype(np.float32)
    kind = opcode.rsplit(".", 1)[1]
    (a_words, a_factors), (b_words, b_factors) = factors(rng, kind), factors(rng, kind)
    words = [*inputs(a, b, c, types, bits), a_words, b_words]
    tables = [code_table(kind).values[codes] for kind, codes in zip(types, (a, b), strict=True)]
    return opcode, {"words": words, "c": c, "factors": (a_factors, b_factors)}, tables


def wanted(
    case: dict, tables: list, per_row: int, selector: tuple[int, int, int, int]
) -> np.ndarray:
    a_byte, a_thread, b_byte, b_thread = selector
    a_factors, b_factors = case["factors"]
    block = tables[0].shape[1] // per_row
    left, right = tables[0].copy(), tables[1].copy()
    for row in range(16):
        lane = 4 * (row % 8) + 2 * a_thread + row // 8
        left[row] *= np.repeat(a_factors[lane, a_byte : a_byte + per_row], block)
    for column in range(8):
        lane = 4 * column + b_thread
        right[column] *= np.repeat(b_factors[lane, b_byte : b_byte + per_row], block)
    return (left @ right.T + case["c"]).astype(np.float32)


KINDS = [
    ("mxf8", ("e4m3", "e5m2"), 1),
    ("mxf8", ("e3m2", "e2m1"), 1),
    ("mxf8 by default", ("e2m1", "e2m3"), 1),
    ("mxf4", ("e2m1", "e2m1"), 2),
    ("mxf4 2X", ("e2m1", "e2m1"), 2),
    ("nvf4 2X", ("e2m1", "e2m1"), 2),
    ("nvf4 4X", ("e2m1", "e2m1"), 4),
]


@pytest.mark.parametrize(("name", "types", "per_row"), KINDS)
def test_a_block_scaled_product_is_that_of_the_scaled_matrices(
    name: str, types: tuple[str, str], per_row: int
) -> None:
    opcode, case, tables = scaled_case(name, types, per_row)
    for selector in SELECTORS[per_row]:
        a, b = selector[:2], selector[2:]
        rest = f", %r10, {{{a[0]}, {a[1]}}}, %r11, {{{b[0]}, {b[1]}}}"
        out = np.zeros((4, 32), np.uint32)
        answer = run(program(opcode, rest), {"in": np.stack(case["words"]), "out": out})
        assert not answer.findings
        assert np.array_equal(result(out), wanted(case, tables, per_row, selector))


IN_REGISTERS = "mov.b16 %h0, {}; mov.b16 %h1, {}; mov.b16 %h2, {}; mov.b16 %h3, {};"
BY_REGISTERS = ", %r10, {%h0, %h1}, %r11, {%h2, %h3}"


def by_registers(name: str, types: tuple[str, str], before: str) -> tuple[np.ndarray, set[str]]:
    opcode, case, _ = scaled_case(name, types, 5)
    out = np.zeros((4, 32), np.uint32)
    text = program(opcode, BY_REGISTERS, before)
    answer = run(text, {"in": np.stack(case["words"]), "out": out})
    return result(out), found(answer)


def test_registers_may_select_the_factors():
    out, findings = by_registers("mxf8", ("e4m3", "e4m3"), IN_REGISTERS.format(3, 1, 2, 3))
    _, case, tables = scaled_case("mxf8", ("e4m3", "e4m3"), 5)
    assert findings == set()
    assert np.array_equal(out, wanted(case, tables, 1, (3, 1, 2, 3)))


@pytest.mark.parametrize(
    ("name", "selector"),
    [
        ("mxf4", (1, 0, 0, 0)),
        ("nvf4 4X", (0, 0, 2, 0)),
        ("mxf4", (0, 2, 0, 0)),
        ("mxf4", (0, 0, 0, 4)),
    ],
)
def test_a_selector_without_a_meaning_is_a_finding_in_a_register_and_refused_as_a_literal(
    name: str, selector: tuple[int, int, int, int]
) -> None:
    types = ("e2m1", "e2m1")
    assert by_registers(name, types, IN_REGISTERS.format(*selector))[1] == {"scale-factors"}
    opcode = SCALED[name].format(a="e2m1", b="e2m1")
    rest = ", %r10, {{{}, {}}}, %r11, {{{}, {}}}".format(*selector)
    with pytest.raises(emulator.UnsupportedInstruction, match="selects scale factors by"):
        run(program(opcode, rest), {"in": np.zeros((12, 32), np.uint32), "out": np.zeros(128)})


def test_lanes_that_select_differently_are_a_finding():
    before = IN_REGISTERS.format(0, 0, 0, 0) + "cvt.u16.u32 %h0, %t; and.b16 %h0, %h0, 3;"
    assert by_registers("mxf8", ("e4m3", "e4m3"), before)[1] == {"scale-factors"}


def test_a_factor_that_is_no_number_makes_its_row_none():
    opcode, case, _ = scaled_case("mxf8", ("e4m3", "e4m3"), 6)
    words = np.stack(case["words"])
    words[10, 4 * 3] |= 0xFF  # row 3
    out = np.zeros((4, 32), np.uint32)
    run(program(opcode, ", %r10, {0, 0}, %r11, {0, 0}"), {"in": words, "out": out})
    assert np.flatnonzero(np.isnan(result(out)).all(axis=1)).tolist() == [3]


@pytest.mark.parametrize("types", [("e4m3", "e5m2"), ("e3m2", "e2m1"), ("e2m1", "e2m3")])
def test_without_scale_factors_narrow_numbers_are_multiplied_as_they_are(
    types: tuple[str, str],
) -> None:
    rng = np.random.default_rng(7)
    a, b = (random_codes(rng, kind, (rows, 32)) for kind, rows in zip(types, (16, 8), strict=True))
    c = rng.integers(-64, 64, (16, 8)).astype(np.float32)
    out = np.zeros((4, 32), np.uint32)
    opcode = f"m16n8k32.row.col.kind::f8f6f4.f32.{types[0]}.{types[1]}.f32"
    words = np.stack([*inputs(a, b, c, types, 8), np.zeros(32, np.uint32), np.zeros(32, np.uint32)])
    run(program(opcode), {"in": words, "out": out})
    left, right = (code_table(k).values[x] for k, x in zip(types, (a, b), strict=True))
    assert np.array_equal(result(out), (left @ right.T + c).astype(np.float32))


def test_fp8_is_one_truncated_sum_on_sm_120_and_rounded_with_c_on_sm_90():
    a, b = np.zeros((16, 32), int), np.zeros((8, 32), int)
    a[:, :3], b[:, :3] = 0x38, 0x38  # three ones
    c = np.full((16, 8), 2.0**24, np.float32)
    words = np.stack([*inputs(a, b, c, ("e4m3", "e4m3"), 8), *np.zeros((2, 32), np.uint32)])
    results = []
    for target in ("sm_120a", "sm_90a"):
        text = program("m16n8k32.row.col.f32.e4m3.e4m3.f32").replace("sm_120a", target)
        out = np.zeros((4, 32), np.uint32)
        run(text, {"in": words, "out": out})
        results.append(float(result(out)[0, 0]) - 2.0**24)
    assert results == [2.0, 4.0]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "types", "per_row"), KINDS)
def test_what_ptxas_makes_of_scaled_products_has_the_same_bits(
    name: str, types: tuple[str, str], per_row: int
) -> None:
    opcode, case, _ = scaled_case(name, types, 8)
    words = np.stack(case["words"])
    words[:10] = np.random.default_rng(9).integers(0, 1 << 32, (10, 32), dtype=np.uint32)
    for selector in SELECTORS[per_row]:
        text = program(opcode, ", %r10, {{{}, {}}}, %r11, {{{}, {}}}".format(*selector))
        outs = np.zeros((2, 4, 32), np.uint32)
        assert not run(text, {"in": words, "out": outs[0]}).findings
        assert not run_sass(text, "sm_120a", {"in": words, "out": outs[1]}).findings
        assert np.array_equal(*outs)


def test_what_ptxas_makes_of_registers_that_select_has_the_same_bits():
    opcode, case, _ = scaled_case("mxf8", ("e4m3", "e5m2"), 8)
    text = program(opcode, BY_REGISTERS, IN_REGISTERS.format(3, 1, 2, 3))
    outs = np.zeros((2, 4, 32), np.uint32)
    for out, execute in zip(outs, (run, lambda *x: run_sass(x[0], "sm_120a", x[1])), strict=True):
        execute(text, {"in": np.stack(case["words"]), "out": out})
    assert np.array_equal(*outs)


@pytest.mark.slow
@pytest.mark.parametrize("d_type", ["f32", "f16"])
@pytest.mark.parametrize("types", list(itertools.product(NARROW, NARROW)), ids=".".join)
def test_what_ptxas_makes_of_narrow_products_has_the_same_bits(
    types: tuple[str, str], d_type: str
) -> None:
    opcode = f"m16n8k32.row.col.kind::f8f6f4.{d_type}.{types[0]}.{types[1]}.{d_type}"
    text = program(opcode)
    if d_type == "f16":
        text = text.replace("{%r20, %r21, %r22, %r23}", "{%r20, %r21}")
        text = text.replace("{%r6, %r7, %r8, %r9}", "{%r6, %r7}")
    words = np.random.default_rng(10).integers(0, 1 << 32, (12, 32), dtype=np.uint32)
    outs = np.zeros((2, 4, 32), np.uint32)
    run(text, {"in": words, "out": outs[0]})
    run_sass(text, "sm_120a", {"in": words, "out": outs[1]})
    count = 4 if d_type == "f32" else 2
    assert np.array_equal(outs[0, :count], outs[1, :count])
