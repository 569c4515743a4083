"""What a kernel brings to the machine besides its instructions."""

from __future__ import annotations

import functools

import msgspec

from warpsim.launch import Dim3
from warpsim.machine.core.registers import Slot, SlotTable, SpecialRegister


class Pointed(msgspec.Struct, frozen=True):
    """The address of a variable or a function, plus `addend`, at `offset` of an initial value."""

    offset: int
    name: str
    addend: int = 0


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
    addresses: tuple[Pointed, ...] = ()
    """Where the initial value is an address."""


class Bank(msgspec.Struct, frozen=True, kw_only=True):
    """A constant bank, as far as a kernel may read it."""

    size: int
    """Bytes."""
    data: bytes = b""
    """What it begins with, whatever the launch."""
    addresses: tuple[Pointed, ...] = ()
    fields: dict[int, str] = {}
    """What the launch puts there, by offset: names as in constants.py, or of parameters."""
    variables: dict[str, tuple[int, int]] = {}
    """Offset and bytes of variables, whose contents a launch may bring."""
    absent: frozenset[int] = frozenset()
    """Offsets of words of `data` for which there is no value, such as addresses of functions."""

    def has(self, offset: int, size: int) -> bool:
        """Whether it is known what these bytes hold."""
        if any(at in self.absent for at in range(offset, offset + size, 4)):
            return False
        if offset + size <= len(self.data):
            return True
        return all(at in self.fields for at in range(offset, offset + size, 4))


class Image(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """An entry's registers, variables and demands on its launch."""

    entry: str
    slots: list[Slot]
    parameters: tuple[Variable, ...] = ()
    parameter_base: int = 0
    """What addresses of parameters count from, where the compiler has placed them."""
    parameter_offsets: tuple[int, ...] = ()
    """From there, of each; none: they lie one after the other."""
    variables: tuple[Variable, ...] = ()
    """Those of the module, then those of the entry."""
    functions: tuple[str, ...] = ()
    """Those of the module, which may be called by their addresses."""
    shared_unit: int = 4
    """Bytes of the smallest shared-memory access: what the race check distinguishes."""
    heap_bytes: int = 0
    """What malloc() may give."""
    global_unit: int = 4
    """The same of global memory."""
    banks: dict[int, Bank] = {}
    """Constant banks, by number; PTX has none."""
    strict: bool = True
    """Whether races are findings. Not of SASS: ptxas moves, widens and merges accesses where it has
    proved that no result depends on it."""
    has_tensor_memory: bool = False
    """Whether the reserved shared memory holds what SASS keeps of its allocations."""
    reads_reserved: bool = False
    """Whether it reads from a constant bank where the reserved shared memory lies."""
    cluster: Dim3 | None = None
    """The only cluster that it may be launched with."""
    block: Dim3 | None = None
    """The only CTA that it may be launched with."""
    max_registers: int | None = None
    """Per thread, if the kernel says so."""
    min_ctas: int = 1
    """CTAs that are to fit on an SM."""
    polls: bool = False
    """Whether it has loads and atomics by which CTAs can wait for each other."""
    cancels_launches: bool = False
    """Whether it may take over the work of clusters that have not started."""
    overlaps: frozenset[str] = frozenset()
    """Which of `launch_dependents` and `wait` it has, of `griddepcontrol`."""
    max_threads: int | None = None
    """Threads of the largest CTA that it may be launched with."""

    @functools.cached_property
    def table(self) -> SlotTable:
        return SlotTable(self.slots)

    @property
    def uses_reserved_shared(self) -> bool:
        """Whether it asks where the shared memory lies that the system reserves for kernels."""
        return self.reads_reserved or any(
            isinstance(slot, SpecialRegister) and slot.name == "reserved_smem_offset_1"
            for _, slot in self.table.computed
        )
