"""CTAs that are not resident at the same time: nothing but flags orders them."""

from __future__ import annotations

import numpy as np
import pytest
from harness import found, ptx, run

import warpsim as emulator
from warpsim.launch import Launch, Pointer
from warpsim.machine.memory.execution import MAX_RESIDENT_WARPS, Execution
from warpsim.modules import entry_of
from warpsim.schedule import Schedule

THREADS = 1024
WAVE = MAX_RESIDENT_WARPS * 32 // THREADS
CTAS = WAVE + 4
# %d1: a word for each CTA of the first wave, which those of the second one use again.
WORD = f"""
setp.ne.u32 %p0, %t, 0; @%p0 bra END;
mov.u32 %r0, %ctaid.x; rem.u32 %r1, %r0, {WAVE};
mul.wide.u32 %d0, %r1, 4; add.u64 %d1, %data, %d0;
setp.lt.u32 %p1, %r0, {WAVE};
"""
READ = """
@%p1 st.global.b32 [%d1], %r0; @%p1 bra END;
ld.global.b32 %r2, [%d1]; mul.wide.u32 %d0, %r0, 4; add.u64 %d2, %out, %d0;
st.global.b32 [%d2], %r2;
"""
# The CTA that comes last adds up what all of them have stored.
LAST = f"""
setp.ne.u32 %p0, %t, 0; @%p0 bra END;
mov.u32 %r0, %ctaid.x; mul.wide.u32 %d0, %r0, 4; add.u64 %d1, %data, %d0;
st.global.b32 [%d1], %r0;
FENCE
atom.global.add.u32 %r3, [%flag], 1;
setp.ne.u32 %p0, %r3, {CTAS - 1}; @%p0 bra END;
membar.gl;
mov.u32 %r4, 0; mov.u32 %r5, 0;
ADD: mul.wide.u32 %d0, %r4, 4; add.u64 %d1, %data, %d0;
ld.global.b32 %r2, [%d1]; add.u32 %r5, %r5, %r2;
add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, {CTAS}; @%p0 bra ADD;
st.global.b32 [%out], %r5;
"""


def resident(ctas: int, *, judged: bool) -> int:
    """How many of so many CTAs of a warp are resident at once."""
    module = emulator.load(ptx("st.global.b32 [%data], %r0;", ["data"]))
    launch = Launch(
        entry="k", grid=(ctas, 1, 1), block=(32, 1, 1), arguments=(Pointer(array="data"),)
    )
    program = entry_of(module, launch)
    memory = {"data": np.zeros(1, np.uint32)}
    return Execution(program.image, launch, memory, frozenset(), Schedule(), judged=judged).resident


def arrays() -> dict[str, np.ndarray]:
    return {name: np.zeros(CTAS, np.uint32) for name in ("data", "flag", "out")}


def waves(body: str, given: dict[str, np.ndarray] | None = None) -> emulator.Result:
    given = given or arrays()
    return run(ptx(body + "\nEND:", list(given)), given, threads=THREADS, grid=CTAS)


@pytest.mark.parametrize("use", ["st.global.b32 [%d1], %r0;", READ], ids=["overwritten", "read"])
def test_a_word_that_a_cta_of_an_earlier_wave_wrote_is_a_race(use: str) -> None:
    result = waves(WORD + use)
    assert found(result) == {"race"}
    assert "a CTA of an earlier wave wrote it" in result.findings[0].sentence


@pytest.mark.parametrize("use", ["st.global.b32 [%d1], %r0;", READ], ids=["overwritten", "read"])
def test_a_wave_that_does_nothing_is_no_order_between_two_others(use: str) -> None:
    idle = f"setp.ge.u32 %p0, %r0, {WAVE}; setp.lt.and.u32 %p0, %r0, {2 * WAVE}, %p0; @%p0 bra END;"
    given = {name: np.zeros(3 * WAVE, np.uint32) for name in ("data", "flag", "out")}
    text = ptx(WORD + idle + use + "\nEND:", list(given))
    result = run(text, given, threads=THREADS, grid=2 * WAVE + 4)
    assert found(result) == {"race"}
    assert "a CTA of an earlier wave wrote it" in result.findings[0].sentence


@pytest.mark.parametrize("where", ["%data", "%out"], ids=["overwritten", "elsewhere"])
def test_a_word_that_a_cta_of_an_earlier_wave_read_may_not_change(where: str) -> None:
    given = arrays()
    result = waves(
        f"""{WORD} add.u64 %d2, {where}, %d0;
    @%p1 ld.global.b32 %r2, [%d1]; @%p1 bra END;
    st.global.b32 [%d2], %r0;""",
        given,
    )
    races = [finding.sentence for finding in result.findings]
    if where == "%out":
        assert races == []
    else:
        (sentence,) = races
        assert "data[0] (4-byte elements) is written here by thread (0, 0, 0)" in sentence
        assert "a CTA of an earlier wave read it at PTX line" in sentence


def test_who_counts_the_readers_may_overwrite_what_they_read() -> None:
    given = arrays()
    body = LAST.replace("st.global.b32 [%d1], %r0;", "ld.global.b32 %r2, [%d1];")
    body = body.replace(
        "ld.global.b32 %r2, [%d1]; add.u32 %r5", "st.global.b32 [%d1], %r4; add.u32 %r5"
    )
    assert found(waves(body.replace("FENCE", "membar.gl;"), given)) == set()
    assert given["data"].tolist() == list(range(CTAS))


def test_storing_the_value_of_an_earlier_wave_is_no_race() -> None:
    assert found(waves(WORD + "st.global.b32 [%d1], 7;")) == set()


def test_the_last_of_all_ctas_reads_what_fences_and_a_counter_announce() -> None:
    given = arrays()
    assert found(waves(LAST.replace("FENCE", "membar.gl;"), given)) == set()
    assert given["out"][0] == sum(range(CTAS))


def test_a_counter_without_a_fence_announces_nothing() -> None:
    assert found(waves(LAST.replace("FENCE", ""))) == {"race"}


def test_the_next_launch_comes_after_all_waves_of_this_one() -> None:
    given = arrays()
    module = emulator.load(ptx(WORD + READ.split(";")[0] + ";\nEND:", list(given)))
    pointers = tuple(Pointer(array=name) for name in given)
    launch = Launch(entry="k", grid=(CTAS, 1, 1), block=(THREADS, 1, 1), arguments=pointers)
    results = emulator.run_each(module, [launch, launch], given)
    assert [result.findings for result in results] == [(), ()]


def test_a_launch_that_nobody_judges_has_larger_waves() -> None:
    assert resident(10_000, judged=False) > 2 * resident(10_000, judged=True)


def test_a_short_launch_that_nobody_judges_has_waves_for_several_processes() -> None:
    assert resident(1_000, judged=False) < 1_000 / 2
