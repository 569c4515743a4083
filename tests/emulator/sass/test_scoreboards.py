"""Registers that SASS uses before the instruction that fills them is through."""

from __future__ import annotations

import re

import numpy as np
import pytest
from harness import assemble, compile_cu, found, launched, ptx
from test_unusual_kernels import KERNELS, SOURCE

import warpsim as emulator
from warpsim.front.sass import decode, text
from warpsim.front.sass.scoreboards import control

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
