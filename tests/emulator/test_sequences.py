"""Launches in sequence: each sees the memory that the one before it left."""

from __future__ import annotations

import numpy as np
import pytest
from harness import found

import warpsim as emulator
from warpsim.launch import Launch, Pointer

# One thread each: `put` stores 5 to out[0] and counts in a variable of the module, `add` adds what
# it finds in out[CTA], and the variable, to sum[CTA].
MODULE = """
.version 9.0
.target sm_90a
.address_size 64
.global .align 4 .u32 launches;
.visible .entry put(.param .u64 put_out)
{
.reg .b64 %d<4>; .reg .b32 %r<4>;
ld.param.u64 %d0, [put_out];
st.global.b32 [%d0], 5;
mov.u64 %d1, launches;
atom.global.add.u32 %r0, [%d1], 1;
ret;
}
.visible .entry add(.param .u64 add_out, .param .u64 add_sum)
{
.reg .b64 %d<6>; .reg .b32 %r<6>;
ld.param.u64 %d0, [add_out];
ld.param.u64 %d1, [add_sum];
mov.u32 %r0, %ctaid.x;
mul.wide.u32 %d2, %r0, 4;
add.u64 %d3, %d0, %d2;
ld.global.u32 %r1, [%d3];
mov.u64 %d4, launches;
ld.global.u32 %r2, [%d4];
add.u32 %r3, %r1, %r2;
add.u64 %d5, %d1, %d2;
ld.global.u32 %r4, [%d5];
add.u32 %r5, %r3, %r4;
st.global.u32 [%d5], %r5;
ret;
}
.visible .entry stop() { trap; }
"""
PUT = Launch(entry="put", grid=(1, 1, 1), block=(1, 1, 1), arguments=(Pointer(array="out"),))
ADD = Launch(
    entry="add",
    grid=(1, 1, 1),
    block=(1, 1, 1),
    arguments=(Pointer(array="out"), Pointer(array="sum")),
)
ADD_TWO = Launch(entry="add", grid=(2, 1, 1), block=(1, 1, 1), arguments=ADD.arguments)
STOP = Launch(entry="stop", grid=(1, 1, 1), block=(1, 1, 1))
GLOBAL_LOADS = "ptx__sass__inst_executed_global_loads"


@pytest.fixture(scope="module")
def module() -> emulator.Module:
    return emulator.load(MODULE)


def arrays() -> dict[str, np.ndarray]:
    return {"out": np.zeros(2, np.uint32), "sum": np.zeros(2, np.uint32)}


def test_arrays_and_variables_are_as_the_launch_before_left_them(module: emulator.Module) -> None:
    given = arrays()
    results = emulator.run_each(module, [PUT, ADD, PUT, ADD], given, unwritten=["out"])
    assert [found(result) for result in results] == [set()] * 4
    assert given["sum"].tolist() == [(5 + 1) + (5 + 2), 0]


def test_what_no_launch_wrote_is_not_to_be_read(module: emulator.Module) -> None:
    results = emulator.run_each(module, [PUT, ADD_TWO], arrays(), unwritten=["out"])
    assert [found(result) for result in results] == [set(), {"uninitialised-read"}]


def test_nothing_is_launched_after_a_launch_that_does_not_finish(module: emulator.Module) -> None:
    given = arrays()
    results = emulator.run_each(module, [PUT, STOP, ADD], given)
    assert [found(result) for result in results] == [set(), {"trap"}]
    assert given["sum"].tolist() == [0, 0]


def test_counters_of_a_job_are_the_sums_of_its_launches(module: emulator.Module) -> None:
    compared = emulator.compare(module, [PUT, ADD, ADD_TWO], arrays())
    loads = [launch.counters.kernel[GLOBAL_LOADS] for launch in compared.launches]
    assert loads == [0, 3, 6]
    for whole in compared.results:
        assert whole.counters.kernel[GLOBAL_LOADS] == 9
        assert whole.thread_instructions == sum(x.thread_instructions for x in compared.launches)
    instructions = compared.results[0].counters.instructions
    store = [
        instruction
        for instruction in instructions
        if instruction.instruction.opcode == "st.global.u32"
    ]
    assert [(item.executed, item.tally.sectors) for item in store] == [(3, 3)]


def test_each_schedule_begins_with_the_memory_that_was_given(module: emulator.Module) -> None:
    given = arrays()
    compared = emulator.compare(module, [PUT, ADD], given)
    assert (compared.findings, compared.differing) == ((), ())
    assert given["sum"].tolist() == [6, 0]
