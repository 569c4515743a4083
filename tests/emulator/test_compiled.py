"""Compiled code gives the bits, findings and counters that Python gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import marks_at_the_end, ptx, run
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import warpsim as emulator
from warpsim import compiled
from warpsim.arithmetic import convert, native, tensor
from warpsim.arithmetic.floats import f32
from warpsim.launch import TensorMap

FIXED = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def both(library: Path, compute: Callable[[], Any]) -> tuple[Any, Any]:
    """What it gives in Python and in compiled code."""
    compiled.unload()
    python = compute()
    compiled.load(library)
    return python, compute()


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_text("no library")
    with pytest.raises(OSError, match=r"x\.so"):
        compiled.load(tmp_path / "x.so")


# Arithmetic

PATTERNS = st.one_of(
    st.integers(0, 0xFFFFFFFF),
    st.floats(width=32).map(lambda x: int(np.float32(x).view(np.uint32))),
    st.sampled_from([0, 0x80000000, 1, 0x7FFFFF, 0x800000, 0x800001, 0x7F7FFFFF, 0x7F800000,
                     0xFF800000, 0x7F800001, 0xFFC12345, 0x3F800000, 0x34000000]),
)  # fmt: skip
LANES = st.lists(PATTERNS, min_size=64, max_size=64).map(
    lambda values: np.array(values, np.uint32).reshape(2, 32)
)


@FIXED
@given(LANES, LANES, LANES, st.booleans())
def test_f32_operations(
    library: Path, a: np.ndarray, b: np.ndarray, c: np.ndarray, ftz: bool
) -> None:
    def compute() -> list[np.ndarray]:
        binary = (f32.add, f32.sub, f32.mul, f32.minimum, f32.maximum)
        results = [operation(a, b, ftz=ftz) for operation in binary]
        return [*results, f32.fma(a, b, c, ftz=ftz), convert.pack_x2(a, b, "bf16")]

    python, fast = both(library, compute)
    assert np.array_equal(python, fast)


SHAPES = st.sampled_from([(16, 8), (8, 16), (4, 32), (3, 96)])
"""Rows and columns of D: columns in vectors of each width."""


@FIXED
@given(
    kind=st.sampled_from(["e4m3", "e5m2", "f16", "bf16", "e2m1", "e4m3 scaled"]),
    shape=SHAPES,
    depth=st.sampled_from([8, 16, 32]),
    seed=st.integers(0, 2**32),
    scale=st.integers(-80, 80),
    spread=st.integers(0, 40),
    zeros=st.sampled_from([0.0, 0.0, 0.5, 0.97]),
    adds=st.booleans(),
    precision=st.sampled_from([tensor.TCGEN05, tensor.WGMMA_FP8]),
)
def test_products_of_finite_codes(
    library: Path,
    kind: str,
    shape: tuple[int, int],
    depth: int,
    seed: int,
    scale: int,
    spread: int,
    zeros: float,
    adds: bool,
    precision: tensor.Precision,
) -> None:
    random = np.random.default_rng(seed)
    (m, n), table = shape, native.code_table(kind)
    codes = np.arange(len(table.finite)).astype(np.uint8 if len(table.finite) == 256 else np.uint16)
    near = np.abs(table.exponents - random.integers(-38, 39)) <= 22
    wide = kind in ("bf16", "e4m3 scaled")  # those whose exponents may lie further apart
    chosen = codes[table.finite & (near | (table.values == 0) if wide else True)]
    a, b = random.choice(chosen, (3, m, depth)), random.choice(chosen, (3, n, depth))
    a[random.random(a.shape) < zeros] = 0
    b[random.random(b.shape) < zeros] = 0
    powers = 2.0 ** (scale + random.integers(-spread, spread + 1, (3, m, n)))
    c = (random.standard_normal((3, m, n)) * powers).astype(np.float32).view(np.uint32)
    c[random.random(c.shape) < zeros] = 0
    compiled.unload()
    parts = zip(a, b, c if adds else [None] * 3, strict=True)
    python = [tensor.mma(*part, a_type=kind, precision=precision) for part in parts]
    compiled.load(library)
    fraction, bits = precision.fraction_bits, precision.output_bits
    fast = native.mma(a, b, c if adds else None, kind, kind, fraction, bits)
    values = np.abs(np.stack(python).view(np.float32))
    if fast is None:
        assert ((values < 2.0**-126) & (values > 0)).any()
    else:
        assert np.array_equal(np.stack(python), fast)


@FIXED
@given(
    kind=st.sampled_from(["e4m3", "e5m2", "f16", "bf16"]),
    shape=st.sampled_from([(16, 8), (24, 16), (8, 32), (19, 32)]),
    depth=st.sampled_from([16, 32]),
    seed=st.integers(0, 2**32),
    exponents=st.integers(1, 11),
    about=st.sampled_from([0, 0, 0, 30, -30, -60, 62]),
    precision=st.sampled_from([tensor.TCGEN05, tensor.WGMMA_FP8]),
)
def test_products_that_lose_nothing_or_next_to_nothing(
    library: Path,
    kind: str,
    shape: tuple[int, int],
    depth: int,
    seed: int,
    exponents: int,
    about: int,
    precision: tensor.Precision,
) -> None:
    """C lies on either side of what its sum with such products loses."""
    random = np.random.default_rng(seed)
    (m, n), table = shape, native.code_table(kind)
    codes = np.arange(len(table.finite)).astype(np.uint8 if len(table.finite) == 256 else np.uint16)
    middle = about // 2 if kind == "bf16" else 0
    near = (table.exponents >= middle - exponents) & (table.exponents <= middle)
    chosen = codes[table.finite & (near | (table.values == 0))]
    few = random.choice(chosen, 8)
    a, b = random.choice(few, (m, depth)), random.choice(few, (n, depth))
    bits, fraction = random.integers(1, 25, (m, n)), precision.fraction_bits
    lowest = 2 * middle + random.integers(-fraction - 4, fraction + 3, (m, n))
    whole = random.integers(0, 2**bits) * random.choice([-1, 1], (m, n))
    c = np.ldexp(whole.astype(np.float64), lowest).astype(np.float32).view(np.uint32)
    odd = np.array([0x80000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF])
    c = np.where(random.random((m, n)) < 1 / (m * n), random.choice(odd, (m, n)), c)
    c = c.astype(np.uint32)
    python, fast = both(
        library,
        lambda: [tensor.mma(a, b, item, a_type=kind, precision=precision) for item in (c, None)],
    )
    assert np.array_equal(python, fast)


@FIXED
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(16, 16), (16, 8), (8, 32), (64, 64)]),
    st.integers(0, 24),
    st.sampled_from([tensor.MMA_SYNC, tensor.WGMMA_FP8]),
)
def test_products_in_f16_round_their_sum_once(
    library: Path, seed: int, extent: tuple[int, int], spread: int, precision: tensor.Precision
) -> None:
    random, (m, n) = np.random.default_rng(seed), extent

    def numbers(*shape: int) -> np.ndarray:
        powers = 2.0 ** random.integers(-spread, spread // 2 + 1, shape)
        values = (random.standard_normal(shape) * powers).astype(np.float16)
        values[random.random(shape) < 0.1] = 0
        return values.view(np.uint16)

    a, b, c = numbers(m, 16), numbers(n, 16), numbers(m, n)
    form = {"a_type": "f16", "precision": precision}
    python, fast = both(library, lambda: [tensor.mma_f16(a, b, x, **form) for x in (c, None)])
    assert np.array_equal(python, fast)


def test_a_product_of_very_different_magnitudes_is_left_to_numpy(library: Path) -> None:
    """Largest elements that only meet zeros."""
    compiled.load(library)
    a, b = np.zeros((16, 16), np.uint16), np.zeros((8, 16), np.uint16)
    a[:, 0], a[:, 1], b[:, 0], b[:, 1] = 0x5F80, 0x3F80, 0, 0x3F80  # 2^64, 1; 0, 1
    assert native.mma(a, b, None, "bf16", "bf16", 25, 24) is not None
    a[:, 0] = 0x7F00  # 2^127
    assert native.mma(a, b, None, "bf16", "bf16", 25, 24) is None


@pytest.mark.parametrize("code", [0x38, 0x7F], ids=["one", "NaN, which is left to NumPy"])
def test_a_product_is_added_in_place(library: Path, code: int) -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(0, 64, (rows, 32)).astype(np.uint8) for rows in (16, 32))
    a[3, 5] = code
    memory = random.random((16, 80)).astype(np.float32).view(np.uint32)
    before, c = memory.copy(), memory[:, 16:48]
    compiled.load(library)
    form = {"a_type": "e4m3", "precision": tensor.TCGEN05}
    expected = tensor.mma(a, b, c.copy(), **form)
    tensor.mma(a, b, c, **form, out=c)
    assert np.array_equal(c, expected)
    c[...] = before[:, 16:48]
    assert np.array_equal(memory, before)


def test_a_product_with_a_nan_is_left_to_numpy(library: Path) -> None:
    compiled.load(library)
    codes = np.full((16, 32), 0x7F, np.uint8)
    assert native.mma(codes, codes, None, "e4m3", "e4m3", 25, 24) is None


# Memory

SIZES = st.sampled_from([("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8), ("v2.u64", 16)])
STEP = st.tuples(
    st.sampled_from(["ld", "st"]),
    st.sampled_from(["shared", "global"]),
    SIZES,
    st.integers(0, 40),  # what the address grows by from thread to thread
    st.sampled_from([0, 0, 0, 4, 16, 64, 1]),  # what is added to it
    st.sampled_from([0, 0, 1, 2]),  # a barrier before it, or only every third thread
)
TILES = st.tuples(
    st.sampled_from(["ldmatrix", "stmatrix"]),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
    st.integers(0, 6),
    st.booleans(),
)


def access(step: tuple[Any, ...], number: int) -> str:
    kind, space, (type_, size), stride, offset, how = step
    value = {"u8": "%h1", "u16": "%h1", "u32": "%r2", "u64": "%d2"}.get(type_, "{%d2, %d3}")
    base = "%s" if space == "shared" else "%g"
    address = f"mul.lo.u32 %r1, %t, {stride // size * size};\nadd.u32 %r1, %r1, {offset};"
    guard = "@%p1 " if how == 2 else ""
    pair = f"[%d1], {value}" if kind == "st" else f"{value}, [%d1]"
    barrier = "bar.sync 0;\n" if how == 1 else ""
    return (
        f"{barrier}{address}\ncvt.u64.u32 %d1, %r1;\nadd.u64 %d1, %d1, {base};\n"
        f"{guard}{kind}.{space}.{type_} {pair};\n"
    )


def matrix(step: tuple[Any, ...], number: int) -> str:
    kind, count, transposed, skew, waits = step
    registers = "{" + ", ".join(f"%r{10 + i}" for i in range(count)) + "}"
    trans = ".trans" if transposed else ""
    pair = f"{registers}, [%r1]" if kind == "ldmatrix" else f"[%r1], {registers}"
    return (
        ("bar.sync 0;\n" if waits else "")
        + f"mul.lo.u32 %r1, %t, {16 * skew};\nand.b32 %r1, %r1, 2032;\nadd.u32 %r1, %r1, %sa;\n"
        + f"{kind}.sync.aligned.m8n8.x{count}{trans}.shared.b16 {pair};\n"
    )


BUFFER = ".shared .align 16 .b8 buffer[2048];"
HEAD = """
.reg .b64 %s, %g; .reg .b32 %sa;
mov.u64 %s, buffer; mov.u32 %sa, buffer; mov.u64 %g, %out;
mov.u64 %d2, 0x1234567890ABCDEF; mov.u64 %d3, 77; mov.u32 %r2, %t; mov.u16 %h1, 7;
rem.u32 %r3, %t, 3; setp.eq.u32 %p1, %r3, 0;
mov.u32 %r10, %t; mov.u32 %r11, 1; mov.u32 %r12, 2; mov.u32 %r13, %t;
"""
FILL = """
shl.b32 %r4, %t, 5; cvt.u64.u32 %d4, %r4; add.u64 %d4, %d4, %s;
st.shared.v2.u64 [%d4], {%d2, %d3}; st.shared.v2.u64 [%d4+16], {%d3, %d2};
bar.sync 0;
"""


@settings(FIXED, max_examples=80)
@given(
    st.lists(st.one_of(STEP.map(lambda s: (access, s)), TILES.map(lambda s: (matrix, s))),
             min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([0, 3]),
)  # fmt: skip
@example(
    steps=[(matrix, ("stmatrix", 1, False, 0, True)), (matrix, ("ldmatrix", 1, False, 0, False))],
    filled=False,
    seed=3,
)  # which of several readers is named
def test_accesses_right_and_wrong(
    library: Path, steps: list[tuple[Any, Any]], filled: bool, seed: int
) -> None:
    body = HEAD + (FILL if filled else "")
    body += "".join(write(step, number) for number, (write, step) in enumerate(steps))
    text = ptx(body, ["out"], shared=BUFFER)
    schedule = emulator.Schedule(seed=seed, asynchrony="late")

    def compute() -> tuple[Any, ...]:
        out = np.arange(4096, dtype=np.uint8)
        with marks_at_the_end() as marks:
            result = run(text, {"out": out}, threads=64, grid=2, schedule=schedule)
        counters = [(i.tally, i.executed, i.lanes) for i in result.counters.instructions]
        return out.tobytes(), result.findings, result.warnings, counters, result.contended, marks

    python, fast = both(library, compute)
    assert python == fast


def test_a_lane_may_overwrite_what_ldmatrix_gave_to_it_and_no_other(library: Path) -> None:
    head = FILL + "mul.lo.u32 %r1, %t, 16;\nadd.u32 %r1, %r1, %sa;\n"
    load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r1];\n"

    def named(lane: str) -> list[str]:
        where = f"{lane}\nshl.b32 %r5, %r5, 2;\nadd.u32 %r5, %r5, %sa;\nst.shared.u32 [%r5], 1;"
        text = ptx(HEAD + head + load + where, ["out"], shared=BUFFER)
        result = run(text, {"out": np.zeros(64, np.uint8)})
        return [finding.name for finding in result.findings]

    own, others = "mov.u32 %r5, %t;", "xor.b32 %r5, %t, 1;"
    assert both(library, lambda: named(own)) == ([], [])
    assert both(library, lambda: named(others)) == (["race"], ["race"])


@pytest.mark.parametrize(
    ("mask", "names"), [(0xFFFFFFFF, []), (0xFFFFFFFE, ["member-mask", "shuffle-source"])]
)
def test_a_shuffle_whose_member_mask_is_in_a_register(
    library: Path, mask: int, names: list[str]
) -> None:
    body = (
        f"mov.u32 %r3, {mask}; add.u32 %r1, %t, 5; mov.u32 %r2, 3;\n"
        "shfl.sync.bfly.b32 %r4|%p1, %r1, %r2, 0x1f, %r3;\n"
        "mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %out; st.global.u32 [%d1], %r4;\n"
    )

    def compute() -> tuple[list[str], list[int]]:
        out = np.zeros(32, np.uint32)
        result = run(ptx(body, ["out"]), {"out": out})
        return [finding.name for finding in result.findings], out.tolist()

    python, fast = both(library, compute)
    assert python == fast == (names, [(lane ^ 3) + 5 for lane in range(32)])


# Copies

BOXES = """
mov.u32 %r0, s; mov.u32 %r1, bar;
setp.ne.u32 %p0, %t, 0;
@%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r1], 1;
mov.b64 %d0, k_from;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], BYTES;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
  [%r0], [%d0, {LOAD}], [%r1];
READY: bar.sync 0;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
@!%p1 bra WAIT;
STORE_WORD
mov.b64 %d1, k_to;
@%p0 bra OUT;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d1, {STORE}], [%r0];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
OUT:
"""
"""A box that is loaded, written to by a warp, and stored elsewhere."""
WORDS = (
    "",
    "shl.b32 %r2, %t, 2; add.u32 %r2, %r0, %r2; st.shared.b32 [%r2], %t;\n",
)
FENCED = "fence.proxy.async.shared::cta; bar.sync 0;"
CORNER = st.tuples(st.integers(-3, 9), st.integers(-5, 20))


@FIXED
@given(
    element=st.sampled_from([1, 2, 4]),
    swizzle=st.sampled_from(["none", "32B", "64B", "128B"]),
    columns=st.integers(1, 140),  # of the array, in elements: chunks may be outside in part
    corners=st.tuples(CORNER, CORNER),  # in chunks of 16 bytes, and in rows
    rows=st.integers(1, 8),
    word=st.sampled_from(WORDS),
    fence=st.booleans(),
    late=st.booleans(),
)
def test_boxes_right_and_wrong(
    library: Path,
    element: int,
    swizzle: str,
    columns: int,
    corners: tuple[tuple[int, int], tuple[int, int]],
    rows: int,
    word: str,
    fence: bool,
    late: bool,
) -> None:
    inner = {"none": 48, "32B": 32, "64B": 32, "128B": 128}[swizzle]
    pitch = (columns * element + 15) // 16 * 16
    source = np.random.default_rng(columns).integers(0, 256, 16 * pitch, dtype=np.uint8)

    def map_of(array: str) -> TensorMap:
        return TensorMap(array=array, element={1: "u8", 2: "u16", 4: "u32"}[element],
                         shape=(columns, 16), strides_bytes=(pitch,),
                         box=(inner // element, rows), swizzle=swizzle)  # fmt: skip

    load, store = (f"{x * 16 // element}, {y}" for x, y in corners)
    body = BOXES.replace("BYTES", str(inner * rows)).replace("STORE_WORD", word + FENCED * fence)
    body = body.replace("{LOAD}", f"{{{load}}}").replace("{STORE}", f"{{{store}}}")
    shared = ".shared .align 1024 .b8 s[1024]; .shared .align 8 .b8 bar[8];"
    maps = "k(.param .align 128 .b8 k_from[128], .param .align 128 .b8 k_to[128])"
    text = ptx(body, shared=shared).replace("k()", maps)
    schedule = emulator.Schedule(seed=0, asynchrony="late" if late else "early")

    def compute() -> tuple[Any, ...]:
        arrays = {"in": source, "out": np.zeros_like(source)}
        arguments = [map_of("in"), map_of("out")]
        result = run(text, arrays, arguments=arguments, schedule=schedule, unwritten=["out"])
        tallies = [i.tally for i in result.counters.instructions]
        return arrays["out"].tobytes(), result.findings, result.warnings, tallies

    python, fast = both(library, compute)
    assert python == fast
