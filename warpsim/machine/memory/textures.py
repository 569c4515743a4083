"""What texture and surface objects say, and which texels a coordinate means.

The record of an object lies in device memory, where its handle points: the runtime writes it
(runtime/cudart/textures.cpp). Rules are those of the CUDA Programming Guide, "Texture Fetching":
weights of linear filtering have 8 bits of fraction. In two dimensions, so have those of the four
texels, as an H100 gave them: at 6,144 places none is apart by more than 1.2e-7. With normalized
coordinates 9 of 2,048 were apart by a step of a weight: the card rounds their product with a size.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array

RECORD = struct.Struct("<QQQQ4I4I2I3II4f")
MARK = 0x7872_7574_7072_6177
WRAP, CLAMP, MIRROR, BORDER = range(4)
SIGNED, UNSIGNED, FLOAT = range(3)
_FRACTION = 256
"""Steps of a weight."""


class Texture(NamedTuple):
    """A record."""

    mark: int
    base: int
    pitch: int
    """Bytes from row to row, `slice_bytes` from plane to plane or layer to layer."""
    slice_bytes: int
    width: int
    height: int
    depth: int
    """Layers, of what has any."""
    channels: int
    bits: int
    """Of a channel."""
    kind: int
    scaled: int
    """Whether integers are read as parts of 1."""
    linear: int
    normalized: int
    """Whether coordinates go from 0 to 1."""
    linear_memory: int
    mode_x: int
    mode_y: int
    mode_z: int
    reserved: int
    border: tuple[float, ...]

    @property
    def texel_bytes(self) -> int:
        return self.channels * self.bits // 8

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.width, self.height, self.depth

    @property
    def modes(self) -> tuple[int, int, int]:
        return self.mode_x, self.mode_y, self.mode_z


def read(data: bytes) -> Texture | None:
    """None where the bytes are no record."""
    values = RECORD.unpack(data)
    return Texture._make((*values[:18], values[18:])) if values[0] == MARK else None


def wrapped(index: Array, size: int, mode: int, normalized: bool) -> tuple[Array, Array]:
    """Indices of texels along one dimension, and whether they are in the texture.

    Wrapping and mirroring take normalized coordinates, and are clamping without.
    """
    inside = (index >= 0) & (index < size)
    if mode == BORDER:
        return np.clip(index, 0, size - 1), inside
    whole = np.ones_like(inside)
    if mode == WRAP and normalized:
        return index % size, whole
    if mode == MIRROR and normalized:
        turn = index % (2 * size)
        return np.where(turn < size, turn, 2 * size - 1 - turn), whole
    return np.clip(index, 0, size - 1), whole


def along(texture: Texture, coordinate: Array, dimension: int) -> list[tuple[Array, Array, Array]]:
    """The texels along one dimension that a coordinate (f32) means: index, whether it is in the
    texture, weight (f32)."""
    size = texture.sizes[dimension]
    mode, normalized = texture.modes[dimension], bool(texture.normalized)
    x = coordinate.astype(np.float64) * (size if normalized else 1)
    x = np.nan_to_num(x, posinf=2.0**40, neginf=-(2.0**40))
    if not texture.linear:
        index, inside = wrapped(np.floor(x).astype(np.int64), size, mode, normalized)
        return [(index, inside, np.ones(x.shape, np.float32))]
    x -= 0.5
    first = np.floor(x)
    weight = np.floor((x - first) * _FRACTION + 0.5) / _FRACTION
    places = []
    for step, part in ((0, 1 - weight), (1, weight)):
        index, inside = wrapped(first.astype(np.int64) + step, size, mode, normalized)
        places.append((index, inside, part.astype(np.float32)))
    return places


def corner_weights(places: Sequence[Sequence[tuple[Array, Array, Array]]]) -> list[Array]:
    """The weights (f32) of the texels around a place, the last dimension changing fastest."""
    if len(places) == 2 and len(places[0]) == 2:
        x, y = places[0][1][2], places[1][1][2]
        both = np.floor(x * y * _FRACTION + np.float32(0.5)) / np.float32(_FRACTION)
        return [1 - x - y + both, y - both, x - both, both]
    corners = itertools.product(*places)
    return [functools.reduce(np.multiply, [part for *_, part in corner]) for corner in corners]


def face_of(x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """The face of a cube that a direction meets, and where, from 0 to 1."""
    ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
    on_x, on_y = (ax >= ay) & (ax >= az), (ay >= az)
    face = np.where(on_x, x < 0, np.where(on_y, 2 + (y < 0), 4 + (z < 0))).astype(np.int64)
    major = np.where(on_x, ax, np.where(on_y, ay, az))
    s = np.where(on_x, np.where(x < 0, z, -z), np.where(on_y, x, np.where(z < 0, -x, x)))
    t = np.where(on_x, -y, np.where(on_y, np.where(y < 0, -z, z), -y))
    major = np.where(major == 0, 1, major)
    return face, ((s / major + 1) / 2).astype(np.float32), ((t / major + 1) / 2).astype(np.float32)


def values(texture: Texture, raw: Array) -> Array:
    """Channels as they are read: f32, or integers of 32 bits as uint32; raw: unsigned."""
    if texture.kind == FLOAT:
        return raw.view(np.dtype(f"f{texture.bits // 8}")).astype(np.float32)
    signed = texture.kind == SIGNED
    whole = raw.view(np.dtype(f"{'i' if signed else 'u'}{texture.bits // 8}"))
    if not texture.scaled:
        return whole.astype(np.int64).astype(np.uint32)
    most = (1 << texture.bits - signed) - 1
    return np.maximum(whole.astype(np.float32) / np.float32(most), np.float32(-1))
