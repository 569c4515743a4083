"""tex, suld and sust: textures and surfaces by the handles of their objects."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable

import numpy as np

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Address, Operand
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.memory import textures
from warpsim.machine.memory.layout import GLOBAL_BASE
from warpsim.machine.memory.textures import Texture
from warpsim.machine.wave.machine import Op, WarpSet

_COORDINATES = {
    **{"1d": "x", "2d": "xy", "3d": "xyz", "cube": "xyz"},
    **{"a1d": "lx", "a2d": "lxy", "acube": "lxyz"},
}
"""What a coordinate of each geometry has: a layer first."""
_GEOMETRY = "{g:1d|2d|3d|a1d|a2d|cube|acube}"
_CHANNELS = 4


@builder("tex{l:|.level|.grad}." + _GEOMETRY + ".v4.{t:f32|u32|s32}.{c:f32|s32}")
def tex(d: PtxDecoder) -> Op:
    """By an object, of one level: what .level and .grad say of others has no effect."""
    geometry = next(part for part in d.parts if part in _COORDINATES)
    kind, whole = d.parts[-2], d.parts[-1] == "s32"
    handle, coordinates = _place(d, d.operands[1], len(_COORDINATES[geometry]))
    writers = [d.loaded(slot, kind) for slot in d.destinations(d.operands[0], _CHANNELS)]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        given = [R[slot] for slot in coordinates]
        for texture, among in _objects(d, warps, R[handle], m):
            fetch = functools.partial(_fetched, d, warps, texture, among)
            channels = _sampled(texture, geometry, given, whole, fetch)
            for index, write in enumerate(writers):
                write(R, channels[..., index], among)

    return op


def _fetched(
    d: PtxDecoder, warps: WarpSet, texture: Texture, among: Mask, address: Array, inside: Array
) -> Array:
    """The channels of a texel for each lane."""
    access = AccessKind(d.site, texture.bits // 8, texture.channels, store=False, coherent=False)
    where = np.where(inside, address, texture.base).astype(np.uint64)
    raw = warps.machine.spaces["global"].load(warps, where, access, _both(among, inside))
    raw = raw[..., None] if texture.channels == 1 else raw
    return textures.values(texture, np.ascontiguousarray(raw))


def _sampled(
    texture: Texture,
    geometry: str,
    given: list[Array],
    whole: bool,
    fetch: Callable[[Array, Array], Array],
) -> Array:
    """Four channels for each lane, as bits."""
    names = _COORDINATES[geometry]
    floats = {name: bits.view(np.float32) for name, bits in zip(names, given, strict=False)}
    layer = given[0].view(np.int32).astype(np.int64) if names[0] == "l" else None
    if "cube" in geometry:
        face, floats["x"], floats["y"] = textures.face_of(floats["x"], floats["y"], floats["z"])
        layer = face if layer is None else face + 6 * layer
    axes = "xy" if "cube" in geometry else names.replace("l", "")
    if whole:
        index = given[names.index("x")].view(np.int32).astype(np.int64)
        inside = (index >= 0) & (index < texture.width)
        places = [[(np.clip(index, 0, texture.width - 1), inside, np.ones(1, np.float32))]]
    else:
        places = [textures.along(texture, floats[name], at) for at, name in enumerate(axes)]
    shape = given[0].shape
    total: Array | None = None
    weights = textures.corner_weights(places)
    for corner, weight in zip(itertools.product(*places), weights, strict=True):
        address, inside = np.full(shape, texture.base, np.int64), np.ones(shape, bool)
        strides = (texture.texel_bytes, texture.pitch, texture.slice_bytes)
        for (index, within, _), stride in zip(corner, strides, strict=False):
            address, inside = address + index * stride, inside & within
        if layer is not None:
            address += np.clip(layer, 0, texture.depth - 1) * texture.slice_bytes
        read = fetch(address, inside)
        border = np.array(texture.border[: texture.channels], np.float32).astype(read.dtype)
        read = np.where(inside[..., None], read, border)
        if len(places[0]) == 1:
            total = read
            break
        part = read * weight[..., None]
        total = part if total is None else total + part
    assert total is not None
    channels = np.zeros((*shape, _CHANNELS), np.uint32)
    channels[..., : texture.channels] = np.ascontiguousarray(total).view(np.uint32)
    return channels


_SURFACE = "{g:1d|2d|3d|a1d|a2d}{v:|.v2|.v4}.{t:b8|b16|b32|b64}{k:|.trap|.clamp|.zero}"


@builder("suld.b." + _SURFACE)
def suld(d: PtxDecoder) -> Op:
    """x counts bytes. Out of the surface, `.trap` is a finding; others read zeros."""
    element, elements, geometry = _surface(d)
    handle, coordinates = _place(d, d.operands[1], len(_COORDINATES[geometry]))
    kind = f"b{8 * element}"
    writers = [d.loaded(slot, kind) for slot in d.destinations(d.operands[0], elements)]
    access = AccessKind(d.site, element, elements, store=False, coherent=False)
    d.note_unit("global", element)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for texture, among in _objects(d, warps, R[handle], m):
            address, inside = _texel(texture, geometry, [R[slot] for slot in coordinates])
            traps = not {"clamp", "zero"} & set(d.parts)
            lanes = among if traps else _both(among, inside)
            values = warps.machine.spaces["global"].load(warps, address, access, lanes)
            values = values[..., None] if elements == 1 else values
            values = np.where(inside[..., None], values, 0).astype(values.dtype)
            for index, write in enumerate(writers):
                write(R, np.ascontiguousarray(values[..., index]), among)

    return op


@builder("sust.b." + _SURFACE)
def sust(d: PtxDecoder) -> Op:
    """x counts bytes. Out of the surface, `.trap` is a finding; others write nothing."""
    element, elements, geometry = _surface(d)
    handle, coordinates = _place(d, d.operands[0], len(_COORDINATES[geometry]))
    sources = d.sources(d.operands[1], f"b{8 * element}", elements)
    access = AccessKind(d.site, element, elements, store=True)
    d.note_unit("global", element)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for texture, among in _objects(d, warps, R[handle], m):
            address, inside = _texel(texture, geometry, [R[slot] for slot in coordinates])
            traps = not {"clamp", "zero"} & set(d.parts)
            parts = [R[slot] for slot in sources]
            values = parts[0] if elements == 1 else np.stack(parts, axis=-1)
            values = values.astype(np.dtype(f"u{element}"), copy=False)
            lanes = among if traps else _both(among, inside)
            warps.machine.spaces["global"].store(warps, address, values, access, lanes)

    return op


def _surface(d: PtxDecoder) -> tuple[int, int, str]:
    """Bytes of an element, elements, geometry."""
    kind = next(part for part in d.parts if re.fullmatch(r"b\d+", part) and part != "b")
    vector = next((part for part in d.parts if re.fullmatch(r"v[24]", part)), "v1")
    geometry = next(part for part in d.parts if part in _COORDINATES)
    return int(kind[1:]) // 8, int(vector[1:]), geometry


def _place(d: PtxDecoder, operand: Operand, count: int) -> tuple[int, list[int]]:
    """The slots of the handle and of the coordinates, without those that fill up a vector."""
    if not isinstance(operand, Address) or len(operand.extra) != 1:
        raise d.refuse("takes a sampler of its own, which is not covered by the emulator")
    (vector,) = operand.extra
    items = getattr(vector, "items", (vector,))
    return d.source(operand.base, "b64"), [d.source(item, "b32") for item in items[:count]]


def _texel(texture: Texture, geometry: str, given: list[Array]) -> tuple[Array, Array]:
    """Addresses, and whether they are in the surface: others are past its end."""
    numbers = [bits.view(np.int32).astype(np.int64) for bits in given]
    names = _COORDINATES[geometry]
    at = dict(zip(names, numbers, strict=False))
    x, y = at["x"], at.get("y", np.zeros_like(at["x"]))
    z = at.get("z", at.get("l", np.zeros_like(x)))
    inside = (x >= 0) & (x < texture.width * texture.texel_bytes)
    inside &= (y >= 0) & (y < texture.height) & (z >= 0) & (z < texture.depth)
    address = texture.base + x + y * texture.pitch + z * texture.slice_bytes
    beyond = texture.base + texture.slice_bytes * texture.depth
    return np.where(inside, address, beyond).astype(np.uint64), inside


def _both(m: Mask, also: Array) -> Mask:
    return also if m is True or m is None else m & also


def _objects(d: PtxDecoder, warps: WarpSet, handles: Array, m: Mask) -> list[tuple[Texture, Mask]]:
    """The objects that lanes name, and which lanes do."""
    active = warps.active(m)
    found = []
    for handle in np.unique(handles[active]).tolist():
        data = warps.machine.world.arena.data
        at = handle - GLOBAL_BASE
        room = 0 <= at <= len(data) - textures.RECORD.size
        texture = textures.read(bytes(data[at : at + textures.RECORD.size])) if room else None
        if texture is None:
            raise d.refuse(f"names {handle:#x}, which is not a texture or surface object")
        found.append((texture, active & (handles == handle)))
    return found
