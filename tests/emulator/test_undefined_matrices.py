"""Matrices read from shared memory that is written in part: only what a result needs counts."""

from __future__ import annotations

import numpy as np
from harness import found, ptx, run

# Thread t writes row t of a 16 x 16 tile of f16 with its own number, if t < ROWS.
FILL = """
cvta.shared.u64 %d1, tile; cvt.u32.u64 %r1, %d1; mov.u32 %r1, tile;
shl.b32 %r2, %t, 5; add.u32 %r3, %r1, %r2; cvt.rn.f16.u32 %h0, %t; mov.b32 %r4, {%h0, %h0};
setp.lt.u32 %p0, %t, ROWS;
@%p0 st.shared.v4.b32 [%r3], {%r4, %r4, %r4, %r4};
@%p0 st.shared.v4.b32 [%r3+16], {%r4, %r4, %r4, %r4};
bar.warp.sync -1;
and.b32 %r5, %t, 15; shl.b32 %r5, %r5, 5; shr.u32 %r6, %t, 4; shl.b32 %r6, %r6, 4;
add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r1;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r5];
"""
# D = tile times a matrix of ones; lane 4 g + q holds columns 2 q and 2 q + 1 of rows g and g + 8.
MULTIPLY = """
mov.b32 %r20, 0x3C003C00; mov.b32 %r21, 0;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%r14, %r15, %r16, %r17}, {%r10, %r11, %r12, %r13}, {%r20, %r20}, {%r21, %r21, %r21, %r21};
mul.wide.u32 %d0, %t, 8; add.u64 %d2, %out, %d0;
st.global.v2.b32 [%d2], {%r14, %r15};
"""
LAST = "st.global.v2.b32 [%d2+256], {%r16, %r17};"
TILE = ".shared .align 128 .b8 tile[512];"


def execute(body: str, rows: int) -> tuple[set[str], np.ndarray]:
    out = np.zeros((16, 8), np.float32)
    result = run(ptx(body.replace("ROWS", str(rows)), ["out"], shared=TILE), {"out": out})
    return found(result), out


def test_a_matrix_that_was_never_written_may_be_loaded_and_dropped():
    assert execute(FILL, 0)[0] == set()


def test_an_unwritten_row_that_reaches_a_result_is_a_finding():
    assert execute(FILL + MULTIPLY + LAST, 12)[0] == {"uninitialised-read"}


def test_unwritten_rows_of_a_whose_results_are_dropped_are_none():
    findings, out = execute(FILL + MULTIPLY, 8)
    assert findings == set()
    assert (out[:8] == 16 * np.arange(8)[:, None]).all()


def test_a_tile_that_is_written_is_multiplied_without_a_finding():
    findings, out = execute(FILL + MULTIPLY + LAST, 16)
    assert findings == set()
    assert (out == 16 * np.arange(16)[:, None]).all()


def test_an_unwritten_column_of_b_reaches_that_column_of_every_row():
    body = FILL + MULTIPLY.replace("{%r10, %r11, %r12, %r13}, {%r20, %r20}", "A, B")
    body = body.replace("A, B", "{%r20, %r20, %r20, %r20}, {%r10, %r12}")
    first_pairs = body.replace("st.global.v2", "setp.lt.u32 %p1, %t, 4; @%p1 st.global.v2")
    assert execute(first_pairs, 7)[0] == {"uninitialised-read"}
    narrow = body.replace(
        "st.global.v2", "and.b32 %r9, %t, 3; setp.eq.u32 %p1, %r9, 0;\n@%p1 st.global.v2"
    )
    assert execute(narrow, 2)[0] == set()
