"""Tensor maps: which bytes of an array a box covers, and where they lie in shared memory."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import msgspec
import numpy as np

from warpsim.errors import UsageError
from warpsim.launch import TensorMap
from warpsim.machine.core.arrays import Array
from warpsim.machine.counts.access import SECTOR_BYTES, TAG_BYTES

PACKED = {"u4x16": (8, 8), "u4x16_p64": (8, 16), "u6x16_p32": (12, 16)}
"""Bytes of 16 elements in the array and in shared memory (PTX ISA, "Sub-byte types")."""
_PADDED_BOX = 128
ELEMENT_BYTES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
# Which address bits a swizzle XORs into the 16-byte chunk number (bits 6:4):
# cuTensorMapEncodeTiled, CUtensorMapSwizzle. The address is the one in shared memory, not the
# offset in the box.
_SWIZZLE_MASK = {"none": 0, "32B": 1, "64B": 3, "128B": 7}
_SWIZZLE_PERIOD = 1024
"""Bytes: what a swizzle does at an address it does that much further on too."""
SWIZZLE_SPAN = {"32B": 32, "64B": 64, "128B": 128}
CHUNK_BYTES = 16
MAX_BOX = 256


def swizzled(address: Array, swizzle: str) -> Array:
    """Where the byte of an unswizzled shared-memory address lies."""
    return address ^ ((address >> 7 & _SWIZZLE_MASK[swizzle]) << 4)


class TileLayout(NamedTuple):
    """How a copy's bytes lie in shared memory: rows of `row` bytes, `pitch` apart, swizzled."""

    swizzle: str = "none"
    row: int = CHUNK_BYTES
    pitch: int = CHUNK_BYTES

    def footprint(self, size: int) -> int:
        """Bytes from the first to the end of the last row."""
        return (size // self.row - 1) * self.pitch + self.row


LINEAR = TileLayout()


@functools.lru_cache(maxsize=64)
def image(tensor_map: TensorMap) -> TileLayout:
    """A box narrower than its swizzle's span lies at the span's pitch (an H200 does so)."""
    if tensor_map.swizzle == "none":
        return LINEAR
    return TileLayout(tensor_map.swizzle, row_bytes(tensor_map), SWIZZLE_SPAN[tensor_map.swizzle])


def row_bytes(tensor_map: TensorMap) -> int:
    """Of the box's innermost dimension, in shared memory."""
    if tensor_map.element in PACKED:
        return tensor_map.box[0] * PACKED[tensor_map.element][1] // 16
    return tensor_map.box[0] * ELEMENT_BYTES[tensor_map.element]


def chunk_offsets(address: int, size: int, form: TileLayout) -> Array:
    """Of the 16-byte chunks of `size` bytes that lie at `address`: from there, int64."""
    return _chunk_offsets(address % _SWIZZLE_PERIOD, size, form)


@functools.lru_cache(maxsize=512)
def _chunk_offsets(address: int, size: int, form: TileLayout) -> Array:
    row = np.arange(size // form.row)[:, None] * form.pitch
    chunk = np.arange(form.row // CHUNK_BYTES)[None, :] * CHUNK_BYTES
    return swizzled((address + row + chunk).ravel(), form.swizzle) - address


@functools.lru_cache(maxsize=64)
def in_bytes(tensor_map: TensorMap) -> TensorMap:
    """The same map with bytes for elements, if these are packed."""
    if tensor_map.element not in PACKED:
        return tensor_map
    size, _ = PACKED[tensor_map.element]
    return msgspec.structs.replace(
        tensor_map,
        element="u8",
        shape=(tensor_map.shape[0] * size // 16, *tensor_map.shape[1:]),
        box=(tensor_map.box[0] * size // 16, *tensor_map.box[1:]),
    )


def padded(data: Array, tensor_map: TensorMap) -> Array:
    """A box's bytes as shared memory gets them: with what stands behind 16 packed elements."""
    if tensor_map.element not in PACKED:
        return data
    size, room = PACKED[tensor_map.element]
    return np.pad(data.reshape(-1, size), ((0, 0), (0, room - size)), constant_values=0xFF).ravel()


def check(tensor_map: TensorMap, array: Array) -> None:
    """UsageError for a map that cuTensorMapEncodeTiled would refuse, or that leaves its array."""
    packed = PACKED.get(tensor_map.element)
    if packed and packed[0] < packed[1]:
        wrong = tensor_map.box[0] != _PADDED_BOX or tensor_map.shape[0] % _PADDED_BOX
        if wrong or tensor_map.swizzle not in ("none", "128B"):
            raise UsageError(
                f"tensor map of {tensor_map.array!r} needs a box of {_PADDED_BOX} elements along "
                "its first dimension, a size that is a multiple of that, and no swizzle or 128B."
            )
    tensor_map = in_bytes(tensor_map)
    element = ELEMENT_BYTES[tensor_map.element]
    rank = len(tensor_map.shape)
    inner = tensor_map.box[0] * element
    faults = []
    if (
        not 1 <= rank <= 5
        or len(tensor_map.box) != rank
        or len(tensor_map.strides_bytes) != rank - 1
    ):
        faults.append("rank 1 to 5, with a box of that rank and a stride fewer")
    if inner % 16:
        faults.append(f"an innermost box that is a multiple of 16 bytes, not {inner}")
    if any(not 1 <= side <= MAX_BOX for side in tensor_map.box):
        faults.append(f"box sides of 1 to {MAX_BOX}, not {tensor_map.box}")
    if any(stride % 16 for stride in tensor_map.strides_bytes):
        faults.append(f"strides in multiples of 16 bytes, not {tensor_map.strides_bytes}")
    if tensor_map.swizzle != "none" and inner > SWIZZLE_SPAN[tensor_map.swizzle]:
        faults.append(
            f"an innermost box within the swizzle's {tensor_map.swizzle}, not {inner} bytes"
        )
    if faults:
        raise UsageError(f"tensor map of {tensor_map.array!r} needs " + "; ".join(faults) + ".")
    last = sum(
        (size - 1) * stride
        for size, stride in zip(tensor_map.shape[1:], tensor_map.strides_bytes, strict=True)
    )
    if last + tensor_map.shape[0] * element > array.nbytes:
        raise UsageError(f"tensor map of {tensor_map.array!r} reaches beyond its array.")


def box_bytes(tensor_map: TensorMap) -> int:
    """In shared memory."""
    return math.prod(tensor_map.box[1:]) * row_bytes(tensor_map)


def box_offsets(tensor_map: TensorMap, start: tuple[int, ...]) -> tuple[Array, Array]:
    """(byte offset in the array, whether it is inside) of each element of the box at `start`.

    Innermost dimension last, so that both run through the box as its shared-memory image does.
    """
    box, shape = tensor_map.box, tensor_map.shape
    offset = _from_start(tensor_map) + _first(tensor_map, start)
    if _is_inside(tensor_map, start):
        return offset, _all(len(offset))
    inside: Array = np.ones((), bool)
    for dimension, at in enumerate(start):
        index = at + np.arange(box[dimension])
        here = (index >= 0) & (index < shape[dimension])
        inside = inside & here.reshape(-1, *[1] * dimension)
    return offset, np.broadcast_to(inside, box[::-1]).ravel()


def _first(tensor_map: TensorMap, start: tuple[int, ...]) -> int:
    """Byte offset in the array of the first element of the box at `start`."""
    strides = (ELEMENT_BYTES[tensor_map.element], *tensor_map.strides_bytes)
    return sum(at * stride for at, stride in zip(start, strides, strict=True))


def _is_inside(tensor_map: TensorMap, start: tuple[int, ...]) -> bool:
    """Whether all of the box at `start` is inside the array."""
    sides = zip(start, tensor_map.shape, tensor_map.box, strict=True)
    return all(0 <= at <= size - side for at, size, side in sides)


def box_chunks(tensor_map: TensorMap, start: tuple[int, ...]) -> tuple[int, Array] | None:
    """(byte offset in the array, offset from there of each 16 bytes of the box at `start`, int64,
    -1 for those outside); None if some are in part outside."""
    if _is_inside(tensor_map, start):
        chunks = _chunks_from_start(tensor_map)
        return None if chunks is None else (_first(tensor_map, start), chunks)
    chunks = _chunks_at_edge(tensor_map, start)
    return None if chunks is None else (0, chunks)


@functools.lru_cache(maxsize=64)
def _chunks_from_start(tensor_map: TensorMap) -> Array | None:
    if row_bytes(tensor_map) % CHUNK_BYTES:
        return None
    return _from_start(tensor_map)[:: CHUNK_BYTES // ELEMENT_BYTES[tensor_map.element]].copy()


@functools.lru_cache(maxsize=256)
def _chunks_at_edge(tensor_map: TensorMap, start: tuple[int, ...]) -> Array | None:
    if row_bytes(tensor_map) % CHUNK_BYTES:
        return None
    offsets, inside = box_offsets(tensor_map, start)
    per = CHUNK_BYTES // ELEMENT_BYTES[tensor_map.element]
    chunks = inside.reshape(-1, per)
    whole = chunks.all(axis=1)
    if (whole != chunks.any(axis=1)).any():
        return None
    return np.where(whole, offsets[::per], -1)


@functools.lru_cache(maxsize=64)
def _from_start(tensor_map: TensorMap) -> Array:
    """Byte offsets of a box's elements from its first one."""
    strides = (ELEMENT_BYTES[tensor_map.element], *tensor_map.strides_bytes)
    offset: Array = np.zeros((), np.int64)
    for dimension, (side, stride) in enumerate(zip(tensor_map.box, strides, strict=True)):
        offset = offset + (np.arange(side) * stride).reshape(-1, *[1] * dimension)
    return offset.ravel()


@functools.lru_cache(maxsize=64)
def _all(count: int) -> Array:
    return np.broadcast_to(np.True_, count)


def sectors(tensor_map: TensorMap, address: int, start: tuple[int, ...], *, load: bool) -> int:
    """Sectors of 32 bytes that a box of the array at `address` moves, row by row.

    A store counts the sectors of the array. A load counts them for each line of 128 bytes of shared
    memory that the row reaches, in chunks of 16 bytes of which any is inside, and the sectors of
    shared memory where all of a chunk is outside: this is how an H200 counted
    130 boxes over every edge.
    """
    if _is_inside(tensor_map, start):  # all that matters is where in a sector it begins
        address, start = (address + _first(tensor_map, start)) % SECTOR_BYTES, (0,) * len(start)
    return _sectors(tensor_map, address, start, load)


@functools.lru_cache(maxsize=4096)
def _sectors(tensor_map: TensorMap, address: int, start: tuple[int, ...], load: bool) -> int:
    step = CHUNK_BYTES // ELEMENT_BYTES[tensor_map.element]
    offsets, inside = box_offsets(tensor_map, start)
    chunks = (row_bytes(tensor_map) // CHUNK_BYTES, step)
    source = (address + offsets).reshape(-1, *chunks)[..., 0] // SECTOR_BYTES
    kept = inside.reshape(-1, *chunks).any(axis=-1)
    row = np.arange(kept.size).reshape(kept.shape) // chunks[0]
    form = image(tensor_map)
    pitch = row_bytes(tensor_map) if form is LINEAR else form.pitch
    to = row * pitch + np.arange(chunks[0]) * CHUNK_BYTES
    line = to // TAG_BYTES if load else np.zeros_like(to)
    read = np.unique(np.stack([row[kept], line[kept], source[kept]]), axis=1)
    if not load:
        return read.shape[1]
    filled = np.unique(np.stack([row[~kept], to[~kept] // SECTOR_BYTES]), axis=1)
    return read.shape[1] + filled.shape[1]
