"""A finding names places as the source does: its lines, its variables, the ends of its arrays."""

from __future__ import annotations

import numpy as np
import pytest
from harness import found, ptx, run

import warpsim as emulator
from warpsim.lineinfo import Source
from warpsim.machine.core.site import where

FULL = "_ZZ4gemmPKfPfE4full"
RING = f".shared .align 8 .b8 {FULL}[24]; .shared .align 4 .b8 tile[30];"
FILES = '\n.file 1 "/k/gemm.cu"\n.file 2 "/include/wait.cuh"\n'


def sentences(result: emulator.Result) -> str:
    return " ".join(f"{finding.sentence} {finding.where()}" for finding in result.findings)


def test_an_mbarrier_is_named_by_its_variable() -> None:
    body = f"""
    setp.eq.u32 %p1, %t, 0;
    mov.u32 %r1, {FULL};
    @%p1 mbarrier.init.shared::cta.b64 [%r1+8], 1;
    bar.sync 0;
    L: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1+8], 0;
    @!%p2 bra L;
    """
    result = run(ptx(body, shared=RING), {})
    assert "mbarrier at shared 0x408 (byte 8 of full) of CTA 0" in sentences(result)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("ld.global.u8 %r1, [%x+64];", "outside every object, just past the end of x (64 bytes)."),
        ("ld.global.u32 %r1, [%x+72];", ", 8 bytes past the end of x (64 bytes)."),
        ("ld.global.u32 %r1, [%x+-4];", ", 4 bytes before the beginning of x (64 bytes)."),
        ("mov.u32 %r1, tile; st.shared.u8 [%r1+30], %t;", ", just past the end of tile (30 bytes)"),
        (
            "mov.u32 %r1, 35840; st.shared.u8 [%r1], %t;",
            "outside the CTA's shared memory; the CTA has 54 bytes.",
        ),
        (
            "mov.u64 %d1, 64; st.global.u32 [%d1], %t;",
            "block (0, 0, 0) to global address 0x40 (4 bytes) is outside every object.",
        ),
    ],
)
def test_an_access_just_outside_an_array_names_it(body: str, words: str) -> None:
    result = run(ptx(body, ["x"], shared=RING), {"x": np.zeros(16, np.uint32)}, threads=1)
    assert words in sentences(result)


def test_a_misaligned_access_names_its_thread_and_the_address_that_the_program_used() -> None:
    body = "mad.lo.u32 %r1, %t, 5, tile; st.shared.u32 [%r1], %t;"
    shared = ".shared .align 4 .b8 tile[32];"
    assert (
        "store by thread (1, 0, 0) of block (0, 0, 0) to shared address 0x405 (byte 5 of tile) is "
        "not a multiple of 4."
    ) in sentences(run(ptx(body, shared=shared), {}, threads=4))


@pytest.mark.parametrize(
    "copy",
    [
        "cp.async.bulk.global.shared::cta.bulk_group [%x], [%r1+16], 32;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%r1+16], [%x], 32, [b];",
    ],
)
def test_a_copy_that_leaves_its_array_for_the_next_names_it(copy: str) -> None:
    shared = ".shared .align 16 .b8 s[32]; .shared .align 16 .b8 b[32];"
    body = "mbarrier.init.shared.b64 [b], 1; mov.u32 %r1, s;" + copy
    result = run(ptx(body, ["x"], shared=shared), {"x": np.zeros(16, np.uint32)}, threads=1)
    words = "a copy of 32 bytes at shared 0x410 (byte 16 of s) leaves s (32 bytes)."
    assert found(result) == {"out-of-bounds"}
    assert words in sentences(result)


def test_a_copy_that_its_own_thread_has_not_waited_for_is_named_as_a_copy() -> None:
    shared = ".shared .align 16 .b8 s[16];"
    body = """
    mov.u32 %r1, s; st.shared.u32 [s], 0; cp.async.ca.shared.global [%r1], [%x], 4;
    cp.async.commit_group; ld.shared.u32 %r2, [s]; st.global.u32 [%x+4], %r2;
    cp.async.wait_all;
    """
    result = run(ptx(body, ["x"], shared=shared), {"x": np.ones(2, np.uint32)}, threads=1)
    assert found(result) == {"race"}
    assert "is written here by a copy of thread (0, 0, 0) of block (0, 0, 0)," in sentences(result)
    assert "and had not waited for the copy." in sentences(result)


def test_a_place_in_an_inlined_function_comes_after_its_callers() -> None:
    kernel = Source("/k/gemm.cu", 46)
    wait = Source("/k/gemm.cu", 13, Source("/k/gemm.cu", 20, kernel))
    wrapper = Source("/include/wait.cuh", 7, kernel)
    assert (wait.place(), wait.place(2)) == ("gemm.cu:20 → :13", "gemm.cu:46 → :20 → :13")
    assert (wrapper.place(), wrapper.place(2)) == ("gemm.cu:46", "gemm.cu:46")


@pytest.mark.parametrize(
    "folder",
    ["/usr/local/cuda-13.0/bin/../include", "/opt/cuda/targets/x86_64-linux/include/cccl/cuda"],
)
def test_a_header_of_the_toolkit_is_no_place(folder: str) -> None:
    caller = Source("/k/lock.cu", 20)
    inside = Source(f"{folder}/device_atomic_functions.hpp", 202, caller)
    assert where("PTX", 9, inside) == "lock.cu:20, PTX line 9"
    own = Source("/k/include/wait.cuh", 7, caller)
    assert where("PTX", 9, own) == "lock.cu:20 → wait.cuh:7, PTX line 9"


def test_a_hang_is_told_once_for_all_warps_of_a_cta_that_wait_for_the_same() -> None:
    body = """
    .loc 1 46 1
    setp.lt.u32 %p1, %t, 64;
    @!%p1 bra LAST;
    .loc 1 13 1, function_name $info, inlined_at 1 46 1
    bar.sync 1, 96;
    LAST:
    .loc 1 50 1
    bar.sync 2, 128;
    """
    result = run(ptx(body) + FILES, {}, threads=96)
    first, second = emulator.describe_hang(result.hang)
    assert first.startswith("CTA 0, warps 0 to 1 wait at gemm.cu:46 → :13, PTX line ")
    assert second.startswith("CTA 0, warp 2 waits at gemm.cu:50, PTX line ")
    assert "gemm.cu:46 → :13, PTX line" in result.findings[0].where()


def test_bytes_beyond_those_expected_are_no_negative_number() -> None:
    body = f"""
    mov.u32 %r1, {FULL};
    mbarrier.init.shared::cta.b64 [%r1], 1;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 1024;
    """
    result = run(ptx(body, shared=RING), {}, threads=1)
    assert "0 of 1 arrived, 1,024 bytes more have arrived than were expected" in sentences(result)
