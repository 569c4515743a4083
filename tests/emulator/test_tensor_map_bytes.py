"""Tensor maps by their bytes, as a driver makes them."""

from __future__ import annotations

import functools

import pytest
from tensor_map_bytes import Change, made_each

from kernelexp.system.toolchain import Toolchain
from warpsim.launch import TensorMap
from warpsim.machine.memory import tensor_map_image

ADDRESS = 0x7F12_3456_7800
PLAIN: list[Change] = [
    ("global_address", ADDRESS, None),
    ("rank", 2, None),
    *(("global_dim", extent, place) for place, extent in enumerate((1000, 300, 7))),
    *(("global_stride", stride, place) for place, stride in enumerate((2048, 0xA_0000_0000 * 16))),
    *(("box_dim", extent, place) for place, extent in enumerate((64, 32, 1))),
    *(("element_stride", 1, place) for place in range(3)),
    ("elemtype", 6, None),
    ("swizzle_mode", 3, None),
]
OTHERS: list[Change] = [
    ("interleave_layout", 1, None),
    ("fill_mode", 1, None),
    ("element_stride", 2, 1),
    ("elemtype", 11, None),
    ("rank", 6, None),
]
"""What a map has in place of PLAIN's to be of a kind that is not executed."""


@functools.cache
def maps(tools: Toolchain) -> dict[Change | None, bytes]:
    """The bytes of a plain map, and those with each of the others."""
    kinds = [None, *OTHERS]
    changes = [PLAIN if other is None else [*PLAIN, other] for other in kinds]
    return dict(zip(kinds, made_each(tools, changes), strict=True))


def test_fields_are_read_where_ptxas_puts_them(tools: Toolchain) -> None:
    address, tensor = tensor_map_image.decode(maps(tools)[None], "x")
    assert tensor is not None
    assert (address, tensor.array, tensor.element) == (ADDRESS, "x", "f16")
    assert (tensor.shape, tensor.box, tensor.swizzle) == ((1000, 300, 7), (64, 32, 1), "128B")
    assert tensor.strides_bytes == (2048, 0xA_0000_0000 * 16)


@pytest.mark.parametrize("change", OTHERS)
def test_a_map_of_a_kind_that_is_not_executed_is_none(tools: Toolchain, change: Change) -> None:
    assert tensor_map_image.decode(maps(tools)[change], "x") == (ADDRESS, None)


def test_bytes_where_another_dimension_would_be_are_none(tools: Toolchain) -> None:
    data = bytearray(maps(tools)[None])
    data[0x20 + 4 * 3] = 1
    assert tensor_map_image.decode(bytes(data), "x")[1] is None


TRITON = (
    "0012f26b587f0000906304004000000000000000000000000000000000000000ff000000ff000000"
    "0000000000000000000000000000001f3f00000000000000002000000000000000040000"
)
"""Of 256 x 256 floats in blocks of 64 x 32, as driver 580 made it for Triton 3.6."""


def test_a_map_that_a_driver_made_is_read() -> None:
    address, tensor = tensor_map_image.decode(bytes.fromhex(TRITON).ljust(128, b"\0"), "x")
    assert tensor is not None
    assert (address, tensor.element, tensor.swizzle) == (0x7F58_6BF2_1200, "f32", "128B")
    assert (tensor.shape, tensor.strides_bytes, tensor.box) == ((256, 256), (1024,), (32, 64))


def test_the_second_half_of_a_map_may_be_the_next_one() -> None:
    maps = tensor_map_image.TensorMaps(0)
    placed = [
        tensor_map_image.PlacedMap(
            TensorMap(array="x", element="f16", shape=(64, n), strides_bytes=(128,), box=(64, 8)), 0
        )
        for n in (16, 32)
    ]
    first, second = (maps.add(item) for item in placed)
    used = tensor_map_image.USED
    assert maps.find(first[:used] + second[:used]) == placed[0]
    assert maps.find(second) == placed[1]


def test_a_map_is_known_without_the_bit_that_cutlass_clears() -> None:
    maps = tensor_map_image.TensorMaps(0)
    tensor = TensorMap(array="x", element="f16", shape=(64, 8), strides_bytes=(128,), box=(64, 8))
    placed = [tensor_map_image.PlacedMap(tensor, 4096 * number) for number in range(8)]
    for item, image in [(item, maps.add(item)) for item in placed]:
        data = bytearray(image)
        data[0x0A] &= ~(1 << 5)  # bit 21 of the second word of 64 bits
        assert maps.find(bytes(data)) == item
        data[0x08] ^= 1
        assert maps.find(bytes(data)) is None
