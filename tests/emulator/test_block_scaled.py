"""Block-scaled products, what is copied to tensor memory for them, and weight-stationary products.

The host lays the operands out in shared memory's image, without a swizzle; one thread gives the
tensor core its work; every element of D is compared with a product in double precision.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness import EARLY, LATE, found, ptx, run

import warpsim as emulator
from warpsim.arithmetic.operands import code_table

BODY = """
mov.u32 %r0, image; mov.u32 %r2, bar; mov.u32 %r1, %cluster_ctarank;
setp.ge.u32 %p0, %t, 32; setp.ne.u32 %p2, %t, 0;
@%p0 bra ALLOCATED;
tcgen05.alloc.cta_group::GROUP.sync.aligned.shared::cta.b32 [%r2+8], 512;
ALLOCATED:
mul.wide.u32 %d0, %r1, BYTES; add.u64 %d1, %x, %d0; mul.wide.u32 %d2, %t, 16; add.u64 %d1, %d1, %d2;
shl.b32 %r3, %t, 4; add.u32 %r4, %r0, %r3;
COPY:
setp.ge.u32 %p1, %r3, BYTES; @%p1 bra COPIED;
ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%d1];
st.shared.v4.b32 [%r4], {%r10, %r11, %r12, %r13};
add.u64 %d1, %d1, 2048; add.u32 %r3, %r3, 2048; add.u32 %r4, %r4, 2048;
bra COPY;
COPIED:
fence.proxy.async.shared::cta;
@%p2 bra READY;
mbarrier.init.shared::cta.b64 [%r2], 1;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0; barrier.cluster.arrive; barrier.cluster.wait;
ld.shared.b32 %r20, [%r2+8];
or.b32 %r5, %t, %r1; setp.ne.u32 %p3, %r5, 0;
@%p3 bra WAIT;
shr.u32 %r21, %r0, 4; cvt.u64.u32 %d10, %r21; setp.eq.u32 %p4, %t, 0; setp.ne.u32 %p5, %t, 0;
mov.b16 %h0, MASK;
WORK
COMMIT
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r2], 0;
@!%p6 bra WAIT;
tcgen05.fence::after_thread_sync;
and.b32 %r30, %t, 96; shl.b32 %r31, %r30, 16; add.u32 %r31, %r31, %r20; mov.u32 %r32, 0;
shl.b32 %r33, %r1, 7; add.u32 %r33, %r33, %t;
mul.wide.u32 %d0, %r33, PITCH; add.u64 %d1, %out, %d0;
READ:
tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r40, %r41, %r42, %r43}, [%r31+FROM];
tcgen05.wait::ld.sync.aligned;
st.global.v4.b32 [%d1], {%r40, %r41, %r42, %r43};
add.u64 %d1, %d1, 16; add.u32 %r31, %r31, 4;
add.u32 %r32, %r32, 4; setp.lt.u32 %p7, %r32, COLUMNS; @%p7 bra READ;
bar.sync 0; barrier.cluster.arrive; barrier.cluster.wait;
@%p0 bra OUT;
tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 %r20, 512;
OUT:
"""
COMMITS = {
    1: "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];",
    2: "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
    ".multicast::cluster.b64 [%r2], %h0;",
}
FIRST_SCALES, SECOND_SCALES = 480, 496
"""Columns of tensor memory."""


def execute(
    work: str, images: np.ndarray, columns: int, *, first: int = 0, schedule=LATE
) -> tuple[np.ndarray, emulator.Result]:
    """Words [CTA, lane, column] of tensor memory after `work` on images [CTA, bytes]."""
    ctas, size = images.shape
    places = {
        "GROUP": ctas, "BYTES": size, "MASK": (1 << ctas) - 1, "WORK": work,
        "COMMIT": COMMITS[ctas], "PITCH": 4 * columns, "COLUMNS": columns, "FROM": first,
    }  # fmt: skip
    body = BODY
    for name, text in places.items():
        body = body.replace(name, str(text))
    shared = f".shared .align 1024 .b8 image[{size}]; .shared .align 8 .b8 bar[16];"
    out = np.zeros((ctas, 128, columns), np.uint32)
    arrays = {"x": np.ascontiguousarray(images), "out": out}
    text = ptx(body, ["x", "out"], shared=shared)
    result = run(text, arrays, threads=128, grid=ctas, cluster=ctas, schedule=schedule)
    return out, result


class Image:
    """What lies in the shared memory of one CTA, and descriptors of its parts."""

    def __init__(self) -> None:
        self.parts: list[np.ndarray] = []

    def add(self, rows: np.ndarray) -> int:
        """Bytes [rows, 16 * n] as core matrices of 8 rows of 16 bytes; the descriptor, to be added
        to the image's."""
        at = sum(len(part) for part in self.parts)
        count, width = rows.shape
        chunks = rows.reshape(count, width // 16, 16).transpose(1, 0, 2).ravel()
        self.parts.append(chunks.astype(np.uint8))
        return at >> 4 | (count * 16 >> 4) << 16 | (128 >> 4) << 32 | 1 << 46

    def bytes(self) -> np.ndarray:
        return np.concatenate(self.parts)


def values(codes: np.ndarray, kind: str) -> np.ndarray:
    return code_table(kind).values[codes]


def random_codes(rng: np.random.Generator, shape: tuple[int, int], kind: str) -> np.ndarray:
    bits = {"e4m3": 8, "e5m2": 8, "e2m1": 4}.get(kind, 6)
    codes = rng.integers(0, 1 << bits, shape).astype(np.uint8)
    return np.where(np.isfinite(values(codes, kind)), codes, 0).astype(np.uint8)


def stored(codes: np.ndarray, kind: str, *, paired: bool = False) -> np.ndarray:
    """Codes [rows, K] as bytes of shared memory: 16 to 16 bytes, or pairs."""
    if paired:
        return codes[:, ::2] | codes[:, 1::2] << 4
    if kind in ("e4m3", "e5m2"):
        return codes
    bits = 4 if kind == "e2m1" else 6
    result = np.unpackbits(codes[..., None], axis=2, bitorder="little")[..., :bits]
    packed = np.packbits(result.reshape(-1, 16 * bits), axis=1, bitorder="little")
    return np.pad(packed, ((0, 0), (0, 16 - 2 * bits)), constant_values=0xFF).reshape(codes.shape)


def scale_rows(scales: np.ndarray) -> np.ndarray:
    """Scales [128 * n, 4] as the 32 rows of 16 bytes that 32x128b.warpx4 takes, for each n."""
    return scales.reshape(-1, 4, 32, 4).transpose(0, 2, 1, 3).reshape(-1, 32, 16)


def scale_values(scales: np.ndarray, kind: str) -> np.ndarray:
    if kind == "ue8m0":
        return np.ldexp(1.0, scales.astype(int) - 127)
    return values(scales & 0x7F, "e4m3")


def random_scales(rng: np.random.Generator, rows: int, kind: str) -> np.ndarray:
    low, high = (120, 135) if kind == "ue8m0" else (0, 0x7F)
    return rng.integers(low, high, (rows, 4)).astype(np.uint8)


def descriptor_of(kind: str, types: tuple[str, str], m: int, n: int, scale: str) -> int:
    numbers = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
    a, b = (1, 1) if kind != "mxf8f6f4" else (numbers[types[0]], numbers[types[1]])
    return a << 7 | b << 10 | n >> 3 << 17 | (scale == "ue8m0") << 23 | m >> 7 << 27


def copy_scales(image: Image, scales: np.ndarray, column: int, group: int) -> str:
    lines = ""
    for index, rows in enumerate(scale_rows(scales)):
        lines += (
            f"add.u64 %d11, %d10, {image.add(rows)}; add.u32 %r22, %r20, {column + 4 * index};\n"
            f"tcgen05.cp.cta_group::{group}.32x128b.warpx4 [%r22], %d11;\n"
        )
    return lines


def block_scaled(
    kind: str,
    types: tuple[str, str] = ("e2m1", "e2m1"),
    scale: str = "ue8m0",
    size: str = "",
    *,
    n: int = 64,
    schedule: emulator.Schedule = LATE,
) -> None:
    """All the products that one word of scale factors has factors for, accumulated."""
    rng = np.random.default_rng(1)
    paired = kind != "mxf8f6f4"
    per_step = (4 if size in (".scale_vec::4X", ".block16") else 2) if paired else 1
    steps, k = 4 // per_step, 64 if paired else 32
    a, b = (random_codes(rng, (rows, steps * k), t) for rows, t in ((128, types[0]), (n, types[1])))
    a_scales, b_scales = random_scales(rng, 128, scale), random_scales(rng, 128, scale)
    image = Image()
    work = copy_scales(image, a_scales, FIRST_SCALES, 1) + copy_scales(
        image, b_scales, SECOND_SCALES, 1
    )
    shape = descriptor_of(kind, types, 128, n, scale)
    for step in range(steps):
        part = slice(step * k, step * k + k)
        ids = step * per_step
        for name, (codes, t) in {"%d12": (a, types[0]), "%d13": (b, types[1])}.items():
            at = image.add(stored(codes[:, part], t, paired=paired))
            work += f"add.u64 {name}, %d10, {at};\n"
        work += (
            f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale{size} [%r20], %d12, %d13, "
            f"{shape | ids << 29 | ids << 4}, [%r20+{FIRST_SCALES}], [%r20+{SECOND_SCALES}], "
            f"{'%p4' if step else '%p5'};\n"
        )
    out, result = execute(work, image.bytes()[None], n, schedule=schedule)
    assert found(result) == set()
    block = steps * k // 4
    left, right = (
        values(codes, t) * np.repeat(scale_values(scales[: len(codes)], scale), block, axis=1)
        for codes, t, scales in ((a, types[0], a_scales), (b, types[1], b_scales))
    )
    agree(out[0].view(np.float32), left @ right.T, np.abs(left) @ np.abs(right).T)


def agree(got: np.ndarray, want: np.ndarray, magnitude: np.ndarray) -> None:
    """Within what truncation to 24 bits can lose of each step."""
    assert (np.abs(got - want) <= magnitude * 2.0**-20).all()
    assert np.abs(want).max() > 0


def test_e4m3_by_e2m1_with_a_scale_per_32() -> None:
    block_scaled("mxf8f6f4", ("e4m3", "e2m1"), size=".block32")


def test_pairs_of_e2m1_with_a_scale_of_e4m3_per_16() -> None:
    block_scaled("mxf4nvf4", scale="ue4m3", size=".scale_vec::4X", n=96)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", [LATE, EARLY], ids=str)
@pytest.mark.parametrize(
    ("kind", "types", "scale", "size", "n"),
    [
        ("mxf8f6f4", ("e4m3", "e4m3"), "ue8m0", "", 128),
        ("mxf8f6f4", ("e5m2", "e2m3"), "ue8m0", ".scale_vec::1X", 8),
        ("mxf8f6f4", ("e3m2", "e5m2"), "ue8m0", ".block32", 120),
        ("mxf8f6f4", ("e2m3", "e3m2"), "ue8m0", "", 72),
        ("mxf8f6f4", ("e2m1", "e4m3"), "ue8m0", "", 16),
        ("mxf4", ("e2m1", "e2m1"), "ue8m0", "", 64),
        ("mxf4", ("e2m1", "e2m1"), "ue8m0", ".scale_vec::2X", 8),
        ("mxf4nvf4", ("e2m1", "e2m1"), "ue8m0", ".block32", 40),
        ("mxf4nvf4", ("e2m1", "e2m1"), "ue8m0", ".block16", 128),
    ],
)
def test_block_scaled_products_of_all_types(kind, types, scale, size, n, schedule) -> None:
    block_scaled(kind, types, scale, size, n=n, schedule=schedule)


@pytest.mark.slow
@pytest.mark.parametrize("m", [128, 256])
@pytest.mark.parametrize("n", [64, 256])
def test_a_pair_of_ctas_takes_the_scales_of_b_as_its_layout_has_them(m: int, n: int) -> None:
    rng = np.random.default_rng(m + n)
    rows = m // 2
    a, b = random_codes(rng, (m, 32), "e4m3"), random_codes(rng, (n, 32), "e4m3")
    a_scales, b_scales = random_scales(rng, m, "ue8m0"), random_scales(rng, 256, "ue8m0")
    images = [Image(), Image()]
    shape = descriptor_of("mxf8f6f4", ("e4m3", "e4m3"), m, n, "ue8m0")
    for cta, image in enumerate(images):
        own = np.zeros((128, 4), np.uint8)
        own[:rows] = a_scales[cta * rows :][:rows]
        work = copy_scales(image, own, FIRST_SCALES, 2)
        if m == 256:
            work += copy_scales(image, b_scales, SECOND_SCALES, 2)
        else:
            work += copy_halves(image, b_scales, n)
        half = slice(cta * n // 2, (cta + 1) * n // 2)
        work += f"add.u64 %d12, %d10, {image.add(a[cta * rows :][:rows])};\n"
        work += f"add.u64 %d13, %d10, {image.add(b[half])};\n"
    work += (
        f"tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale [%r20], %d12, %d13, {shape}, "
        f"[%r20+{FIRST_SCALES}], [%r20+{SECOND_SCALES}], %p5;\n"
    )
    columns = n if m == 256 else n // 2
    out, result = execute(work, np.stack([image.bytes() for image in images]), columns)
    assert found(result) == set()
    got = out.view(np.float32)
    if m == 256:
        got = got.reshape(256, n)
    else:  # layout B: the upper half of N in the lanes from 64 on
        got = np.concatenate([got[:, :64], got[:, 64:]], axis=2).reshape(128, n)
    left = values(a, "e4m3") * scale_values(a_scales[:, :1], "ue8m0")
    right = values(b, "e4m3") * scale_values(b_scales[:n, :1], "ue8m0")
    agree(got, left @ right.T, np.abs(left) @ np.abs(right).T)


def copy_halves(image: Image, scales: np.ndarray, n: int) -> str:
    """The factors of each half of N to the lanes of that half, 64 rows of 16 bytes at a time."""
    halves = np.zeros((2, 128, 4), np.uint8)
    halves[:, : n // 2] = scales[:n].reshape(2, n // 2, 4)
    rows = np.concatenate([scale_rows(half)[0] for half in halves])
    return (
        f"add.u64 %d11, %d10, {image.add(rows)}; add.u32 %r22, %r20, {SECOND_SCALES};\n"
        "tcgen05.cp.cta_group::2.64x128b.warpx2::01_23 [%r22], %d11;\n"
    )


# Copies and shifts


def copied(
    shape: str, rows: int, width: int, suffix: str = "", lane: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """(bytes of the source [rows, width], bytes of tensor memory [128, 32]) of one tcgen05.cp over
    lanes that hold zeros."""
    data = np.random.default_rng(3).integers(1, 256, (rows, width)).astype(np.uint8)
    image = Image()
    zeros = image.add(np.zeros((128, 32), np.uint8))
    work = f"add.u64 %d11, %d10, {zeros}; tcgen05.cp.cta_group::1.128x256b [%r20], %d11;\n"
    work += f"add.u64 %d11, %d10, {image.add(np.pad(data, ((0, -rows % 8), (0, 0))))};\n"
    work += f"add.u32 %r22, %r20, {lane << 16};\n"
    work += f"tcgen05.cp.cta_group::1.{shape}{suffix} [%r22], %d11;\n"
    out, result = execute(work, image.bytes()[None], 8)
    assert found(result) == set()
    return data, out[0].view(np.uint8)


def test_a_copy_of_128_rows_of_32_bytes() -> None:
    data, out = copied("128x256b", 128, 32)
    assert (out == data).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "rows", "lanes"),
    [
        ("128x128b", 128, [range(128)]),
        ("64x128b.warpx2::02_13", 64, [range(64), range(64, 128)]),
        (
            "64x128b.warpx2::01_23",
            64,
            [[*range(32), *range(64, 96)], [*range(32, 64), *range(96, 128)]],
        ),
        ("32x128b.warpx4", 32, [range(first, first + 32) for first in (0, 32, 64, 96)]),
    ],
)
def test_copies_of_16_bytes_reach_the_lanes_of_their_warps(shape, rows, lanes) -> None:
    data, out = copied(shape, rows, 16)
    for lane in lanes:
        assert (out[list(lane), :16] == data).all()
    assert not out[:, 16:].any()


@pytest.mark.slow
def test_four_rows_reach_one_lane_of_each_quarter() -> None:
    data, out = copied("4x256b", 4, 32, lane=31)
    assert (out[31::32] == data).all()
    assert not np.delete(out, np.arange(31, 128, 32), axis=0).any()


@pytest.mark.slow
@pytest.mark.parametrize(("form", "bits"), [("b4x16_p64", 4), ("b6x16_p32", 6)])
def test_a_copy_widens_codes_of_4_and_6_bits_to_bytes(form: str, bits: int) -> None:
    data, out = copied("128x256b", 128, 32, suffix=f".b8x16.{form}")
    for row, chunk in np.ndindex(128, 2):
        word = int.from_bytes(data[row, 16 * chunk :][: 2 * bits].tobytes(), "little")
        codes = [word >> bits * i & (1 << bits) - 1 for i in range(16)]
        want = [code << 2 if bits == 4 else code for code in codes]
        assert out[row, 16 * chunk :][:16].tolist() == want


@pytest.mark.slow
def test_a_shift_moves_each_row_to_the_one_before_but_the_last_of_32() -> None:
    image = Image()
    data = np.random.default_rng(4).integers(0, 256, (128, 32)).astype(np.uint8)
    work = f"""
    add.u64 %d11, %d10, {image.add(data)}; tcgen05.cp.cta_group::1.128x256b [%r20], %d11;
    tcgen05.shift.cta_group::1.down [%r20];
    """
    out, result = execute(work, image.bytes()[None], 8)
    assert found(result) == set()
    want = data.copy().reshape(4, 32, 32)
    want[:, :-1] = data.reshape(4, 32, 32)[:, 1:]
    assert (out[0].view(np.uint8) == want.reshape(128, 32)).all()


@pytest.mark.slow
def test_a_of_four_bits_is_widened_on_its_way_to_tensor_memory() -> None:
    rng = np.random.default_rng(5)
    a, b = random_codes(rng, (128, 32), "e2m1"), random_codes(rng, (64, 32), "e3m2")
    image = Image()
    shape = 1 << 4 | 5 << 7 | 4 << 10 | 64 >> 3 << 17 | 128 >> 4 << 24
    work = f"""
    add.u64 %d11, %d10, {image.add(stored(a, "e2m1"))}; add.u32 %r22, %r20, 256;
    tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p64 [%r22], %d11;
    add.u64 %d12, %d10, {image.add(stored(b, "e3m2"))};
    tcgen05.mma.cta_group::1.kind::f8f6f4 [%r20], [%r20+256], %d12, {shape}, %p5;
    """
    out, result = execute(work, image.bytes()[None], 64)
    assert found(result) == set()
    assert (out[0].view(np.float32) == values(a, "e2m1") @ values(b, "e3m2").T).all()


# Weight-stationary


def weight_stationary(m: int, mask: int = 0) -> tuple[np.ndarray, np.ndarray, emulator.Result]:
    """(D in tensor memory, the product, result) of two steps of K; `mask`: of zero columns."""
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-8, 9, (rows, 32)).astype(np.float16) for rows in (m, 64))
    image = Image()
    shape = 1 << 4 | 64 >> 3 << 17 | m >> 4 << 24
    work = ""
    for step in range(2):
        for name, matrix in {"%d12": a, "%d13": b}.items():
            part = np.ascontiguousarray(matrix[:, 16 * step : 16 * step + 16])
            work += f"add.u64 {name}, %d10, {image.add(part.view(np.uint8))};\n"
        work += (
            f"tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill [%r20], %d12, %d13, "
            f"{shape}, {'%p4' if step else '%p5'}, {mask};\n"
        )
    out, result = execute(work, image.bytes()[None], 64 * m // 128)
    return out[0].view(np.float32), a.astype(np.float64) @ b.astype(np.float64).T, result


@pytest.mark.slow
@pytest.mark.parametrize("m", [32, 64, 128])
def test_a_weight_stationary_product_splits_n_over_the_lanes_that_m_leaves(m: int) -> None:
    got, want, result = weight_stationary(m)
    assert found(result) == set()
    assert (np.concatenate(np.split(got, 128 // m), axis=1) == want).all()


def test_a_mask_of_zero_columns_is_refused_where_it_stands() -> None:
    with pytest.raises(emulator.UnsupportedInstruction, match=r"PTX line \d+.*zero columns"):
        weight_stationary(128, mask=1 << 39)


# Faults


def one_product(
    *, scales: int = 2, bits: int = 0, before: str = "", after: str = "", schedule=LATE
) -> emulator.Result:
    """Of ones; the first `scales` operands have scale factors; %d14 describes rows that differ."""
    ones = np.full((128, 32), 0x38, np.uint8)
    rows = np.arange(256, dtype=np.uint8).reshape(8, 32)
    image, work = Image(), ""
    for at in (FIRST_SCALES, SECOND_SCALES)[:scales]:
        work += copy_scales(image, np.full((128, 4), 127, np.uint8), at, 1)
    shape = descriptor_of("mxf8f6f4", ("e4m3", "e4m3"), 128, 64, "ue8m0") | bits
    work += f"add.u64 %d12, %d10, {image.add(ones)}; add.u64 %d14, %d10, {image.add(rows)};\n"
    work += before + (
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r20], %d12, %d12, "
        f"{shape}, [%r20+{FIRST_SCALES}], [%r20+{SECOND_SCALES}], %p5;\n"
    )
    return execute(work + after, image.bytes()[None], 64, schedule=schedule)[1]


def test_scale_factors_that_nothing_wrote_are_found() -> None:
    assert found(one_product(scales=1)) == {"tmem-uninitialised"}


def test_scale_factors_that_differ_between_the_quarters_of_the_lanes_are_found() -> None:
    place = 5 << 16 | SECOND_SCALES
    copy = f"add.u32 %r22, %r20, {place}; tcgen05.cp.cta_group::1.4x256b [%r22], %d14;\n"
    assert found(one_product(before=copy)) == {"scale-factors"}


@pytest.mark.parametrize(("bits", "wrong"), [(1 << 24, True), (3 << 29 | 3 << 4, False)])
def test_reserved_bits_of_a_block_scaled_descriptor_are_found(bits: int, wrong: bool) -> None:
    assert ("tensor-descriptor" in found(one_product(bits=bits))) == wrong


def test_a_sparse_block_scaled_product_is_refused() -> None:
    with pytest.raises(emulator.UnsupportedInstruction, match="sparsity"):
        one_product(bits=1 << 2)
