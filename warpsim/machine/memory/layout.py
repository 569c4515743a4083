"""Where things lie: shared variables, global arrays, kernel parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from warpsim.errors import UsageError
from warpsim.launch import TENSOR_MAP_BYTES, Launch, TensorMap, to_bytes
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.image import Image, Variable
from warpsim.machine.memory import tma
from warpsim.machine.memory.arena import CONSTANT, OUTSIDE, SCRATCH_BYTES, UNWRITTEN, WRITTEN, Arena
from warpsim.machine.memory.tensor_map_image import PlacedMap, TensorMaps

# Where the windows of the generic address space lie. The numbers are ours; hardware's differ from
# driver to driver, and no program may depend on them.
SHARED_WINDOW = 1 << 40
LOCAL_WINDOW = 2 << 40
PARAM_WINDOW = 3 << 40
FUNCTIONS = 4 << 40
"""Of the addresses of functions, in the order of their definition."""
CONSTANT_WINDOW = 5 << 40
"""Of SASS, whose constants have no generic addresses here."""
GLOBAL_BASE = 0x20 << 40
"""Below where Linux puts the libraries and the stacks of a process that shares this memory."""
WINDOW_BITS = 40
WINDOW = (1 << WINDOW_BITS) - 1

# The first KB of a CTA's shared memory belongs to the system (CUDA C++ Programming Guide, "Shared
# memory" of compute capability 8.x and on: 1 KB reserved per block).
SHARED_RESERVED = 1024
# What a kernel that asks for %reserved_smem_offset_1 may use of it (cooperative groups do).
RESERVED_FOR_KERNELS = 512
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1

# Between arrays: an access this far past an array's end is still found.
GUARD_BYTES = 4096
SHARED_GUARD = 1024
SHARED_UNIT = 128
"""Bytes in multiples of which a card gives a CTA shared memory: on an H100, loads, stores and
atomics past the end fault from there on; loads of the kilobyte before the first variable do not."""
DESCRIBABLE = 256 << 10
"""Addresses that a matrix descriptor has room for."""
WORKSPACE_BYTES = 8
MAPS = 32
"""Tensor maps that a launch may have in global memory."""
# No array begins inside a sector or a line, as none does that cudaMalloc gave.
ALIGNMENT = 1024


def _up(value: int, align: int) -> int:
    return -(-value // align) * align


def _element(name: str, byte: int, size: int) -> str:
    """`part[96] (4-byte elements`, to be closed: a byte of a variable that is accessed so."""
    return f"{name}[{byte // size}] ({size}-byte elements"


def _byte(name: str, byte: int, element: int) -> str:
    if element and byte % element == 0:
        return f"{_element(name, byte, element)})"
    return f"byte {byte:,} of {name}"


def _own_name(symbol: str) -> str:
    """A variable as its source calls it: _ZZ4gemmPfE4full, of the function gemm, is full."""
    import cxxfilt

    try:
        return str(cxxfilt.demangle(symbol)).rpartition("::")[2]
    except cxxfilt.InvalidName:
        return symbol


def _beside(offset: int, objects: Mapping[str, tuple[int, int]]) -> str:
    """Which object, of (offset, bytes) by name, an offset just misses; empty if it misses all by
    more than the guard between two."""
    distance, where, name = min(
        (
            neighbour
            for name, (first, size) in objects.items()
            for neighbour in (
                (offset - first - size, "past the end", name),
                (first - offset, "before the beginning", name),
            )
            if neighbour[0] >= 0
        ),
        default=(GUARD_BYTES, "", ""),
    )
    if distance >= GUARD_BYTES:
        return ""
    how_far = f"{distance:,} byte{'s' * (distance != 1)}" if distance else "just"
    return f", {how_far} {where} of {_own_name(name)} ({objects[name][1]:,} bytes)"


class SharedLayout:
    """Static variables after the reserved kilobyte, then the dynamic array.

    apart: with guards between, so that an index which leaves one variable does not find another.
    Their addresses modulo the guard stay as they are: no bank conflict and no swizzle changes.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        dynamic_bytes: int,
        uses_reserved: bool = False,
        *,
        apart: bool = False,
    ) -> None:
        self._first = RESERVED_FOR_KERNELS if uses_reserved else SHARED_RESERVED
        shared = [v for v in variables if v.space == "shared"]
        end = SHARED_RESERVED
        self.symbols: dict[str, int] = {}
        self._sizes = {v.name: v.size or dynamic_bytes for v in shared}
        static = [v for v in shared if v.size]
        for variable in static:
            end = _up(end, variable.align)
            self.symbols[variable.name] = end
            end += variable.size
        dynamic = [v for v in shared if not v.size]
        padded = _up(end, max([16, *(v.align for v in dynamic)]))
        for variable in dynamic:
            self.symbols[variable.name] = padded
        self.static_bytes = (padded if dynamic else end) - SHARED_RESERVED
        self.packed = padded + dynamic_bytes if dynamic or dynamic_bytes else end
        """Where it ends on the card."""
        guards = SHARED_GUARD * len(static)
        apart = apart and self.packed + guards <= DESCRIBABLE
        if apart:
            for number, variable in enumerate(static):
                self.symbols[variable.name] += SHARED_GUARD * number
            for variable in dynamic:
                self.symbols[variable.name] += guards
        self.end = self.packed + guards * apart
        self._gaps = [self._gap(v, padded + guards) for v in static] if apart else []
        self.stride = _up(self.end + 1024, 1024)
        self.limit = self.stride - SHARED_UNIT
        """What a program may address ends here; the rest stands for memory of a card that belongs
        to no variable."""
        self._static = [(v.name, SHARED_GUARD * i * apart) for i, v in enumerate(static)]
        """Each static variable, and how much higher than on the card it lies."""
        self._dynamic = padded, guards * apart
        """The same of the dynamic array, which begins there on the card."""

    def _gap(self, variable: Variable, dynamic: int) -> tuple[int, int]:
        """What lies between a static variable and the next: offset and bytes."""
        first = self.symbols[variable.name] + variable.size
        following = min((x for x in self.symbols.values() if x >= first), default=dynamic)
        return first, max(0, min(following, self.end) - first)

    def name_at(self, low: int) -> str:
        """The variable at an offset in a CTA's shared memory."""
        before = [(first, name) for name, first in self.symbols.items() if first <= low]
        return max(before)[1] if before and low < self.limit else ""

    def spell(self, low: int, element: int = 0) -> str:
        """An offset as findings name it: `shared 0x408 (byte 8 of full)`, or by elements of some
        bytes `full[2] (4-byte elements, shared 0x408)`."""
        name = self.name_at(low)
        if not name:
            return f"shared {low:#x}"
        if element:
            byte = low - self.symbols[name]
            return f"{_element(_own_name(name), byte, element)}, shared {low:#x})"
        return f"shared {low:#x} ({self.byte_at(low)})"

    def byte_at(self, low: int, element: int = 0) -> str:
        """`byte 8 of full`, or `full[2] (4-byte elements)`; empty outside of all variables."""
        name = self.name_at(low)
        return _byte(_own_name(name), low - self.symbols[name], element) if name else ""

    def beside(self, low: int) -> str:
        """Which variable an offset outside of all just misses."""
        return _beside(low, {x: (first, self._sizes[x]) for x, first in self.symbols.items()})

    def left_by(self, low: int, size: int) -> str:
        """What an access to that many bytes reaches beyond; empty if it stays inside."""
        if low + size > self.end:
            return "the CTA's memory"
        if any(low < first + gap and first < low + size for first, gap in self._gaps):
            name = self.name_at(low)
            return f"{_own_name(name)} ({self._sizes[name]:,} bytes)"
        return ""

    def on_card(self, low: int, size: int, *, store: bool) -> int:
        """Where what a card has at the address of an access outside of all variables lies here; -1
        if it ends the launch there."""
        before = [raised for name, raised in self._static if self.symbols[name] <= low]
        raised = self._dynamic[1] if low >= self.end else max(before, default=0)
        card = low - raised
        past = self.packed <= card and card + size <= _up(self.packed, SHARED_UNIT)
        if past or (0 <= card <= SHARED_RESERVED - size and not store):
            return self.limit + card % SHARED_UNIT
        for name, raised in self._static:
            first = self.symbols[name] - raised
            if first <= card and card + size <= first + self._sizes[name]:
                return card + raised
        first, raised = self._dynamic
        return card + raised if first <= card and card + size <= self.packed else -1

    def allocate(self, arena: Arena, ctas: int, *, reserved: bool) -> None:
        """In an arena that nobody has used; reserved: all of what belongs to the system too."""
        own = slice(SCRATCH_BYTES, SCRATCH_BYTES + ctas * self.stride)
        state, data = (part[own].reshape(ctas, -1) for part in (arena.state, arena.data))
        state[:, SHARED_RESERVED : self.end] = state[:, self.limit :] = UNWRITTEN
        for first, size in self._gaps:
            state[:, first : first + size] = OUTSIDE
        # The barriers of cooperative groups lie in it, and nobody initialises them.
        system = slice(0 if reserved else self._first, SHARED_RESERVED)
        state[:, system], data[:, system] = WRITTEN, 0


class LocalLayout:
    """A thread's own variables, and the parameters of inlined functions."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        end = 0
        self.symbols: dict[str, int] = {}
        places = []
        for variable in variables:
            if variable.space in ("local", "param"):
                end = _up(end, variable.align)
                self.symbols[variable.name] = end
                places.append(slice(end, end + variable.size))
                end += variable.size
        self.size = _up(end, 32)
        self.states = np.full(self.size, OUTSIDE, np.uint8)
        """Of each byte: what lies between the variables belongs to none."""
        for place in places:
            self.states[place] = UNWRITTEN


class GlobalLayout:
    """The launch's arrays and the module's variables, with guards between.

    An array with the name of a variable is that variable.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        arrays: Mapping[str, Array],
        unwritten: frozenset[str],
        heap_bytes: int = 0,
        functions: Sequence[str] = (),
    ) -> None:
        self.arrays = arrays
        self.maps = TensorMaps(GLOBAL_BASE)
        self.offsets: dict[str, int] = {}
        self.allocated: dict[int, int] = {}
        """Bytes that malloc() gave, by their address."""
        self._symbols: dict[str, int] = {}
        self._functions = {name: FUNCTIONS + 16 * i for i, name in enumerate(functions, 1)}
        end = _up(SCRATCH_BYTES + GUARD_BYTES, ALIGNMENT)
        named = [v for v in variables if v.space in ("global", "const")]
        placed = [v for v in named if v.name not in arrays]
        for name, array in arrays.items():
            self.offsets[name] = end
            end = _up(end + array.nbytes + GUARD_BYTES, ALIGNMENT)
        self._sizes = {variable.name: variable.size for variable in placed}
        for variable in placed:
            self._symbols[variable.name] = end
            end = _up(end + variable.size + GUARD_BYTES, ALIGNMENT)
        self.workspace = GLOBAL_BASE + end
        """Address of what cooperative launches count their CTAs in: two words, zero at first."""
        end = _up(end + WORKSPACE_BYTES + GUARD_BYTES, ALIGNMENT)
        self._kept = end
        """Offset of the next tensor map in memory."""
        self._kept_end = end + MAPS * TENSOR_MAP_BYTES
        end = _up(self._kept_end + GUARD_BYTES, ALIGNMENT)
        self.heap = end
        self.arena = Arena(end + heap_bytes)
        self._clear(self.workspace - GLOBAL_BASE, WORKSPACE_BYTES, WRITTEN)
        for name, array in arrays.items():
            self._place(array, self.offsets[name], name in unwritten)
        for variable in named:
            if variable.name in arrays:
                self._given(variable)
        for variable in placed:
            self._initialize(variable)

    is_shared = False
    """Whether what forks of this process write is seen by it."""

    def detach(self) -> None:
        """In a fork: what it writes from now on is its own."""

    def keep(self, data: bytes) -> int:
        """Puts a tensor map into memory; its address."""
        offset, self._kept = self._kept, self._kept + len(data)
        if self._kept > self._kept_end:
            raise UsageError(f"more than {MAPS} tensor maps of a launch lie in memory.")
        self.arena.allocate(offset, len(data), CONSTANT)
        self.arena.data[offset : self._kept] = np.frombuffer(data, np.uint8)
        return GLOBAL_BASE + offset

    def _initialize(self, variable: Variable) -> None:
        """The variable's own contents, with the addresses in them."""
        offset = self._symbols[variable.name]
        self._clear(offset, variable.size, CONSTANT if variable.space == "const" else WRITTEN)
        data = np.frombuffer(variable.data, np.uint8)
        self.arena.data[offset : offset + len(data)] = data
        for pointed in variable.addresses:
            at, value = offset + pointed.offset, self.symbol(pointed.name) + pointed.addend
            self.arena.data[at : at + 8].view(np.uint64)[0] = value

    def _given(self, variable: Variable) -> None:
        """The launch brings the variable's contents, as cudaMemcpyToSymbol would."""
        self._check_size(variable.name, variable.size)
        self._symbols[variable.name] = offset = self.offsets[variable.name]
        if variable.space == "const":
            self.arena.allocate(offset, variable.size, CONSTANT)

    def contents(self, name: str, size: int) -> Array:
        """The bytes of the array that a launch brings for a variable of `size` bytes."""
        self._check_size(name, size)
        return self.arena.data[self.offsets[name] :][:size]

    def _check_size(self, name: str, size: int) -> None:
        given = self.arrays[name].nbytes
        if given != size:
            raise UsageError(f"array {name!r} has {given} bytes, the variable of that name {size}.")

    def _clear(self, offset: int, size: int, state: int) -> None:
        self.arena.allocate(offset, size, state)
        self.arena.data[offset : offset + size] = 0

    def take_over(self, before: GlobalLayout) -> None:
        """What an earlier launch left in the arrays and the variables that both have."""
        self.maps, there = before.maps, before._extents()
        for name, (offset, size) in self._extents().items():
            if name in there:
                mine = slice(offset, offset + size)
                other = slice(there[name][0], there[name][0] + size)
                self.arena.data[mine] = before.arena.data[other]
                self.arena.state[mine] = before.arena.state[other]

    def _extents(self) -> dict[str, tuple[int, int]]:
        """Offset and bytes of arrays and variables."""
        arrays = {x: (self.offsets[x], array.nbytes) for x, array in self.arrays.items()}
        return arrays | {x: (self._symbols[x], size) for x, size in self._sizes.items()}

    def reserve(self, size: int) -> int:
        """An address of the heap, for malloc(); 0 if it is full."""
        first, end = self.heap, _up(self.heap + size + GUARD_BYTES, 64)
        if end > len(self.arena.data) - SCRATCH_BYTES:
            return 0
        self.heap = end
        self.arena.allocate(first, size, UNWRITTEN)
        return GLOBAL_BASE + first

    def release(self, address: int, size: int) -> None:
        """free(): nobody may touch it any more."""
        self.arena.allocate(address - GLOBAL_BASE, size, OUTSIDE)

    def _place(self, array: Array, offset: int, unwritten: bool) -> None:
        if not array.flags.c_contiguous:
            raise UsageError("the emulator takes contiguous arrays only.")
        self.arena.allocate(offset, array.nbytes, UNWRITTEN if unwritten else WRITTEN)
        if not unwritten:
            self.arena.data[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)

    def address(self, name: str) -> int:
        if name not in self.offsets:
            known = ", ".join(self.offsets) or "none"
            raise UsageError(f"the launch names array {name!r}; the arrays given are {known}.")
        return GLOBAL_BASE + self.offsets[name]

    def symbol(self, name: str) -> int:
        if name in self._functions:
            return self._functions[name]
        if name not in self._symbols:
            raise UsageError(f"the kernel uses {name!r}, which its PTX does not define.")
        return GLOBAL_BASE + self._symbols[name]

    def object_at(self, offset: int) -> str:
        """The array or variable at an arena offset."""
        for name, first in self.offsets.items():
            if first <= offset < first + self.arrays[name].nbytes:
                return name
        before = [(first, name) for name, first in self._symbols.items() if first <= offset]
        return max(before)[1] if before else ""

    def beside(self, offset: int) -> str:
        """Which array or variable an arena offset outside of all just misses."""
        return _beside(offset, self._extents())

    def name_at(self, offset: int, element: int = 0) -> str:
        """An arena offset as findings name it; element: in elements of that many bytes, if any."""
        name = self.object_at(offset)
        if element and name in self.offsets:
            return f"{_element(name, offset - self.offsets[name], element)})"
        return self.byte_at(offset) or f"global {GLOBAL_BASE + offset:#x}"

    def byte_at(self, offset: int, element: int = 0) -> str:
        """`byte 8 of out`, or `out[2] (4-byte elements)`, of an arena offset; empty outside of all
        arrays."""
        name = self.object_at(offset)
        return _byte(name, offset - self.offsets[name], element) if name in self.offsets else ""

    def extent(self, name: str, _base: int) -> int:
        """Bytes of an array from where a tensor map over it begins, at most; 0 if it is gone."""
        return self.arrays[name].nbytes

    def write_back(self) -> None:
        """The arena's bytes into the caller's arrays."""
        for name, array in self.arrays.items():
            offset = self.offsets[name]
            array.reshape(-1).view(np.uint8)[...] = self.arena.data[offset : offset + array.nbytes]


class Parameters:
    """The parameter block of an entry: bytes, and the tensor maps that lie in it."""

    def __init__(self, image: Image, launch: Launch, world: GlobalLayout) -> None:
        if len(image.parameters) != len(launch.arguments):
            raise UsageError(
                f"entry {image.entry} takes {len(image.parameters)} arguments, "
                f"the launch has {len(launch.arguments)}."
            )
        self.offsets: dict[str, int] = {}
        self.maps = world.maps
        self.placed: dict[int, PlacedMap] = {}
        """Tensor maps that copies have found here, by their generic address."""
        self.address = PARAM_WINDOW + image.parameter_base
        """Generic, of the block."""
        end = SCRATCH_BYTES
        for index, parameter in enumerate(image.parameters):
            if image.parameter_offsets:
                end = image.parameter_base + image.parameter_offsets[index]
            end = _up(end, parameter.align)
            self.offsets[parameter.name] = end
            end += parameter.size
        self.arena = Arena(end)
        for parameter, argument in zip(image.parameters, launch.arguments, strict=True):
            offset = self.offsets[parameter.name]
            data = to_bytes(argument, world.address, lambda map_: self._place(map_, world))
            if len(data) != parameter.size:
                raise UsageError(
                    f"parameter {parameter.name} has {parameter.size} bytes, "
                    f"its argument {len(data)}."
                )
            self.arena.allocate(offset, len(data), CONSTANT)
            self.arena.data[offset : offset + len(data)] = np.frombuffer(data, np.uint8)

    def _place(self, map_: TensorMap, world: GlobalLayout) -> bytes:
        """What a tensor map's parameter holds: the map, or its address."""
        base = world.address(map_.array) - GLOBAL_BASE
        tma.check(map_, world.arrays[map_.array])
        data = self.maps.add(PlacedMap(map_, base))
        return world.keep(data).to_bytes(8, "little") if map_.in_memory else data
