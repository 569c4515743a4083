"""What a launch is made of: all that the emulator and the GPU backend share."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from warpsim.dtypes import ScalarType
from warpsim.errors import UsageError

Element: TypeAlias = Literal[
    "u8", "u16", "u32", "s32", "f16", "bf16", "f32", "f64", "u4x16", "u4x16_p64", "u6x16_p32"
]
Swizzle: TypeAlias = Literal["none", "32B", "64B", "128B"]
Dim3: TypeAlias = tuple[int, int, int]
TENSOR_MAP_BYTES = 128


class Pointer(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="pointer"):
    """A kernel argument: the address of a named array."""

    array: str


class Scalar(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="scalar"):
    """A kernel argument passed by value."""

    type: ScalarType
    value: bool | int | float


class TensorMap(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="tensor_map"):
    """A kernel argument: a TMA descriptor (CUtensorMap, 128 bytes) over a named array.

    Dimensions are innermost first, as in cuTensorMapEncodeTiled; FP8 data is "u8". Elements of four
    and six bits lie packed in the array; in shared memory 16 of them take 8 bytes ("u4x16"), or
    begin 16 bytes of which the rest is padding ("u4x16_p64", "u6x16_p32").
    """

    array: str
    element: Element
    shape: tuple[int, ...]
    """Elements along each dimension."""
    strides_bytes: tuple[int, ...]
    """Bytes from one index to the next, for dimensions 1 and up (dimension 0 is contiguous)."""
    box: tuple[int, ...]
    """Elements copied by one instruction, along each dimension."""
    swizzle: Swizzle = "none"
    in_memory: bool = False
    """Whether the argument is a pointer to it, in global memory."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a struct: its value, and where it lies in bytes."""

    offset: int
    value: Pointer | Scalar | TensorMap


class StructValue(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="struct"):
    """A kernel argument: a struct passed by value."""

    size: int = 0
    """In bytes; 0: as long as `data`."""
    data: bytes = b""
    """Its memory before the fields are set, and zeros behind it: in launch() of problem.py, a
    ctypes.Structure or a NumPy record will do."""
    fields: tuple[Field, ...] = ()


Argument: TypeAlias = Pointer | Scalar | TensorMap | StructValue


class Residency(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds the CTAs that a card holds at once."""

    sms: int
    warps_per_sm: int
    ctas_per_sm: int
    smem_per_sm_bytes: int

    def holds(self, warps: int, smem_bytes: int) -> int:
        """CTAs of so many warps and bytes of shared memory, the system's kilobyte with them, that
        are resident at once.

        Their registers are not counted: it may hold fewer.
        """
        by_smem = self.smem_per_sm_bytes // smem_bytes
        return self.sms * min(self.ctas_per_sm, self.warps_per_sm // warps, by_smem)


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of an entry: what a driver or an emulator has to be told."""

    entry: str
    """The symbol in the cubin, or the function's own name where that is mangled in it."""
    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    dynamic_smem_bytes: int = 0
    arguments: tuple[Argument, ...] = ()
    main: bool = False
    """Of several launches in sequence, whether this one's entry is what the build is judged by and
    what ncu profiles; the first is, where none says so."""


_FORMATS = {
    **{"bool": "?", "u8": "B", "s8": "b", "u16": "H", "s16": "h", "u32": "I", "s32": "i"},
    **{"u64": "Q", "s64": "q", "f16": "e", "f32": "f", "f64": "d"},
}


def to_bytes(
    argument: Argument, address: Callable[[str], int], encode: Callable[[TensorMap], bytes]
) -> bytes:
    """An argument as it lies in the parameters; `address` of an array by its name, `encode` makes
    the 128 bytes of a tensor map, or the address of one in memory. UsageError for a field that
    leaves its struct."""
    if isinstance(argument, Pointer):
        return struct.pack("<Q", address(argument.array))
    if isinstance(argument, Scalar):
        return scalar_to_bytes(argument)
    if isinstance(argument, TensorMap):
        return encode(argument)
    size = argument.size or len(argument.data)
    data = bytearray(argument.data.ljust(size, b"\0"))
    if len(data) > size:
        raise UsageError(f"a struct of {size} bytes has {len(data)} bytes of data.")
    for field in argument.fields:
        member = to_bytes(field.value, address, encode)
        if not 0 <= field.offset <= size - len(member):
            raise UsageError(
                f"a field of {len(member)} bytes at byte {field.offset} leaves its struct of "
                f"{size} bytes."
            )
        data[field.offset : field.offset + len(member)] = member
    return bytes(data)


def values(arguments: Iterable[Argument]) -> Iterator[Pointer | Scalar | TensorMap]:
    """The arguments, with the members of those that are structs instead of these."""
    for argument in arguments:
        if isinstance(argument, StructValue):
            yield from (field.value for field in argument.fields)
        else:
            yield argument


def scalar_to_bytes(scalar: Scalar) -> bytes:
    """Little endian, rounded to nearest even; OverflowError or struct.error where it does not
    fit."""
    if scalar.type != "bf16":
        return struct.pack(f"<{_FORMATS[scalar.type]}", scalar.value)
    (bits,) = struct.unpack("<I", struct.pack("<f", scalar.value))
    if scalar.value == scalar.value:  # not a NaN
        bits += 0x7FFF + (bits >> 16 & 1)
    return struct.pack("<H", bits >> 16)


def scalar_from_bytes(kind: ScalarType, data: bytes) -> bool | int | float:
    """What scalar_to_bytes() made bytes of."""
    if kind == "bf16":
        kind, data = "f32", b"\0\0" + data
    (value,) = struct.unpack(f"<{_FORMATS[kind]}", data)
    return value


def plain_name(symbol: str) -> str:
    """A function's own name: _ZN2kx4gemmILi64EEEvPKf is gemm, and transpose is itself."""
    name = symbol
    at = re.match(r"_ZN?", symbol)
    nested = at is not None and at[0] == "_ZN"
    place = at.end() if at else len(symbol)
    while digits := re.match(r"L?([0-9]+)", symbol[place:]):
        first = place + digits.end()
        place = first + int(digits[1])
        name = symbol[first:place]
        if not nested:
            break  # what follows are the types of its parameters
    return name


def full_name(symbol: str) -> str:
    """A kernel as its source calls it, with its template arguments."""
    import cxxfilt

    try:
        text = str(cxxfilt.demangle(symbol))
    except cxxfilt.InvalidName:
        return symbol
    text = text.removeprefix("void ")
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0 and at and not text.startswith("(anonymous", at):
            return text[:at]
    return text


def is_named(part: str, symbol: str) -> bool:
    """Whether a kernel has this in its symbol or, blanks aside, in its full name."""
    return part in symbol or "".join(part.split()) in "".join(full_name(symbol).split())


def of_entries(launch: Launch, symbols: Iterable[str]) -> Launch:
    """The launch of the one of `symbols` that launch() names, by itself or by its plain name; as
    it is where none or several have that name."""
    symbols = tuple(symbols)
    named = [symbol for symbol in symbols if plain_name(symbol) == launch.entry]
    if launch.entry in symbols or len(named) != 1:
        return launch
    return msgspec.structs.replace(launch, entry=named[0])


def main_launch(launches: Sequence[Launch]) -> Launch:
    """The one of a job's launches that its build is judged by."""
    return next((launch for launch in launches if launch.main), launches[0])
