"""Tensor copies: boxes inside and over the edges, swizzled, multicast, stored, reduced."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpsim.launch import Element, Scalar, Swizzle, TensorMap

from .case import POISON, Array, Case, case, output, u32, words
from .values import operands

_ELEMENT_BYTES: dict[Element, int] = {"u8": 1, "u16": 2, "bf16": 2, "f16": 2, "u32": 4, "f32": 4}

_CORNERS = [(0, 0), (1, 3), (-1, -2), (-2, 17), (2, 19), (3, 21), (4, 24), (-20, 4), (1, -40)]
"""Where boxes begin: (units of 16 bytes, rows). A box that begins elsewhere along the contiguous
dimension ends in CUDA_ERROR_ILLEGAL_INSTRUCTION."""


def _coordinates(corners: list[tuple[int, int]], element: Element) -> Array:
    step = 16 // _ELEMENT_BYTES[element]
    return np.array([(x * step, y) for x, y in corners], np.int32).reshape(-1).view(np.uint32)


def _map(
    array: str, element: Element, shape: tuple[int, int], box: tuple[int, int], swizzle: Swizzle
) -> TensorMap:
    return TensorMap(
        array=array,
        element=element,
        shape=shape,
        strides_bytes=(_pitch(shape, element),),
        box=box,
        swizzle=swizzle,
    )


def _pitch(shape: tuple[int, int], element: Element) -> int:
    return -(-shape[0] * _ELEMENT_BYTES[element] // 16) * 16


def tma_cases() -> Iterator[Case]:
    yield from _tma_loads()
    for size in (2, 4):
        arrays: dict[str, Array] = {"data": words("multicast", 64 * 8 * size // 4).view(np.uint8)}
        arrays["masks"] = np.array([3, 2, 13, 9][:size], np.uint32) & np.uint32((1 << size) - 1)
        arrays["out"] = output(64 * 8 * size * size // 4)
        tensor = _map("data", "u8", (64, 8 * size), (64, 8), "64B")
        yield case(
            f"multicast {size}", "tma_multicast", size, 64, arrays, "out", u32(64 * 8),
            cluster=size, smem=64 * 8 * size, first=(tensor,), hidden=("data",),
        )  # fmt: skip


def _tma_loads() -> Iterator[Case]:
    forms: list[tuple[Element, tuple[int, int], tuple[int, int], Swizzle, int]] = [
        ("u8", (48, 24), (16, 8), "none", 0),
        ("u8", (50, 24), (48, 5), "none", 128),
        ("u8", (48, 24), (32, 16), "32B", 0),
        ("u8", (70, 24), (64, 16), "64B", 0),
        ("u8", (140, 24), (128, 16), "128B", 0),
        ("u8", (140, 24), (128, 8), "128B", 384),
        ("u16", (36, 24), (64, 10), "128B", 0),
        ("bf16", (36, 24), (16, 12), "32B", 128),
        ("f32", (36, 24), (16, 6), "64B", 256),
        ("u32", (36, 24), (8, 3), "none", 0),
    ]
    for element, shape, box, swizzle, offset in forms:
        pitch = _pitch(shape, element)
        box_bytes = box[0] * box[1] * _ELEMENT_BYTES[element]
        data = words(f"tma/{element}/{shape}", pitch * shape[1] // 4).view(np.uint8)
        if element in ("bf16", "f32"):
            data &= 0xBF  # no NaN or infinity
        span = (offset + box_bytes) // 4 * len(_CORNERS)
        arrays: dict[str, Array] = {
            "data": data,
            "coordinates": _coordinates(_CORNERS, element),
            "out": output(span),
        }
        yield case(
            f"load {element} {box[0]}x{box[1]} {swizzle}" + (f" +{offset}" if offset else ""),
            "tma_load", len(_CORNERS), 64, arrays, "out", u32(box_bytes), u32(offset),
            smem=offset + box_bytes, first=(_map("data", element, shape, box, swizzle),),
            hidden=("data",),
        )  # fmt: skip
    for name, x, y in (("inside", 0, 0), ("right", 32, 0), ("below", 0, 20), ("outside", 64, 30)):
        arrays = {"data": words("transactions", 48 * 24 // 4).view(np.uint8), "out": output(2)}
        yield case(
            f"transactions {name}", "tma_transactions", 1, 32, arrays, "out",
            Scalar(type="s32", value=x), Scalar(type="s32", value=y), u32(16 * 8), smem=16 * 8,
            first=(_map("data", "u8", (44, 24), (16, 8), "none"),), hidden=("data",),
        )  # fmt: skip


def tma_store_cases() -> Iterator[Case]:
    """Stores and reductions of boxes that begin inside: an H200 refused some that began before."""
    forms: list[tuple[Element, tuple[int, int], tuple[int, int], Swizzle]] = [
        ("u8", (80, 40), (16, 8), "none"),
        ("u8", (80, 40), (32, 8), "32B"),
        ("u16", (80, 40), (32, 8), "64B"),
        ("u32", (80, 40), (32, 8), "128B"),
    ]
    # No two boxes share a row, so that the order in which CTAs store does not matter.
    corners = [(0, 3), (4, 12), (2, 36), (11, 22)]
    for element, shape, box, swizzle in forms:
        size = _pitch(shape, element) * shape[1]
        box_bytes = box[0] * box[1] * _ELEMENT_BYTES[element]
        arrays: dict[str, Array] = {
            "data": np.full(size, POISON, np.uint8),
            "coordinates": _coordinates(corners, element),
            "unused": output(4),
        }
        yield case(
            f"store {element} {box[0]}x{box[1]} {swizzle}", "tma_store", len(corners), 64, arrays,
            "data", u32(box_bytes), smem=box_bytes,
            first=(_map("data", element, shape, box, swizzle),), hidden=("data",),
        )  # fmt: skip
    for element in ("u32", "f32", "f16", "bf16"):
        kind = {"u32": "u32", "f32": "f32", "f16": "f16x2", "bf16": "bf16x2"}[element]
        box = (64 // _ELEMENT_BYTES[element], 8)
        a, target = operands((kind, kind), f"tma_reduce/{element}", 5 * 64 * 8 // 4)
        full = np.resize(target, 192 * 40 // 4)
        arrays = {"data": full, "a": a, "coordinates": _coordinates(corners, element)}
        shape = (192 // _ELEMENT_BYTES[element], 40)
        yield case(
            f"reduce add {element}", "tma_reduce_add", len(corners), 64, arrays, "data",
            u32(64 * 8), smem=64 * 8, first=(_map("data", element, shape, box, "64B"),),
            hidden=("data",),
        )  # fmt: skip
