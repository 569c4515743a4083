"""What became of a program: its launches, and what it did wrong."""

from __future__ import annotations

import msgspec

from warpsim.machine.core.findings import Finding
from warpsim.runtime.capturing import CapturedLaunch

MISTAKES: dict[str, str] = {
    "use-after-free": "device memory that was freed, used",
    "double-free": "an allocation freed twice",
    "wrong-free": "a free of what is no allocation, or of one of another kind",
    "copy-out-of-bounds": "a copy or a fill beyond an allocation",
    "wrong-direction": "a copy whose kind does not say where its memory is",
    "uninitialised-copy": "a copy, or a library's call, that reads device memory nobody wrote",
    "unsorted-indices": "a sparse matrix out of order, for a call that takes a sorted one",
    "stream-race": "work of two streams on the same bytes, which nothing orders",
    "host-race": "pinned or managed memory that the host touches while work may use it",
    "host-access": "memory of the device that the host touches",
    "unseen-error": "a launch that failed, and a program that never asks",
}
"""Of the program's calls."""
REMARKS: dict[str, str] = {
    "partly-uninitialised-copy": "a copy to the host of memory that is written in part",
    "refused-launch": "a launch that the driver refuses",
    "host-library": "a call of a library that the CPU computes",
    "never-synchronised": "work that the program does not wait for",
    "no-time": "the time between two events, which nothing measured",
    "leak": "device memory that is not freed",
}
"""Of the program's calls: what need not be wrong."""


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """One of MISTAKES or REMARKS, at a call of the program's."""

    name: str
    sentence: str
    frames: tuple[int, ...] = ()
    """Return addresses, innermost first."""
    count: int = 1


class Caught(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake of a kernel, in the launch that showed it first."""

    finding: Finding
    kernel: str
    launch: int
    """From 1."""
    stream: int
    """0: the default one."""
    frames: tuple[int, ...]
    launches: int = 1
    """That showed it."""
    formal: bool = False
    """Whether it is a warning."""


class KernelTotals(msgspec.Struct, frozen=True, kw_only=True):
    """All launches of a kernel."""

    kernel: str
    launches: int
    judged: int
    """How many were executed with all checks."""
    thread_instructions: int
    seconds: float


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """What the emulator can't execute: the program was stopped there."""

    sentence: str
    launch: int = 0
    frames: tuple[int, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Of one process."""

    pid: int
    program: str
    maps: str
    """Its /proc/self/maps, by which return addresses are found in files."""
    kernels: tuple[KernelTotals, ...] = ()
    caught: tuple[Caught, ...] = ()
    remarks: tuple[Remark, ...] = ()
    sites: dict[int, tuple[int, ...]] = {}
    """Where allocations were made, by their number: `@3` in a sentence is allocation 3."""
    freed: dict[int, tuple[int, ...]] = {}
    """Where they were freed: `@3-` in a sentence."""
    sizes: dict[int, int] = {}
    """Bytes of them."""
    refused: Refusal | None = None
    captured: CapturedLaunch | None = None
    unexecuted: tuple[CapturedLaunch, ...] = ()
    """Launches that were kept in place of executing any."""
    ended: bool = False
    """Whether it came to its end: exit() or a return from main()."""
