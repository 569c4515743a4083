"""Which of this process's builds compiles now, and which are disassembled together.

As many compile as there are cores. One whose cubin is done waits until others are, so that one
process disassembles them all: combined.py says what that saves. Nobody waits while a core idles.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kernelexp.evidence.build import combined, listings, steps, store
from kernelexp.evidence.build.combined import CubinFunction
from kernelexp.evidence.build.planning import Plan

TOGETHER = 12
"""Cubins that are waited for: more save little, and an interrupt loses the builds that wait."""
CORES = len(os.sched_getaffinity(0))
THREADS = CORES + 2 * TOGETHER
"""Builds in progress that keep all cores busy while some wait and others are disassembled."""


class _Waiting:
    """A build whose cubin is done."""

    def __init__(self, plan: Plan, folder: Path, code: CubinFunction) -> None:
        self.plan, self.folder, self.code = plan, folder, code
        self.is_done = False
        self.sass: str | None = None
        """None once it is done: it has to be disassembled alone."""

    def goes_with(self, other: _Waiting) -> bool:
        return (self.code.target, self.plan.tools) == (other.code.target, other.plan.tools)


class _Turns(msgspec.Struct):
    """The builds of this process; read and changed by who holds `_changed`."""

    busy: int = 0
    """Builds that are on a core, or are to be as soon as there is one."""
    waiting: list[_Waiting] = []


_turns = _Turns()
_changed = threading.Condition()
_cores = threading.Semaphore(CORES)


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """A build until its files are there, but for while it waits for others in disassemble()."""
    with _changed:
        _turns.busy += 1
    try:
        yield
    finally:
        with _changed:
            _turns.busy -= 1
            _changed.notify_all()


def core() -> contextlib.AbstractContextManager[bool]:
    """A build's turn to run a compiler."""
    return _cores


def disassemble(plan: Plan, folder: Path) -> str:
    """Resource usage and SASS of the cubin in `folder`, as steps.disassemble() prints them.

    For a build that is busy().
    """
    if plan.tools.confined_to:
        with core():
            return steps.disassemble(plan, folder)
    cubin = (folder / store.CUBIN).read_bytes()
    if (printed := listings.find(plan, cubin)) is None:
        printed = _printed(plan, folder, cubin)
        listings.keep(plan, cubin, printed)
    elif plan.variant.form == "cubin":
        steps.require_arch(plan, printed)
    return printed


def _printed(plan: Plan, folder: Path, cubin: bytes) -> str:
    code = None if plan.variant.form == "cubin" else combined.read(cubin)
    if code is not None:
        mine = _Waiting(plan, folder, code)
        _wait(mine)
        if mine.sass is not None:
            return steps.print_usage(plan, folder) + mine.sass
    with core():
        return steps.disassemble(plan, folder)


def _wait(mine: _Waiting) -> None:
    """Waits until it was disassembled, by this thread or by another."""
    with _changed:  # in one step, lest others think that nobody comes any more
        _turns.waiting.append(mine)
        _turns.busy -= 1
        _changed.notify_all()
    try:
        while some := _next_with(mine):
            _disassemble(some)
    finally:
        with _changed:
            _turns.busy += 1
            _turns.waiting = [waiting for waiting in _turns.waiting if waiting is not mine]


def _next_with(mine: _Waiting) -> list[_Waiting]:
    """Those that this thread is to disassemble now, which count as busy; none once `mine` is done.

    Waits for either.
    """
    with _changed:
        while not mine.is_done:
            some = [waiting for waiting in _turns.waiting if waiting.goes_with(mine)][:TOGETHER]
            if mine in some and (len(some) == TOGETHER or _turns.busy < CORES):
                _turns.waiting = [waiting for waiting in _turns.waiting if waiting not in some]
                _turns.busy += 1
                return some
            _changed.wait()
    return []


def _disassemble(some: list[_Waiting]) -> None:
    """Whatever goes wrong, each finds it out alone."""
    first, codes = some[0], [waiting.code for waiting in some]
    result: list[str] | None = None
    try:
        with core():
            if len(some) > 1:
                result = steps.disassemble_together(first.plan, first.folder, codes)
    finally:
        with _changed:
            for number, waiting in enumerate(some):
                waiting.sass = result[number] if result else None
                waiting.is_done = True
            _turns.busy -= 1
            _changed.notify_all()
