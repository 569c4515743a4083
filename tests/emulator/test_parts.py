"""A launch whose waves are executed by several processes: as by one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from harness import LATE, ptx

import warpsim as emulator
from warpsim import execute, parts
from warpsim.execute import Result
from warpsim.launch import Launch, Pointer, StructValue
from warpsim.machine.core.site import UnsupportedInstruction
from warpsim.machine.memory.arena import UNWRITTEN, WRITTEN
from warpsim.machine.memory.layout import GLOBAL_BASE
from warpsim.runtime.device import DeviceMemory, Object, World
from warpsim.schedule import Schedule

CTAS = 1024
"""Four waves of 256 warps."""
INDEX = """
.reg .b64 %at, %to; .reg .b32 %c, %i;
mov.u32 %c, %ctaid.x; shl.b32 %i, %c, 5; add.u32 %i, %i, %t;
mul.wide.u32 %d0, %i, 4; add.u64 %at, %x, %d0; add.u64 %to, %out, %d0;
"""
PLAIN = f"{INDEX} ld.global.b32 %r0, [%at]; add.u32 %r0, %r0, %c; st.global.b32 [%to], %r0;"
LAST = "setp.eq.u32 %p0, %c, 1023;"
FAULTS = {
    "a read of what another part writes": f"{PLAIN} {LAST} @%p0 ld.global.b32 %r1, [%out];",
    "a write of what another part has read": f"{PLAIN} {LAST} @%p0 st.global.b32 [%x], %r0;",
    "a write of what another part writes": f"{PLAIN} {LAST} @%p0 st.global.b32 [%out], %r0;",
    "a read of what nobody wrote": f"{INDEX} {LAST} @%p0 ld.global.b32 %r1, [%out]; "
    "@%p0 st.global.b32 [%to], %r1;",
    "an access out of bounds": f"{PLAIN} {LAST} @%p0 ld.global.b32 %r1, [%x+524288];",
    "a barrier that not all come to": f"{PLAIN} {LAST} @%p0 bar.sync 1, 64;",
}


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Launches are split at their second wave; whether what forks did was taken over."""
    results: list[bool] = []
    take = parts.take

    def noted(*arguments: Any) -> bool:
        results.append(take(*arguments))
        return results[-1]

    monkeypatch.setattr(parts, "PATIENCE_S", 0.0)
    monkeypatch.setattr(parts, "take", noted)
    return results


def executed(body: str, processes: int, schedule: Schedule = LATE) -> tuple[Any, ...]:
    """The result, and the arrays."""
    module = emulator.load(ptx(body, ["x", "out"]))
    launch = Launch(
        entry="k",
        grid=(CTAS, 1, 1),
        block=(32, 1, 1),
        arguments=(Pointer(array="x"), Pointer(array="out")),
    )
    x = np.arange(32 * CTAS, dtype=np.uint32)
    arrays = {"x": x, "out": np.zeros(32 * CTAS, np.uint32)}
    result = emulator.run(
        module, launch, arrays, unwritten=["out"], schedule=schedule, processes=processes
    )
    shown = msgspec.json.encode(msgspec.structs.replace(result, seconds=0.0))
    return shown, *(array.tobytes() for array in arrays.values())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_waves_in_several_processes_leave_what_one_process_leaves(
    seed: int, taken: list[bool]
) -> None:
    schedule = Schedule(seed=seed)
    one, *others = (executed(PLAIN, processes, schedule) for processes in (1, 2, 3))
    assert all(other == one for other in others)
    assert taken == [True, True]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_one_part_is_found_as_in_one_process(fault: str, taken: list[bool]) -> None:
    one, two = (executed(FAULTS[fault], processes) for processes in (1, 2))
    assert two == one
    assert msgspec.json.decode(one[0])["findings"]
    assert taken == [False]


def test_what_a_killed_process_was_to_do_is_done_here(
    taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = executed(PLAIN, 1)
    _kill_forks(monkeypatch)
    assert executed(PLAIN, 2) == one
    assert taken == [False]


def _kill_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = parts.begin

    def killed(*arguments: Any) -> None:
        begin(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(parts, "begin", killed)


@pytest.mark.parametrize(
    "meeting",
    [
        "atom.global.add.u32 %r1, [%to], 1;",
        "ld.volatile.global.u32 %r1, [%at];",
        "membar.gl;",
    ],
)
def test_ctas_that_may_meet_are_not_taken_apart(meeting: str, taken: list[bool]) -> None:
    assert executed(f"{PLAIN} {meeting}", 2) == executed(f"{PLAIN} {meeting}", 1)
    assert taken == []


def test_a_clock_shows_what_it_shows_in_one_process(taken: list[bool]) -> None:
    body = f"{INDEX} mov.u32 %r0, %clock; st.global.b32 [%to], %r0;"
    assert executed(body, 2) == executed(body, 1)
    assert taken == [False]


@pytest.fixture
def world() -> Iterator[World]:
    """The memory of a program, with an array of `x` and one of `out`."""
    size = 1 << 24
    files = [os.memfd_create(name) for name in ("data", "state")]
    for file in files:
        os.ftruncate(file, size)
    device = DeviceMemory(*files)
    for number, name in enumerate(("x", "out"), 1):
        device.add(Object(GLOBAL_BASE + (number << 20), 128 * CTAS, name))
    x = np.arange(32 * CTAS, dtype=np.uint32).tobytes()
    device.write(GLOBAL_BASE + (1 << 20), x, 128 * CTAS, WRITTEN)
    device.write(GLOBAL_BASE + (2 << 20), b"", 128 * CTAS, UNWRITTEN)
    yield World(device, ())
    for file in files:
        os.close(file)


def on_device(world: World, body: str, *, processes: int, judged: bool) -> tuple[Result, bytes]:
    """The result, and what is in `out`."""
    module = emulator.load(ptx(body, ["x", "out"]))
    addresses = [GLOBAL_BASE + (number << 20) for number in (1, 2)]
    launch = Launch(
        entry="k",
        grid=(CTAS, 1, 1),
        block=(32, 1, 1),
        arguments=tuple(
            StructValue(size=8, data=address.to_bytes(8, "little")) for address in addresses
        ),
    )
    program = execute.entry_of(module, launch)
    result = execute.run_on(program, launch, world, judged=judged, processes=processes)
    left = world.device.read(Object(addresses[1], 128 * CTAS, "out"))
    return msgspec.structs.replace(result, seconds=0.0), left


@pytest.mark.parametrize("judged", [True, False])
def test_parts_of_a_program_s_launch_leave_what_one_process_leaves(
    world: World, judged: bool, taken: list[bool]
) -> None:
    expected = 2 * np.arange(32 * CTAS) // 2 + np.arange(32 * CTAS) // 32
    shown = []
    for processes in (1, 3):
        world.device.write(GLOBAL_BASE + (2 << 20), b"", 128 * CTAS, UNWRITTEN)
        result, left = on_device(world, PLAIN, processes=processes, judged=judged)
        assert (np.frombuffer(left, np.uint32) == expected).all()
        shown.append(msgspec.json.encode(result))
    assert shown[0] == shown[1]
    assert taken == [True]


def test_a_part_that_is_dropped_has_written_nothing_a_program_sees(
    world: World, taken: list[bool]
) -> None:
    body = f"{PLAIN} {LAST} @%p0 st.global.b32 [%out], %r0;"
    two, left = on_device(world, body, processes=2, judged=True)
    world.device.write(GLOBAL_BASE + (2 << 20), b"", 128 * CTAS, UNWRITTEN)
    one, expected = on_device(world, body, processes=1, judged=True)
    assert msgspec.json.encode(two) == msgspec.json.encode(one)
    assert left == expected
    assert taken == [False]


@pytest.mark.parametrize("fault", ["an access out of bounds", "a barrier that not all come to"])
def test_a_launch_that_is_not_judged_ends_with_a_part_of_it(
    world: World, fault: str, taken: list[bool]
) -> None:
    one, two = (
        on_device(world, FAULTS[fault], processes=processes, judged=False)[0]
        for processes in (1, 2)
    )
    assert [finding.name for finding in one.findings] == [finding.name for finding in two.findings]
    assert (two.finished, two.given_up) == (one.finished, one.given_up)
    assert not two.finished
    assert taken == [True]


def test_where_no_more_processes_are_allowed_one_does_it_all(
    taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    one = executed(PLAIN, 1)
    monkeypatch.setattr(os, "fork", refused)
    assert executed(PLAIN, 3) == one
    assert taken == []


def test_a_launch_that_is_not_judged_says_where_a_process_was_killed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kill_forks(monkeypatch)
    with pytest.raises(UnsupportedInstruction, match="has ended early"):
        on_device(world, PLAIN, processes=2, judged=False)
