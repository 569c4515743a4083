"""What is read of a cubin, and what is refused when it is loaded."""

from __future__ import annotations

import functools
import random
import re

import numpy as np
import pytest
from harness import assemble, assemble_all, found, launched, ptx, run_sass
from hypothesis import given
from hypothesis import strategies as st

from warpsim import (
    CubinError,
    Result,
    SassSyntaxError,
    Schedule,
    UnsupportedInstruction,
    load_cubin,
    run,
)
from warpsim.front.sass import text
from warpsim.front.sass.cubin import read
from warpsim.front.sass.syntax import (
    ConstantOperand,
    Described,
    LiteralOperand,
    MemoryOperand,
    Other,
    RegisterOperand,
)
from warpsim.launch import Launch, Pointer

COPY = "mad.wide.u32 %d0, %t, 4, %a; ld.global.u32 %r0, [%d0];"
STORE = "mad.wide.u32 %d0, %t, 4, %out; st.global.u32 [%d0], %r0;"
EVENT = f"{COPY} pmevent 3; {STORE}"
COPIED = f"{COPY} {STORE}"
INVERTED = f"{COPY} not.b32 %r0, %r0; {STORE}"
GUARDED = "setp.eq.u32 %p0, %t, 3; @%p0 st.global.u32 [%out], %t;"
OUTSIDE = f"{COPY} mad.wide.u32 %d0, %t, 4096, %out; st.global.u32 [%d0], %r0;"
ALONE = "setp.lt.u32 %p0, %t, 32; @%p0 bra over; bar.sync 1, 64; over: st.global.u32 [%out], %t;"
NUMBERED = f"mov.u32 %r0, %warpid; {STORE}"
QUOTIENTS = f"""{COPY} .reg .f32 %f<3>; mov.b32 %f0, %r0; mov.f32 %f1, 0f40400000;
div.rn.f32 %f2, %f0, %f1; mov.b32 %r0, %f2; shfl.sync.bfly.b32 %r1, %r0, 2, 0x1f, -1;
add.u32 %r0, %r0, %r1; shfl.sync.bfly.b32 %r1, %r0, 1, 0x1f, -1; add.u32 %r0, %r0, %r1; {STORE}"""
BODIES = (EVENT, COPIED, INVERTED, GUARDED, OUTSIDE, ALONE, NUMBERED, QUOTIENTS)


@functools.cache
def assembled() -> dict[str, tuple[bytes, str]]:
    """Cubins and listings of the bodies for sm_90a, by body."""
    texts = [ptx(body, ["a", "out"], target="sm_90a") for body in BODIES]
    return dict(zip(BODIES, assemble_all(texts, "sm_90a"), strict=True))


def execute(body: str, arrays: dict[str, np.ndarray], threads: int = 32) -> Result:
    return launched(load_cubin(*assembled()[body]), arrays, threads=threads)


def arrays(count: int = 32) -> dict[str, np.ndarray]:
    return {"a": np.arange(count, dtype=np.uint32), "out": np.zeros(count, np.uint32)}


def test_an_instruction_that_is_not_covered_is_named_with_its_address():
    with pytest.raises(UnsupportedInstruction) as refusal:
        load_cubin(*assembled()[EVENT])
    sentence = str(refusal.value)
    assert "PMTRIG" in sentence
    assert "is not covered by the emulator." in sentence
    assert sentence.startswith("SASS line ")
    assert ", 0x" in sentence


def test_what_follows_a_register_after_a_dot_is_refused_where_it_is_not_modelled():
    cubin, listing = assembled()[INVERTED]
    (line,) = [item for item in listing.splitlines() if "LOP3.LUT" in item]
    changed = re.sub(r"(R\d+), (R\w+)", r"\1, \2.H1_H1", line, count=1)
    with pytest.raises(UnsupportedInstruction, match="part of a register that is not covered"):
        load_cubin(cubin, listing.replace(line, changed))


def test_a_listing_of_another_cubin_is_refused():
    cubin, _ = assembled()[COPIED]
    _, listing = assembled()[INVERTED]
    with pytest.raises(SassSyntaxError, match="is not what the cubin has at 0x"):
        load_cubin(cubin, listing)


def test_a_guard_that_is_not_its_word_s_is_refused():
    cubin, listing = assembled()[GUARDED]
    assert "@P0 EXIT" in listing
    with pytest.raises(SassSyntaxError, match="the guard of `@!P0 EXIT` is not its word's"):
        load_cubin(cubin, listing.replace("@P0 EXIT", "@!P0 EXIT"))


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"no cubin at all"], ids=repr)
def test_a_file_that_is_no_cubin_is_one_sentence(content: bytes):
    with pytest.raises(CubinError, match=r"the file is not a cubin: .*\."):
        load_cubin(content, "")


def test_an_architecture_that_is_not_covered_is_one_sentence():
    text = ptx(COPIED, ["a", "out"], target="sm_103a")
    with pytest.raises(CubinError, match="for sm_103; the emulator executes the SASS of sm_80 to"):
        load_cubin(*assemble(text, "sm_103a"))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_static_shared_memory_is_where_programs_look_for_it(target: str):
    body = f"""{COPY} mov.u32 %r1, s; mad.lo.u32 %r2, %t, 4, %r1; st.shared.u32 [%r2], %r0;
    bar.sync 0; xor.b32 %r3, %t, 33; mad.lo.u32 %r2, %r3, 4, %r1; ld.shared.u32 %r0, [%r2];
    {STORE}"""
    text_ = ptx(body, ["a", "out"], target=target, shared=".shared .align 16 .b8 s[256];")
    both = arrays(64)
    result = run_sass(text_, target, both, threads=64)
    assert not result.findings
    assert (both["out"] == both["a"] ^ 33).all()
    assert result.counters.kernel["memory_l1_wavefronts_shared"] == 4
    assert result.counters.kernel["smsp__inst_executed"] > 20


def test_a_store_outside_of_every_array_is_a_finding():
    result = execute(OUTSIDE, arrays())
    assert found(result) == {"out-of-bounds"}


def test_lanes_that_wait_for_one_that_never_comes_hang():
    result = execute(ALONE, arrays(), threads=64)
    assert found(result) == {"hang"}
    assert "barrier 1: 32 of 64 threads arrived" in result.hang[0].waits_for


def test_a_warp_reads_its_number():
    both = arrays(96)
    assert "SR_VIRTID" in assembled()[NUMBERED][1]
    assert not execute(NUMBERED, both, threads=96).findings
    assert (both["out"] == np.arange(96) // 32).all()


def test_lanes_that_have_met_at_a_barrier_go_on_together_under_every_schedule():
    cubin, listing = assembled()[QUOTIENTS]
    assert "BSYNC" in listing
    module = load_cubin(cubin, listing)
    launch = Launch(
        entry="k",
        grid=(1, 1, 1),
        block=(64, 1, 1),
        arguments=(Pointer(array="a"), Pointer(array="out")),
    )
    # Every other lane takes the slow way of a division, in which the warp parts. If the two halves
    # went on alone, one would read the other's sums in the last shuffle before they are made.
    x = np.where(np.arange(64) % 2, np.float32(1e-41), np.float32(6)).astype(np.float32)
    quotients = (x / np.float32(3)).view(np.uint32)
    pairs = quotients + quotients[np.arange(64) ^ 2]
    want = pairs + pairs[np.arange(64) ^ 1]
    for seed in range(24):
        both = {"a": x.view(np.uint32).copy(), "out": np.zeros(64, np.uint32)}
        result = run(module, launch, both, schedule=Schedule(seed=seed))
        assert not result.findings
        assert (both["out"] == want).all()


INDICES = st.integers(0, 254)


@given(INDICES, st.sampled_from(["", "-", "~"]), st.sampled_from(["", ".reuse", ".H0_H0", ".64"]))
def test_a_register_is_read_with_its_sign_and_its_part(index: int, sign: str, part: str):
    read = text.operand(f"{sign}R{index}{part}", 0)
    assert read == RegisterOperand(
        file="R",
        index=index,
        negated=sign == "-",
        inverted=sign == "~",
        part="" if part == ".reuse" else part[1:],
    )


@given(st.integers(0, (1 << 32) - 1))
def test_the_bits_of_a_floating_point_literal_are_the_word_s(bits: int):
    assert text.operand("-QNAN", bits << 32) == LiteralOperand(bits, floating=True)
    assert text.operand("1.1754943508222875e-38", bits << 32) == LiteralOperand(bits, floating=True)


@pytest.mark.parametrize(
    ("spelled", "read"),
    [
        ("0x10", LiteralOperand(16)),
        ("-0x1", LiteralOperand(0xFFFFFFFF)),
        ("|R7|.reuse", RegisterOperand(file="R", index=7, absolute=True)),
        ("!PT", RegisterOperand(file="P", index=-1, negated=True)),
        ("URZ", RegisterOperand(file="UR", index=-1)),
        ("c[0x0][0x210]", ConstantOperand(bank=0, offset=0x210)),
        (
            "-c[0x3][R4+0x8]",
            ConstantOperand(
                bank=3, offset=8, register=RegisterOperand(file="R", index=4), negated=True
            ),
        ),
        (
            "[R2+UR4+-0x70]",
            MemoryOperand(
                base=RegisterOperand(file="R", index=2),
                uniform=RegisterOperand(file="UR", index=4),
                offset=-0x70,
            ),
        ),
        (
            "desc[UR4][R2.64+0x8]",
            MemoryOperand(
                base=RegisterOperand(file="R", index=2, part="64"),
                offset=8,
                descriptor=RegisterOperand(file="UR", index=4),
            ),
        ),
        (
            "gdesc[UR8].tnspB",
            Described(kind="gdesc", register=RegisterOperand(file="UR", index=8), parts=("tnspB",)),
        ),
        (
            "tmem[UR9+0x20]",
            Described(kind="tmem", register=RegisterOperand(file="UR", index=9), offset=32),
        ),
        ("gsb0", Other("gsb0")),
    ],
)  # fmt: skip
def test_operands_are_read_as_they_are_spelled(spelled: str, read: object):
    assert text.operand(spelled, 0) == read


CONSTANT = """
mul.wide.u32 %d0, %t, 4; mov.u64 %d1, table; add.u64 %d1, %d1, %d0; ld.const.u32 %r0, [%d1];
add.u64 %d2, %out, %d0; st.global.u32 [%d2], %r0;
"""


def test_an_array_with_the_name_of_a_constant_is_that_constant() -> None:
    text = ptx(CONSTANT, ["out"], extra=".const .align 4 .b8 table[128];", target="sm_90a")
    launch = Launch(entry="k", grid=(1, 1, 1), block=(32, 1, 1), arguments=(Pointer(array="out"),))
    arrays = {"table": np.arange(32, dtype=np.uint32) + 5, "out": np.zeros(32, np.uint32)}
    run(load_cubin(*assemble(text, "sm_90a")), launch, arrays)
    assert (arrays["out"] == np.arange(32) + 5).all()


def test_a_damaged_cubin_is_refused_in_a_sentence_or_read() -> None:
    content, _ = assembled()[COPIED]
    rng = random.Random(7010)
    refused = 0
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(rng.randint(1, 8)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            read(bytes(damaged), "k")
        except CubinError:
            refused += 1
    assert refused > 10


ARRAYS = """
.shared .align 8 .b8 first[24];
.shared .align 1 .b8 flags[3];
.shared .align 128 .b8 tile[512];
.shared .u32 count;
"""
READ = """
mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 4, %r1; st.shared.u32 [%r1+256], %t;
mov.u32 %r2, first; st.shared.u32 [%r2], %t;
mov.u32 %r2, flags; st.shared.u8 [%r2], %t;
mov.u32 %r2, count; st.shared.u32 [%r2], %t;
bar.sync 0;
ld.shared.u32 %r0, [%r1+64];
"""


def unwritten(*options: str) -> str:
    text = ptx(f"{READ} {STORE}", ["a", "out"], target="sm_90a", shared=ARRAYS)
    module = load_cubin(*assemble(text, "sm_90a", *options))
    pointers = tuple(Pointer(array=name) for name in arrays())
    launch = Launch(entry="k", grid=(1, 1, 1), block=(32, 1, 1), arguments=pointers)
    (finding,) = run(module, launch, arrays()).findings
    return finding.sentence


def test_arrays_in_shared_memory_have_their_names_where_there_is_line_information():
    read = "from shared address 0x4c0, byte 64 of tile, which was never written"
    assert read in unwritten("-lineinfo")


def test_without_it_shared_memory_is_one_array():
    assert "byte 192 of shared, which" in unwritten()
