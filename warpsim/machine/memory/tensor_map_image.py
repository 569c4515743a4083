"""The bytes of tensor maps, as kernels copy and change them.

The driver's encoding is not published. Where the fields lie is what ptxas makes of
`tensormap.replace`: stores to these places. A map that a launch of the emulator brings has the
fields that kernels change, and its number for the rest; decode() reads one that a driver made.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import msgspec

from warpsim.launch import TENSOR_MAP_BYTES, Element, Swizzle, TensorMap

_ADDRESS, _STRIDES, _STRIDE_TOPS, _SIZES, _FIRST_BOX = 0, 0x0C, 0x1C, 0x20, 0x37
"""Strides are in 16 bytes, and have bits above 32 in `_STRIDE_TOPS`, 4 each; sizes are words, and
extents of the box bytes, both less one."""
_MARK_AT, _MARK = 0x3C, b"\xffMap"
USED = 64
"""Bytes: the others are empty, and cuBLAS has the next map begin there."""
_SPREAD = 0x9E37_79B1
"""Numbers are multiplied by it: a map of which another field was changed has none."""
_UNIT_BITS, _TOP_BITS = 4, 4
_FREE = 1 << 21
"""Of the word: CUTLASS clears this bit in maps of less than 128 KiB, for drivers before 13.1."""
_WORD, _STEPS = 0x08, 0x34
"""Rank, type, interleaving, swizzle and fill are bits of one word; steps have three bits each."""
_RANK, _TYPE, _INTERLEAVE, _SWIZZLE, _FILL, _ROUNDED, _ATOM = 4, 7, 11, 13, 15, 16, 22
_ELEMENTS: dict[int, Element] = {
    **{0: "u8", 1: "u16", 2: "u32", 3: "s32", 6: "f16", 7: "f32", 9: "f64", 10: "bf16"}
}
_MOST = 5
"""Dimensions."""
_SWIZZLES: tuple[Swizzle, ...] = ("none", "32B", "64B", "128B")


class PlacedMap(NamedTuple):
    """A tensor map over an array of the launch."""

    tensor: TensorMap
    base: int
    """Offset of the array in global memory."""


class TensorMaps:
    """The tensor maps of a job."""

    def __init__(self, origin: int) -> None:
        """origin: the address of global memory."""
        self._origin = origin
        self._maps: list[PlacedMap] = []
        self._known: dict[bytes, PlacedMap | None] = {}

    def add(self, placed: PlacedMap) -> bytes:
        """The bytes of a new one."""
        self._maps.append(placed)
        return self._bytes(placed, len(self._maps) - 1)

    def _bytes(self, placed: PlacedMap, number: int) -> bytes:
        data = bytearray(TENSOR_MAP_BYTES)
        data[_MARK_AT:USED] = _MARK
        struct.pack_into("<I", data, _WORD, _spread(number))
        change(data, "global_address", 0, self._origin + placed.base)
        for field, name in _FIELDS.items():
            for index, value in enumerate(getattr(placed.tensor, name)):
                change(data, field, index, value)
        return bytes(data)

    def find(self, data: bytes) -> PlacedMap | None:
        """The map with these bytes; None if they are none, or if something else of it was changed
        than what is known to lie where."""
        data = data[:USED]
        if data not in self._known:
            self._known[data] = self._read(data)
        return self._known[data]

    def _read(self, data: bytes) -> PlacedMap | None:
        (word,) = struct.unpack_from("<I", data, _WORD)
        word |= _FREE
        numbers = [number for number in range(len(self._maps)) if _spread(number) == word]
        if data[_MARK_AT:] != _MARK or not numbers:
            return None
        (number,) = numbers
        tensor = self._maps[number].tensor
        fields = {
            name: tuple(_value(data, field, index) for index, _ in enumerate(getattr(tensor, name)))
            for field, name in _FIELDS.items()
        }
        (address,) = struct.unpack_from("<Q", data, _ADDRESS)
        placed_map = PlacedMap(msgspec.structs.replace(tensor, **fields), address - self._origin)
        image = bytearray(data)
        struct.pack_into("<I", image, _WORD, word)
        same = self._bytes(placed_map, number)[:USED] == image
        return placed_map if same else None


def _spread(number: int) -> int:
    return (number + 1) * _SPREAD & 0xFFFF_FFFF | _FREE


_FIELDS = {"global_dim": "shape", "global_stride": "strides_bytes", "box_dim": "box"}
"""PTX's names of what may be changed, and those of a TensorMap."""


def change(data: bytearray, field: str, index: int, value: int) -> None:
    """Changes a field of the bytes of a tensor map, by PTX's name of it."""
    if field == "global_address":
        struct.pack_into("<Q", data, _ADDRESS, value)
    elif field == "global_dim":
        struct.pack_into("<I", data, _SIZES + 4 * index, value - 1 & 0xFFFF_FFFF)
    elif field == "box_dim":
        data[_FIRST_BOX + index] = value - 1 & 0xFF
    else:
        units, shift = value >> _UNIT_BITS, _TOP_BITS * index
        struct.pack_into("<I", data, _STRIDES + 4 * index, units & 0xFFFF_FFFF)
        (tops,) = struct.unpack_from("<I", data, _STRIDE_TOPS)
        tops = tops & ~(0xF << shift) | (units >> 32 & 0xF) << shift
        struct.pack_into("<I", data, _STRIDE_TOPS, tops)


def _value(data: bytes, field: str, index: int) -> int:
    if field == "box_dim":
        return data[_FIRST_BOX + index] + 1
    at = 4 * index + (_SIZES if field == "global_dim" else _STRIDES)
    (low,) = struct.unpack_from("<I", data, at)
    if field == "global_dim":
        return int(low) + 1
    (tops,) = struct.unpack_from("<I", data, _STRIDE_TOPS)
    return (int(low) | (tops >> _TOP_BITS * index & 0xF) << 32) << _UNIT_BITS


def decode(data: bytes, array: str) -> tuple[int, TensorMap | None]:
    """The address in a driver's tensor map, and the map over an array of that name; None where
    these bytes are none, or one of a kind that is not executed."""
    address, word = struct.unpack_from("<QI", data, _ADDRESS)
    rank, element = (word >> _RANK & 7) + 1, _ELEMENTS.get(word >> _TYPE & 0xF)
    plain = word and not (word >> _INTERLEAVE & 3 or word >> _FILL & 1 or word >> _ROUNDED & 1)
    steps = int.from_bytes(data[_STEPS : _STEPS + 2], "little") & (1 << 3 * rank) - 1
    if rank > _MOST or element is None or not plain or steps or word >> _ATOM & 1:
        return address, None
    unused = (
        data[_SIZES + 4 * rank : _STEPS],
        data[_FIRST_BOX + rank : _FIRST_BOX + _MOST],
    )
    # A driver leaves the places of other dimensions empty; cuBLAS leaves something in a stride's.
    if any(map(any, unused)):
        return address, None
    tensor = TensorMap(
        array=array,
        element=element,
        shape=tuple(_value(data, "global_dim", index) for index in range(rank)),
        strides_bytes=tuple(_value(data, "global_stride", index) for index in range(rank - 1)),
        box=tuple(_value(data, "box_dim", index) for index in range(rank)),
        swizzle=_SWIZZLES[word >> _SWIZZLE & 3],
    )
    return address, tensor
