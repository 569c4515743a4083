"""Registers that SASS uses before the instruction that fills them is through."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from harness import assemble, compile_cu, found, launched, ptx
from test_unusual_kernels import KERNELS, SOURCE

import warpsim as emulator
from warpsim.front.sass import decode, text
from warpsim.front.sass.scoreboards import control
from warpsim.front.sass.syntax import MachineInstruction

ADDS = "ld.global.u32 %r1, [%x]; add.u32 %r1, %r1, %t; st.global.u32 [%x], %r1;"
WAITS = 0x3F << 116


def without_wait(content: bytes, listing: str, address: int) -> tuple[bytes, str]:
    """A cubin in which the instruction at an address waits for no scoreboard, and its listing."""
    (ins,) = (ins for ins in text.read(listing, "k", {}) if ins.address == address)
    words = ins.word, ins.word & ~WAITS
    before, after = (word.to_bytes(16, "little") for word in words)
    assert content.count(before) == 1
    lines = [f"/* 0x{word >> 64:016x} */" for word in words]
    assert listing.count(lines[0]) == 1
    return content.replace(before, after), listing.replace(*lines)


def waiting(listing: str) -> list[int]:
    """Addresses of the instructions that wait for a scoreboard."""
    code = text.read(listing, "k", {})
    return [ins.address for ins in code if control(ins.word).waits]


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_load_that_nobody_waits_for_is_named_with_its_use(target: str) -> None:
    content, listing = assemble(ptx(ADDS, ["x"], target=target), target)
    (use,) = [
        ins.address
        for ins in text.read(listing, "k", {})
        if control(ins.word).waits and ins.base in ("IADD3", "VIADD", "IMAD", "IADD")
    ]
    x = {"x": np.zeros(1, np.uint32)}
    assert found(launched(emulator.load_cubin(content, listing), x, threads=1)) == set()
    broken = emulator.load_cubin(*without_wait(content, listing, use))
    result = launched(broken, x, threads=1)
    assert found(result) == {"missing-scoreboard-wait"}
    sentence = result.findings[0].sentence
    assert re.search(r"R\d+ is read here before \w+ at SASS line \d+, which has yet to", sentence)


def test_every_wait_of_a_straight_kernel_is_missed() -> None:
    content, listing = assemble(ptx(ADDS, ["x"], target="sm_90a"), "sm_90a")
    for address in waiting(listing):
        program = decode.decode(*without_wait(content, listing, address), "k")
        assert program.hazards, hex(address)


def test_ptxas_waits_for_all_that_unusual_kernels_use() -> None:
    content, listing = assemble(compile_cu(SOURCE, target="sm_90a"), "sm_90a")
    for name in {kernel.entry for kernel in KERNELS}:
        assert not decode.decode(content, listing, name).hazards


def test_predicates_that_are_not_saved_need_not_be_there() -> None:
    """More than there are registers for; one is yet to come from a shuffle."""
    compared = [f"setp.lt.s32 %p{i}, %r{i % 2}, {3 * i};" for i in range(10)]
    used = [
        f"@%p{i} add.u32 %r1, %r1, {i + 7}; @%p{i} xor.b32 %r1, %r1, {5 * i + 1};"
        for i in (15, *range(10))
    ]
    loop = [
        "{ .reg .u32 %n; .reg .pred %more; and.b32 %n, %r0, 3;",
        "AGAIN: add.u32 %r1, %r1, %r2; ld.global.u32 %r2, [%d5+256];",
        "sub.u32 %n, %n, 1; setp.ge.s32 %more, %n, 0; @%more bra AGAIN; }",
    ]
    loads = "mad.wide.u32 %d5, %t, 4, %x; ld.global.u32 %r0, [%d5]; ld.global.u32 %r1, [%d5+128];"
    shuffle = "shfl.sync.bfly.b32 %r2|%p15, %r0, 5, 0x1f, -1;"
    body = "\n".join([loads, shuffle, *compared, *loop, *used, "st.global.u32 [%d5], %r1;"])
    content, listing = assemble(ptx(body, ["x"], target="sm_80"), "sm_80")
    assert "P2R" in listing
    assert not decode.decode(content, listing, "k").hazards


@pytest.mark.parametrize(("writes", "hazards"), [("F2F.F16.F32 R0, R4", 0), ("MOV R0, R4", 1)])
def test_a_pipe_reads_a_register_before_it_writes_it(writes: str, hazards: int) -> None:
    """The conversion goes the way of FLO, which tells by a scoreboard when it has read R0."""
    body = """ld.global.u32 %r0, [%x]; ld.global.u32 %r1, [%x+4]; bfind.u32 %r2, %r0;
    { .reg .b16 %h; .reg .f32 %g; mov.b32 %g, %r1; cvt.rn.f16.f32 %h, %g; cvt.u32.u16 %r3, %h; }
    add.u32 %r3, %r3, %r2; st.global.u32 [%x+8], %r3;"""
    content, listing = assemble(ptx(body, ["x"], target="sm_100a"), "sm_100a")
    (flo,) = (ins for ins in text.read(listing, "k", {}) if ins.base == "FLO")
    tells = flo.word & ~(7 << 113) | 1 << 113
    content = content.replace(flo.word.to_bytes(16, "little"), tells.to_bytes(16, "little"))
    for old, new in (
        ("FLO.U32 R0, R0", "FLO.U32 R6, R0"),
        ("F2F.F16.F32 R5, R4", writes),
        (f"/* 0x{flo.word >> 64:016x} */", f"/* 0x{tells >> 64:016x} */"),
    ):
        assert old in listing
        listing = listing.replace(old, new, 1)
    assert len(decode.decode(content, listing, "k").hazards) == hazards


@pytest.mark.parametrize(
    ("writes", "hazards"), [("SHFL.BFLY PT, R0, R5, 0x1, 0x1f", 0), ("MOV R0, R5", 1)]
)
def test_a_shuffle_writes_no_register_before_a_store_ahead_of_it_has_read_it(
    writes: str, hazards: int
) -> None:
    """One unit takes both in order: ptxas has the shuffle wait for no scoreboard of the store."""
    body = """mul.wide.u32 %d0, %t, 8; add.u64 %d0, %d0, %x;
    ld.global.u32 %r0, [%d0]; ld.global.u32 %r1, [%d0+4]; mov.u32 %r3, tile;
    st.shared.u32 [%r3], %r0; shfl.sync.bfly.b32 %r2, %r1, 1, 0x1f, -1;
    st.global.u32 [%d0], %r2;"""
    shared = ".shared .align 4 .b8 tile[64];"
    content, listing = assemble(ptx(body, ["x"], target="sm_90a", shared=shared), "sm_90a")
    (sts,) = (ins for ins in text.read(listing, "k", {}) if ins.base == "STS")
    tells = sts.word & ~(7 << 113) | 1 << 113
    content = content.replace(sts.word.to_bytes(16, "little"), tells.to_bytes(16, "little"))
    for old, new in (
        ("STG.E desc[UR6][R2.64], R5", writes),
        (f"/* 0x{sts.word >> 64:016x} */", f"/* 0x{tells >> 64:016x} */"),
    ):
        assert old in listing
        listing = listing.replace(old, new, 1)
    assert len(decode.decode(content, listing, "k").hazards) == hazards


OVERWRITES = """
extern "C" __global__ void k(unsigned* x) {
  __shared__ alignas(128) unsigned tile[32];
  unsigned from = (unsigned)__cvta_generic_to_shared(tile);
  for (int turn = 0; turn < 2; ++turn) {
    tile[threadIdx.x] = 100 * turn + threadIdx.x;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;"
                   :: "l"(x + 32 * turn), "r"(from) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncwarp();
  }
}
"""
READS, ONES = 7 << 113, (1 << 64) - 1


def test_a_control_word_waits_for_bulk_stores(tmp_path: Path) -> None:
    """As cuBLAS's kernels have it: a scoreboard of the flush, and no DEPBAR."""
    (tmp_path / "k.cu").write_text(OVERWRITES)
    content, listing = assemble(compile_cu(tmp_path / "k.cu", target="sm_90a"), "sm_90a")
    results = [
        launched_on(*by_control_words(content, listing, waits=waits)) for waits in (False, True)
    ]
    expected = np.concatenate([np.arange(32), 100 + np.arange(32)]).astype(np.uint32)
    assert [np.array_equal(result, expected) for result in results] == [False, True]


def launched_on(content: bytes, listing: str) -> np.ndarray:
    arrays = {"x": np.zeros(64, np.uint32)}
    launched(emulator.load_cubin(content, listing), arrays, threads=32)
    return arrays["x"]


def by_control_words(content: bytes, listing: str, *, waits: bool) -> tuple[bytes, str]:
    """Without DEPBAR: a NOP is in its place, which waits for the scoreboard of the flush or not."""
    code = text.read(listing, "k", {})
    nop = next(ins for ins in code if ins.base == "NOP" and ins.guard is None)
    for ins in code:
        if ins.base == "UTMACMDFLUSH":
            word = ins.word & ~READS | 3 << 113
            content, listing = replaced(content, listing, ins, word, ins.text)
        elif ins.base == "DEPBAR":
            word = nop.word & ~WAITS | (1 << 3 + 116 if waits else 0)
            content, listing = replaced(content, listing, ins, word, "NOP")
    return content, listing


def replaced(
    content: bytes, listing: str, ins: MachineInstruction, word: int, spelled: str
) -> tuple[bytes, str]:
    """With another instruction in the place of one."""
    before, after = (item.to_bytes(16, "little") for item in (ins.word, word))
    lines = listing.splitlines()
    at = next(n for n, line in enumerate(lines) if f"/*{ins.address:04x}*/" in line)
    low, high = ((f"{ins.word >> n & ONES:016x}", f"{word >> n & ONES:016x}") for n in (0, 64))
    lines[at] = lines[at].replace(ins.text, spelled).replace(*low)
    lines[at + 1] = lines[at + 1].replace(*high)
    return content.replace(before, after), "\n".join(lines)


MEETS = """
extern "C" __global__ void k(unsigned* x) {
  __shared__ unsigned tile[256];
  unsigned value = threadIdx.x;
#pragma unroll 1
  for (unsigned turn = x[threadIdx.x]; turn; --turn) value = __brev(value);
  tile[threadIdx.x] = value;
  __syncthreads();
  x[threadIdx.x] = tile[threadIdx.x ^ 96];
}
"""
CONTROL = ONES << 105
INSTEAD = {"NOP": 0x7918, "WARPGROUP.WAIT": 0x8000 << 64 | 0x79C5}


@pytest.mark.parametrize("threads", [128, 256])
def test_the_warps_of_a_warpgroup_wait_for_one_another(tmp_path: Path, threads: int) -> None:
    (tmp_path / "k.cu").write_text(MEETS)
    content, listing = assemble(compile_cu(tmp_path / "k.cu", target="sm_90a"), "sm_90a")
    (barrier,) = [ins for ins in text.read(listing, "k", {}) if ins.base == "BAR"]
    right = []
    for spelled, word in INSTEAD.items():
        x = {"x": np.where(np.arange(threads) < 32, 64, 0).astype(np.uint32)}
        made = replaced(content, listing, barrier, word | barrier.word & CONTROL, spelled)
        launched(emulator.load_cubin(*made), x, threads=threads)
        right.append(np.array_equal(x["x"], np.arange(threads) ^ 96))
    assert right == [False, True]


def test_an_address_in_a_register_that_nothing_writes_is_named(tmp_path: Path) -> None:
    """As ptxas 13.0 leaves cp.async with a cache policy: [R25+UR0], desc[UR1]."""
    (tmp_path / "k.cu").write_text(MEETS)
    content, listing = assemble(compile_cu(tmp_path / "k.cu", target="sm_90a"), "sm_90a")
    assert not decode.decode(content, listing, "k").hazards
    (old,) = {*re.findall(r"STS \[R\d+\+(UR\d+)\]", listing)}
    lost = re.sub(rf"(STS \[R\d+\+){old}\]", r"\1UR60]", listing)
    ((_, name, sentence),) = decode.decode(content, lost, "k").hazards
    assert name == "unwritten-register"
    assert sentence == "STS addresses with UR60, which no instruction writes."
