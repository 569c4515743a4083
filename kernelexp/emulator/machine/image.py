"""What a kernel brings to the machine besides its instructions."""

from __future__ import annotations

import msgspec

from kernelexp.emulator.machine.registers import Slot
from kernelexp.launch import Dim3


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A variable in global, const, shared, local or param space."""

    name: str
    space: str
    type: str
    align: int
    size: int
    """Bytes; 0 for a dynamic array in shared memory."""
    data: bytes = b""
    """Initial value; shorter than `size` where the rest is zero."""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An entry's registers, variables and demands on its launch."""

    entry: str
    slots: list[Slot]
    parameters: tuple[Variable, ...] = ()
    variables: tuple[Variable, ...] = ()
    """Those of the module, then those of the entry."""
    shared_unit: int = 4
    """Bytes of the smallest shared-memory access: what the race check distinguishes."""
    cluster: Dim3 | None = None
    """The only cluster that it may be launched with."""
    block: Dim3 | None = None
    """The only CTA that it may be launched with."""
    max_threads: int | None = None
    """Threads of the largest CTA that it may be launched with."""
