"""What a launch is made of: all that the emulator and the GPU backend share."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

Element: TypeAlias = Literal["u8", "u16", "u32", "s32", "f16", "bf16", "f32", "f64"]
Swizzle: TypeAlias = Literal["none", "32B", "64B", "128B"]
ScalarType: TypeAlias = Literal["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64"]
Dim3: TypeAlias = tuple[int, int, int]


class Pointer(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="pointer"):
    """A kernel argument: the address of a named array."""

    array: str


class Scalar(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="scalar"):
    """A kernel argument passed by value."""

    type: ScalarType
    value: int | float


class TensorMap(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="tensor_map"):
    """A kernel argument: a TMA descriptor (CUtensorMap, 128 bytes) over a named array.

    Dimensions are innermost first, as in cuTensorMapEncodeTiled; FP8 data is "u8".
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


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a struct: its value, and where it lies in bytes."""

    offset: int
    value: Pointer | Scalar | TensorMap


class StructValue(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="struct"):
    """A kernel argument: a struct passed by value; bytes without a field are zero."""

    size: int
    fields: tuple[Field, ...] = ()


Argument: TypeAlias = Pointer | Scalar | TensorMap | StructValue


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of an entry: what a driver or an emulator has to be told."""

    entry: str
    """The symbol in the cubin, or the function's own name where that is mangled in it."""
    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    dynamic_smem_bytes: int = 0
    arguments: tuple[Argument, ...] = ()


def plain_name(symbol: str) -> str:
    """A function's own name: _ZN2kx4gemmILi64EEEvPKf is gemm, and transpose is itself."""
    found = symbol
    at = re.match(r"_ZN?L?", symbol)
    place = at.end() if at else len(symbol)
    while digits := re.match(r"[0-9]+", symbol[place:]):
        first = place + digits.end()
        place = first + int(digits[0])
        found = symbol[first:place]
    return found


def of_entry(launch: Launch, symbol: str) -> Launch:
    """The launch of the entry `symbol`, where launch() gives that its plain name."""
    if launch.entry != plain_name(symbol):
        return launch
    return msgspec.structs.replace(launch, entry=symbol)
