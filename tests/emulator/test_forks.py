"""Schedules in forks of a process: the same as one after the other."""

from __future__ import annotations

import os
import signal

import msgspec
import numpy as np
import pytest
from harness import ptx

import warpsim as emulator
from warpsim import forks
from warpsim.launch import Launch, Pointer

RACE = """
mul.wide.u32 %d0, %t, 0; shr.u32 %r0, %t, 5; st.global.b32 [%out], %r0;
"""


def test_schedules_in_several_processes_show_what_they_show_in_one():
    module = emulator.load(ptx(RACE, ["out"]))
    launch = Launch(entry="k", grid=(2, 1, 1), block=(256, 1, 1), arguments=(Pointer(array="out"),))
    shown, left = [], []
    for processes in (1, 2, 3):
        out = np.zeros(1, np.uint32)
        compared = emulator.compare(module, [launch, launch], {"out": out}, processes=processes)
        sites = [i.instruction for r in compared.results for i in r.counters.instructions]
        assert len(set(map(id, sites))) == len(compared.results[0].counters.instructions)
        results = [msgspec.structs.replace(result, seconds=0.0) for result in compared.results]
        shown.append((results, compared.findings, compared.differing))
        left.append(out.copy())
    assert shown[0][1]
    assert shown[0] == shown[1] == shown[2]
    assert left[0] == left[1] == left[2]


def test_what_a_killed_fork_was_to_do_is_done_here():
    here = os.getpid()

    def work(item: int) -> int:
        if item == 1 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return item * item

    assert forks.each(work, range(5), 3, ()) == [0, 1, 4, 9, 16]


def test_what_a_fork_raises_is_raised_here():
    def work(item: int) -> int:
        return 1 // (2 - item)

    with pytest.raises(ZeroDivisionError):
        forks.each(work, range(4), 2, ())
    with pytest.raises(ZeroDivisionError):
        forks.each(work, range(3), 3, ())
