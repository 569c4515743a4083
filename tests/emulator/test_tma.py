"""Tensor copies: boxes, swizzles, edges."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from harness import EARLY, LATE, found, ptx, run

from kernelexp.model.errors import UsageError
from warpsim.launch import Pointer, TensorMap
from warpsim.machine.memory.tma import chunk_offsets, image, sectors, swizzled

LOAD = """
mov.u32 %r0, s; mov.u32 %r1, bar;
setp.ne.u32 %p0, %t, 0;
@%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r1], 1;
mov.b64 %d0, k_map;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], BYTES;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
  [%r0], [%d0, {<x>, <y>}], [%r1];
READY: bar.sync 0;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
@!%p1 bra WAIT;
mov.u32 %r3, %t;
COPY: shl.b32 %r4, %r3, 2; add.u32 %r5, %r0, %r4; ld.shared.b32 %r6, [%r5];
mul.wide.u32 %d1, %r3, 4; add.u64 %d2, %out, %d1; st.global.b32 [%d2], %r6;
add.u32 %r3, %r3, 32; setp.lt.u32 %p2, %r3, WORDS; @%p2 bra COPY;
"""


def load(
    box: TensorMap,
    source: np.ndarray,
    x: int,
    y: int,
    *,
    size: int | None = None,
    held: int = 0,
    **how,
):
    """(`held` bytes of shared memory from the box on, or all of it, findings)."""
    count = held or int(np.prod(box.box)) * source.itemsize
    body = LOAD.replace("BYTES", str(size or count)).replace("WORDS", str(count // 4))
    body = body.replace("<x>", str(x)).replace("<y>", str(y))
    shared = f".shared .align 1024 .b8 s[{count}]; .shared .align 8 .b8 bar[8];"
    text = ptx(body, ["out"], shared=shared)
    text = text.replace("k(.param", "k(.param .align 128 .b8 k_map[128], .param")
    out = np.zeros(count, np.uint8)
    arrays = {"in": source, "out": out}
    result = run(text, arrays, arguments=[box, Pointer(array="out")], **how)
    return out, found(result)


def box_of(source: np.ndarray, box: tuple[int, int], swizzle: str = "none") -> TensorMap:
    element = {1: "u8", 2: "u16", 4: "u32"}[source.itemsize]
    shape = (source.shape[1], source.shape[0])
    strides = (source.strides[0],)
    return TensorMap(
        array="in", element=element, shape=shape, strides_bytes=strides, box=box, swizzle=swizzle
    )


@pytest.mark.parametrize("schedule", [LATE, EARLY], ids=str)
@pytest.mark.parametrize(("x", "y"), [(0, 0), (16, 3), (-16, -2), (48, 30), (64, 40)])
def test_a_box_holds_what_lies_inside_and_zeros_elsewhere(x, y, schedule):
    source = np.arange(1, 64 * 32 + 1, dtype=np.uint16).reshape(32, 64)
    held, names = load(box_of(source, (32, 8)), source, x, y, schedule=schedule)
    assert names == set()
    padded = np.zeros((32 + 64, 64 + 128), np.uint16)
    padded[32:64, 64:128] = source
    want = padded[32 + y : 40 + y, 64 + x : 96 + x]
    assert (held.view(np.uint16).reshape(8, 32) == want).all()


@pytest.mark.parametrize(
    ("element", "packed", "room"), [("u4x16", 8, 8), ("u4x16_p64", 8, 16), ("u6x16_p32", 12, 16)]
)
def test_packed_elements_lie_16_to_a_chunk_and_padding_is_not_counted(element, packed, room):
    rng = np.random.default_rng(packed)
    source = rng.integers(0, 256, (12, 16 * packed), dtype=np.uint8)  # 256 elements in a row
    box = TensorMap(
        array="in", element=element, shape=(256, 12), strides_bytes=(16 * packed,), box=(128, 4)
    )
    size, x = 4 * 8 * packed, 128
    held, names = load(box, source, x, 2, size=size, held=4 * 8 * room)
    assert names == set()
    rows = held.reshape(4, 8, room)[..., :packed].reshape(4, 8 * packed)
    assert (rows == source[2:6, 8 * packed :]).all()


def test_a_box_of_padded_elements_has_128_of_them():
    box = TensorMap(
        array="in", element="u4x16_p64", shape=(256, 1), strides_bytes=(128,), box=(64, 1)
    )
    with pytest.raises(UsageError, match="a box of 128 elements"):
        load(box, np.zeros((1, 128), np.uint8), 0, 0)


@pytest.mark.parametrize(("swizzle", "inner"), [("32B", 32), ("64B", 64), ("128B", 128)])
def test_a_swizzle_exchanges_16_byte_chunks_by_the_address(swizzle, inner):
    rng = np.random.default_rng(inner)
    source = rng.integers(0, 256, (16, 256), dtype=np.uint8)
    held, _ = load(box_of(source, (inner, 16), swizzle), source, 16, 0)
    span = {"32B": 2, "64B": 4, "128B": 8}[swizzle]
    for row in range(16):
        for chunk in range(inner // 16):
            line = row * inner // 128  # 128 bytes of shared memory
            chunk_in_line = row * inner // 16 % 8 + chunk
            to = 128 * line + 16 * (chunk_in_line ^ line % span)
            from_ = source[row, 16 + 16 * chunk : 32 + 16 * chunk]
            assert (held[to : to + 16] == from_).all()


def test_a_box_narrower_than_its_swizzle_lies_at_the_span_s_pitch():
    source = np.arange(1, 65, dtype=np.uint8).reshape(2, 32)
    assert image(box_of(source, (32, 2), "128B")).footprint(64) == 128 + 32
    where = chunk_offsets(1024, 64, image(box_of(source, (32, 2), "128B")))
    assert where.tolist() == [0, 16, 128 ^ 16, 144 ^ 16]


def test_a_box_begins_at_a_multiple_of_16_bytes():
    source = np.zeros((32, 64), np.uint16)
    assert load(box_of(source, (32, 8)), source, 4, 0)[1] == {"misaligned"}


def test_a_swizzle_is_its_own_inverse():
    at = np.arange(0, 4096, 16)
    for swizzle in ("none", "32B", "64B", "128B"):
        assert (swizzled(swizzled(at, swizzle), swizzle) == at).all()


def test_a_barrier_that_expects_other_bytes_hangs():
    source = np.zeros((32, 64), np.uint16)
    _, names = load(box_of(source, (32, 8)), source, 0, 0, size=1024)
    assert names == {"hang"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"box": (24, 8), "swizzle": "32B"}, "within the swizzle's 32B"),
        ({"box": (4, 8)}, "multiple of 16 bytes"),
        ({"box": (32, 300)}, "box sides of 1 to 256"),
        ({"strides_bytes": (120,)}, "multiples of 16 bytes"),
        ({"shape": (64, 64)}, "reaches beyond its array"),
    ],
)
def test_an_impossible_map_is_refused_before_the_launch(change, words):
    source = np.zeros((32, 64), np.uint16)
    box = box_of(source, (32, 8))
    fields = {name: getattr(box, name) for name in box.__struct_fields__} | change
    with pytest.raises(UsageError, match=words):
        load(TensorMap(**fields), source, 0, 0)


REDUCE = """
mov.u32 %r0, s; shl.b32 %r1, %t, 4; add.u32 %r2, %r0, %r1; mov.u32 %r3, 1;
st.shared.v4.b32 [%r2], {%t, %t, %t, %r3};
fence.proxy.async.shared::cta;
bar.warp.sync -1;
setp.ne.u32 %p0, %t, 0;
@%p0 bra OUT;
mov.b64 %d0, k_map;
cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%d0, {0, 0}], [%r0];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
OUT:
"""


@pytest.mark.parametrize("schedule", [LATE, EARLY], ids=str)
def test_a_reduction_adds_to_what_is_there(schedule):
    target = np.full((32, 4), 100, np.uint32)
    text = ptx(REDUCE, shared=".shared .align 128 .b8 s[512];")
    text = text.replace("k()", "k(.param .align 128 .b8 k_map[128])")
    box = box_of(target, (4, 32))
    result = run(text, {"in": target}, arguments=[box], schedule=schedule)
    assert result.findings == ()
    lane = np.arange(32, dtype=np.uint32)
    assert (target == 100 + np.stack([lane, lane, lane, np.ones(32)], axis=1)).all()


@pytest.mark.parametrize(
    ("start", "loaded", "stored"),
    [
        ((0, 0), 24, 24),  # 48 bytes a row: each second one begins inside a sector
        ((-16, -2), 30, 14),  # rows and half rows outside come packed to a load
        ((32, 19), 21, 5),
        ((64, 24), 16, 0),
    ],
)
def test_a_box_moves_the_sectors_of_its_rows(start, loaded, stored):
    box = TensorMap(array="in", element="u8", shape=(48, 24), strides_bytes=(48,), box=(32, 16))
    assert sectors(box, 0, start, load=True) == loaded
    assert sectors(box, 0, start, load=False) == stored


def test_a_map_of_other_dimensions_than_coordinates_is_found() -> None:
    source = np.arange(64, dtype=np.uint32).reshape(8, 8)
    flat = box_of(source, (8, 4))
    deep = msgspec.structs.replace(
        flat, shape=(*flat.shape, 1), strides_bytes=(*flat.strides_bytes, 256), box=(*flat.box, 1)
    )
    _, findings = load(deep, source, 0, 0)
    assert findings == {"tensor-descriptor"}


RING = """
mov.u32 %r1, s; mov.u32 %r0, 0;
setp.ne.u32 %p0, %t, 0;
@%p0 bra END;
mbarrier.init.shared::cta.b64 [%r1+1024], 1; mbarrier.init.shared::cta.b64 [%r1+1032], 1;
fence.mbarrier_init.release.cluster;
LOOP:
and.b32 %r2, %r0, 1; shr.u32 %r3, %r0, 1; and.b32 %r3, %r3, 1;
shl.b32 %r4, %r2, 3; add.u32 %r4, %r4, %r1; shl.b32 %r5, %r2, 6; add.u32 %r5, %r5, %r1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4+1024], 64;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%in], 64, [%r4+1024];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4+1024], %r3;
@!%p1 bra WAIT;
add.u32 %r0, %r0, 1; setp.lt.u32 %p2, %r0, TURNS;
@%p2 bra LOOP;
END:
"""


@pytest.mark.parametrize(("turns", "once"), [(1, False), (2, True), (3, False)])
def test_a_ring_whose_stages_are_filled_once_is_named(turns: int, once: bool) -> None:
    text = ptx(RING.replace("TURNS", str(turns)), ["in"], shared=".shared .align 128 .b8 s[2048];")
    result = run(text, {"in": np.zeros(64, np.uint8)})
    assert not result.findings
    assert result.filled_once.startswith("PTX line") is once
