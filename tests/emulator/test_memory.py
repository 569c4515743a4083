"""Loads, stores and atomics: widths, spaces, generic addresses, order."""

from __future__ import annotations

import numpy as np
import pytest
from harness import EARLY, LATE, found, ptx, run, run_sass

from warpsim import Schedule, compiled

AT = "mul.wide.u32 %d0, %t, {size}; add.u64 %d1, %in, %d0; add.u64 %d2, %out, %d0;"
SHARED = ".shared .align 16 .b8 s[4096];"


def copy(load: str, store: str, size: int, dtype: type) -> None:
    values = np.arange(1, 32 * size // np.dtype(dtype).itemsize + 1).astype(dtype)
    out = np.zeros_like(values)
    text = ptx(AT.format(size=size) + load + store, ["in", "out"])
    assert run(text, {"in": values, "out": out}).findings == ()
    assert out.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("form", "registers", "size"),
    [
        ("b8", "%h0", 1),
        ("u16", "%h0", 2),
        ("b32", "%r0", 4),
        ("b64", "%d5", 8),
        ("v2.b32", "{%r0, %r1}", 8),
        ("v4.b16", "{%h0, %h1, %h2, %h3}", 8),
        ("v2.b64", "{%d5, %d6}", 16),
        ("v4.b32", "{%r0, %r1, %r2, %r3}", 16),
        ("v8.b32", "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}", 32),
    ],
)
@pytest.mark.parametrize("hint", ["", ".cs"])
def test_every_width_copies_what_is_there(form, registers, size, hint):
    load = f"ld.global{hint}.{form} {registers}, [%d1];"
    copy(load, f"st.global{hint}.{form} [%d2], {registers};", size, np.uint8)


def test_a_load_of_one_address_for_all_lanes_is_a_load():
    load = "ldu.global.v2.b32 {%r0, %r1}, [%d1];"
    copy(load, "st.global.v2.b32 [%d2], {%r0, %r1};", 8, np.uint8)


def test_narrow_loads_extend_to_the_register():
    body = """
    cvt.u64.u32 %d0, %t; add.u64 %d1, %in, %d0;
    ld.global.s8 %r0, [%d1]; ld.global.u8 %r1, [%d1];
    mul.wide.u32 %d0, %t, 8; add.u64 %d2, %out, %d0;
    st.global.v2.b32 [%d2], {%r0, %r1};
    """
    values = np.array([0, 1, 127, 128, 200, 255] * 6, np.uint8)[:32]
    out = np.zeros((32, 2), np.uint32)
    assert run(ptx(body, ["in", "out"]), {"in": values, "out": out}).findings == ()
    assert out[:, 0].view(np.int32).tolist() == values.view(np.int8).tolist()
    assert out[:, 1].tolist() == values.tolist()


def test_generic_addresses_reach_shared_local_and_global_memory():
    body = """
    mov.u64 %d0, s; cvta.shared.u64 %d1, %d0; mul.wide.u32 %d9, %t, 4; add.u64 %d1, %d1, %d9;
    mov.u64 %d2, l; cvta.local.u64 %d3, %d2;
    add.u64 %d4, %out, %d9;
    st.b32 [%d1], %t;
    st.b32 [%d3], %t;
    ld.b32 %r0, [%d1]; ld.local.b32 %r1, [l];
    setp.lt.u32 %p0, %t, 16;
    selp.b64 %d5, %d1, %d3, %p0;
    ld.b32 %r2, [%d5];
    add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, %r2;
    st.b32 [%d4], %r0;
    """
    out = np.zeros(32, np.uint32)
    text = ptx(body, ["out"], shared=SHARED + ".local .align 4 .b8 l[4];")
    assert run(text, {"out": out}).findings == ()
    assert out.tolist() == [3 * lane for lane in range(32)]


def test_atomics_of_one_address_happen_one_after_the_other():
    body = """
    atom.global.add.u32 %r0, [%sum], 1;
    mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r0;
    """
    out, total = np.zeros(64, np.uint32), np.zeros(1, np.uint32)
    run(ptx(body, ["out", "sum"]), {"out": out, "sum": total}, threads=64)
    assert total[0] == 64
    assert sorted(out.tolist()) == list(range(64))


def test_cas_lets_one_lane_win():
    body = """
    atom.global.cas.b32 %r0, [%lock], 0, 1;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra OUT;
    atom.global.add.u32 %r1, [%lock+4], 1;
    OUT:
    """
    lock = np.zeros(2, np.uint32)
    run(ptx(body, ["lock"]), {"lock": lock}, threads=96)
    assert lock.tolist() == [1, 1]


@pytest.mark.parametrize("space", ["shared", "local"])
def test_unwritten_memory_is_found_and_reads_as_nan(space):
    body = f"""
    ld.{space}.f32 %r0, [x];
    mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r0;
    """
    out = np.zeros(32, np.float32)
    result = run(ptx(body, ["out"], shared=f".{space} .align 4 .b8 x[64];"), {"out": out})
    assert found(result) == {"uninitialised-read"}
    assert np.isnan(out).all()


@pytest.mark.parametrize(
    ("update", "names"),
    [
        ("red.global.add.f32 [%out], %r0;", {"uninitialised-read"}),
        ("atom.add.u32 %r1, [%out], %r0;", {"uninitialised-read"}),
        ("atom.global.max.u32 %r1, [%out], %r0;", {"uninitialised-read"}),
        ("red.shared.add.u32 [s], %r0;", {"uninitialised-read"}),
        ("@%p0 red.global.add.f32 [%out], %r0;", set()),
        ("mov.b32 %r0, 1; red.global.add.u32 [%out], %r0;", set()),
    ],
)
def test_what_nobody_wrote_is_found_where_an_atomic_adds_it(update, names):
    body = f"""
    setp.gt.u32 %p0, %t, 32; mov.u32 %r2, 0;
    st.shared.b32 [s], %r2; ld.shared.f32 %r0, [s+64]; bar.sync 0; {update}
    """
    result = run(ptx(body, ["out"], shared=SHARED), {"out": np.zeros(1, np.uint32)})
    assert found(result) == names


PARTIAL = """
.shared .align 4 .b8 partial[20];
.visible .entry other() { .reg .b32 %r<2>; ld.shared.u32 %r1, [partial]; ret; }
"""


@pytest.mark.parametrize("use", ["", "st.shared.u32 [partial+4], %t;"])
def test_variables_of_the_module_lie_behind_the_kernel_s_own_in_shared_memory(use: str) -> None:
    tile = ".shared .align 4 .b8 tile[64];"
    body = "st.shared.v4.u32 [tile], {%t, %t, %t, %t};" + use
    assert found(run(ptx(body, shared=tile, extra=PARTIAL), {}, threads=1)) == set()


BIG = ".extern .shared .align 1024 .b8 big[]; .extern .shared .align 16 .b8 small[];"
SIZE = "mov.u32 %r1, %total_smem_size; st.global.u32 [%out], %r1;"


@pytest.mark.parametrize(("extra", "taken"), [(PARTIAL, 60), (BIG, 1024)])
def test_another_kernel_s_variables_take_no_shared_memory_but_align_this_one_s(
    extra: str, taken: int
) -> None:
    out = np.zeros(1, np.uint32)
    tile = ".shared .align 4 .b8 tile[60];"
    body = SIZE + "st.shared.u32 [tile], %t;"
    run(ptx(body, ["out"], shared=tile, extra=extra), {"out": out}, threads=1)
    assert out == [taken]


def test_a_dynamic_array_is_aligned_as_the_strictest_of_its_module_and_named_by_its_own() -> None:
    body = "mov.u32 %r1, small; st.global.u32 [%out], %r1; st.shared.u32 [%r1+64], %t;"
    tile = "st.shared.u32 [tile], %t;"
    shared = ".shared .align 4 .b8 tile[60];"
    out = np.zeros(1, np.uint32)
    text = ptx(body + tile, ["out"], shared=shared, extra=BIG)
    result = run(text, {"out": out}, threads=1, dynamic=64)
    assert out[0] % 1024 == 0
    assert "past the end of small (64 bytes)" in result.findings[0].sentence


@pytest.mark.parametrize(
    ("address", "name"),
    [("[%r0+4096]", "out-of-bounds"), ("[%r0+-2048]", "out-of-bounds"), ("[%r0+2]", "misaligned")],
)
def test_shared_memory_has_an_end(address, name):
    body = f"mov.u32 %r0, s; st.shared.b32 {address}, %t;"
    assert found(run(ptx(body, shared=SHARED), {})) == {name}


OWN = "mov.u32 %r1, s; shl.b32 %r0, %t, 2; add.u32 %r1, %r1, %r0;"
SHOWN = "mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r2;"


@pytest.mark.parametrize("compile_", [True, False], ids=["compiled", "Python"])
def test_a_launch_goes_on_past_the_end_of_shared_memory_as_far_as_a_card_has_some(
    compile_: bool,
) -> None:
    if not compile_:
        compiled.unload()
    text = ptx(
        OWN + "st.shared.b32 [%r1], %t; ld.shared.b32 %r2, [%r1];" + SHOWN,
        ["out"],
        shared=".shared .align 4 .b8 s[64];",
    )
    for threads, finished in ((32, True), (33, False)):
        out = np.zeros(64, np.uint32)
        result = run(text, {"out": out}, threads=threads)
        assert (found(result), result.finished) == ({"out-of-bounds"}, finished)
        assert out[:32].tolist() == list(range(32))


def test_what_nobody_wrote_past_the_end_of_shared_memory_has_no_value() -> None:
    shared = ".shared .align 4 .b8 s[64];"
    text = ptx(OWN + "ld.shared.b32 %r2, [%r1];" + SHOWN, ["out"], shared=shared)
    names = found(run(text, {"out": np.zeros(64, np.uint32)}))
    assert names == {"out-of-bounds", "uninitialised-read"}


@pytest.mark.parametrize(("offset", "finished"), [(-4, True), (-1024, True), (-1028, False)])
def test_a_load_before_the_first_shared_variable_finds_the_systems_kilobyte(
    offset: int, finished: bool
) -> None:
    body = f"mov.u32 %r1, s; ld.shared.b32 %r2, [%r1+{offset}];"
    result = run(ptx(body, shared=".shared .align 4 .b8 s[64];"), {})
    assert (found(result), result.finished) == ({"out-of-bounds"}, finished)


def test_an_index_past_a_shared_variable_reaches_the_next_one() -> None:
    shared = ".shared .align 4 .b8 s[64]; .shared .align 4 .b8 z[64];"
    there = "bar.warp.sync -1; mov.u32 %r3, z; xor.b32 %r0, %r0, 64; add.u32 %r3, %r3, %r0;"
    body = OWN + "st.shared.b32 [%r1], %t;" + there + "@%p1 ld.shared.b32 %r2, [%r3];"
    out = np.zeros(32, np.uint32)
    text = ptx("setp.gt.u32 %p1, %t, 15; mov.u32 %r2, 0;" + body + SHOWN, ["out"], shared=shared)
    result = run(text, {"out": out})
    assert (found(result), result.finished) == ({"out-of-bounds"}, True)
    assert out[16:].tolist() == list(range(16, 32))


@pytest.mark.parametrize("schedule", [LATE, EARLY], ids=str)
def test_a_copy_by_threads_past_a_shared_variable_is_out_of_bounds(schedule: Schedule) -> None:
    shared = ".shared .align 16 .b8 s[SIZE]; .shared .align 4 .b8 z[4];"
    body = """
    mov.u32 %r1, s; shl.b32 %r0, %t, 4; add.u32 %r1, %r1, %r0;
    cvt.u64.u32 %d1, %r0; add.u64 %d2, %in, %d1;
    cp.async.ca.shared.global [%r1], [%d2], 16; cp.async.wait_all;
    mov.u32 %r3, z; st.shared.b32 [%r3], 1;
    """
    for size, names in ((512, set()), (256, {"out-of-bounds"})):
        text = ptx(body, ["in"], shared=shared.replace("SIZE", str(size)))
        result = run(text, {"in": np.zeros(128, np.uint32)}, schedule=schedule)
        assert found(result) == names


@pytest.mark.parametrize("load", ["ld.shared.b32", "atom.shared.add.u32"])
def test_a_sum_below_0_is_an_address_if_its_offset_makes_it_one(load):
    body = f"""
    .shared .align 16 .b8 s[128];
    mov.u32 %r0, s; shl.b32 %r1, %t, 2; add.u32 %r2, %r0, %r1; sub.u32 %r3, %r2, 4096;
    add.u32 %r4, %t, 7; st.shared.b32 [%r3+4096], %r4;
    {load} %r5, [%r3+4096]{", 1" if "atom" in load else ""};
    mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r5;
    """
    out = np.zeros(32, np.uint32)
    assert run(ptx(body, ["out"]), {"out": out}).findings == ()
    assert out.tolist() == list(range(7, 39))


@pytest.mark.parametrize(("size", "names"), [(12, set()), (16, {"out-of-bounds"})])
def test_a_copy_with_zeros_behind_it_reads_what_it_copies_only(size, names):
    body = f"""
    setp.eq.u32 %p0, %t, 0; setp.lt.u32 %p1, %t, 4; mov.u32 %r0, s;
    @%p0 cp.async.cg.shared.global [%r0], [%in], 16, {size};
    cp.async.wait_all; bar.sync 0;
    shl.b32 %r1, %t, 2; add.u32 %r2, %r0, %r1; mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0;
    @%p1 ld.shared.b32 %r3, [%r2]; @%p1 st.global.b32 [%d1], %r3;
    """
    arrays = {"in": np.array([1, 2, 3], np.uint32), "out": np.zeros(4, np.uint32)}
    assert found(run(ptx(body, ["in", "out"], shared=SHARED), arrays)) == names
    assert names or arrays["out"].tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize(
    ("place", "size", "names"),
    [(0, 12, set()), (4, 8, {"misaligned"}), (4, 0, set()), (4, 16, {"misaligned"})],
)
def test_a_copy_of_a_part_is_aligned_as_the_whole_is(
    place: int, size: int, names: set[str]
) -> None:
    body = f"""
    setp.ne.u32 %p0, %t, 0; mov.u32 %r0, s; @%p0 bra END;
    cp.async.cg.shared.global [%r0], [%in+{place}], 16, {size}; cp.async.wait_all; END:
    """
    arrays = {"in": np.arange(8, dtype=np.uint32)}
    assert found(run(ptx(body, ["in"], shared=SHARED), arrays)) == names


def test_constants_and_parameters_cannot_be_stored_to():
    body = "mov.u64 %d0, c; st.global.b32 [%d0], %t;"
    text = ptx(body, extra=".const .align 4 .b8 c[4] = {1, 2, 3, 4};")
    assert found(run(text, {})) == {"read-only"}


def test_a_cluster_address_reaches_the_other_cta():
    body = """
    mov.u32 %r0, s; mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1;
    mapa.shared::cluster.u32 %r3, %r0, %r2;
    shl.b32 %r9, %t, 2; add.u32 %r3, %r3, %r9; add.u32 %r0, %r0, %r9;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    st.shared::cluster.u32 [%r3], %r1;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    ld.shared.u32 %r4, [%r0];
    mov.u32 %r5, %ctaid.x; mad.lo.u32 %r6, %r5, 32, %t;
    mul.wide.u32 %d0, %r6, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r4;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    """
    out = np.zeros(128, np.uint32)
    result = run(ptx(body, ["out"], shared=SHARED), {"out": out}, grid=4, cluster=2)
    assert result.findings == ()
    assert out.tolist() == ([1] * 32 + [0] * 32) * 2


def test_a_copy_of_what_nobody_wrote_names_where_that_comes_from():
    """As in a scan whose first sums were never set: shared memory was written, with nothing."""
    body = """
    ld.global.u32 %r0, [%x+4]; st.shared.u32 [buffer], %r0; bar.sync 0;
    ld.shared.u32 %r1, [buffer]; add.u32 %r1, %r1, 1; st.global.u32 [%x], %r1;
    """
    text = ptx(body, ["x"], shared=".shared .align 4 .b8 buffer[4];")
    x = {"x": np.zeros(2, np.uint32)}
    (finding,) = run(text, x, threads=1, unwritten=["x"]).findings
    assert finding.sentence.startswith("load by thread (0, 0, 0) of block")
    assert "x[1] (4-byte elements), which was never written; it was stored to byte 0 of buffer" in (
        finding.sentence
    )


@pytest.mark.parametrize(
    ("load", "store", "names"),
    [
        ("ld.global.u32 %r1, [%x+4];", "st.global.u32 [%y], %r1;", {"uninitialised-read"}),
        ("ld.global.u32 %r1, [%x+4];", "st.global.v2.u32 [%y], {%t, %r1};", set()),
        ("ld.global.u64 %d0, [%x];", "st.global.u64 [%y], %d0;", set()),
        ("ld.global.u64 %d0, [%x+8];", "st.global.u64 [%y], %d0;", {"uninitialised-read"}),
        (
            "ld.global.u32 %r1, [%x+4]; add.u32 %r1, %r1, 1;",
            "st.global.v2.u32 [%y], {%t, %r1};",
            {"uninitialised-read"},
        ),
    ],
)
def test_the_padding_of_a_record_may_be_copied_with_it(load, store, names):
    """As nvcc copies the end of {double, int}; of x, only the first word is written."""
    text = ptx(f"st.global.u32 [%x], 1; {load} {store}", ["x", "y"])
    arrays = {"x": np.zeros(4, np.uint32), "y": np.zeros(2, np.uint32)}
    assert found(run(text, arrays, threads=1, unwritten=["x"])) == names


@pytest.mark.parametrize(
    ("first", "names"),
    [("st.shared.u16 [%r9], %h0;", set()), ("", {"uninitialised-read"})],
)
@pytest.mark.parametrize("runs", [run, run_sass])
def test_an_atomic_of_two_bytes_swaps_the_word_around_them(runs, first, names):
    """What nobody wrote of the word is compared with itself; a word that nobody wrote is not."""
    body = f"""mov.u32 %r9, at; mad.lo.u32 %r9, %t, 4, %r9; mov.u16 %h0, 7;
    {first} ld.shared.u32 %r0, [%r9];
    AGAIN: add.u32 %r1, %r0, 1; prmt.b32 %r1, %r0, %r1, 0x3254;
    atom.shared.cas.b32 %r2, [%r9], %r0, %r1; setp.ne.u32 %p0, %r2, %r0;
    mov.u32 %r0, %r2; @%p0 bra AGAIN;
    ld.shared.u16 %h1, [%r9]; st.global.u16 [%x], %h1;"""
    text = ptx(body, ["x"], shared=".shared .align 4 .b8 at[128];", target="sm_90a")
    x = np.zeros(1, np.uint16)
    how = (text,) if runs is run else (text, "sm_90a")
    result = runs(*how, {"x": x}, threads=1)
    assert found(result) == names
    if first:
        assert x.tolist() == [8]


def test_a_sum_with_what_nobody_wrote_names_the_array_that_lacks_it():
    """As in a block's reduction: the sum is written, and one of its terms never was."""
    body = """
    ld.shared.u32 %r0, [terms+4]; add.u32 %r0, %r0, 1; st.shared.u32 [sum], %r0; bar.sync 0;
    ld.shared.u32 %r1, [sum]; add.u32 %r1, %r1, 1; st.global.u32 [%x], %r1;
    """
    shared = ".shared .align 4 .b8 terms[8]; .shared .align 4 .b8 sum[4];"
    text = ptx(body, ["x"], shared=shared)
    (finding,) = run(text, {"x": np.zeros(1, np.uint32)}, threads=1).findings
    assert "terms[1] (4-byte elements), which was never written" in finding.sentence
    assert "it was stored to byte 0 of sum, read at PTX line" in finding.sentence
