"""Tensor maps by their bytes, as a driver makes them.

What ptxas makes of `tensormap.replace` is executed as SASS: it puts fields where hardware has them.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kernelexp.system.toolchain import Toolchain
from warpsim import execute, modules
from warpsim.launch import TENSOR_MAP_BYTES, Launch, Pointer
from warpsim.machine.memory import tensor_map_image

FIELDS = {
    "global_address": "b64",
    "rank": "b32",
    "box_dim": "b32",
    "global_dim": "b32",
    "global_stride": "b64",
    "element_stride": "b32",
    "elemtype": "b32",
    "interleave_layout": "b32",
    "swizzle_mode": "b32",
    "fill_mode": "b32",
}
BEGIN = """
.version 8.8
.target sm_90a
.address_size 64
.visible .entry make(.param .u64 out)
{
  .reg .b64 %rd<2>; .reg .b32 %r<40>; .reg .b64 %m; .reg .b32 %t;
  .shared .align 128 .b8 map[128];
  ld.param.u64 %rd0, [out];
  cvta.to.global.u64 %rd1, %rd0;
"""


def made(tools: Toolchain, folder: Path, changes: list[tuple[str, int, int | None]]) -> bytes:
    """The bytes of a map that was all zeros: (field, value, index)."""
    text = [f"st.shared.b32 [map+{at}], 0;" for at in range(0, TENSOR_MAP_BYTES, 4)]
    for field, value, index in changes:
        where = "" if index is None else f" {index},"
        kind = FIELDS[field]
        text.append(
            f"tensormap.replace.tile.{field}.shared::cta.b1024.{kind} [map],{where} {value};"
        )
    for at in range(0, TENSOR_MAP_BYTES, 4):
        text += [f"ld.shared.b32 %t, [map+{at}];", f"st.global.b32 [%rd1+{at}], %t;"]
    (folder / "m.ptx").write_text(BEGIN + "\n".join(text) + "\nret;\n}\n")
    ptxas = str(Path(tools.nvcc).with_name("ptxas"))
    for argv in ([ptxas, "-arch=sm_90a", "m.ptx", "-o", "m.cubin"],):
        subprocess.run(argv, cwd=folder, check=True, capture_output=True)
    listing = subprocess.run(
        [tools.cuobjdump, "-sass", "m.cubin"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    module = modules.load_cubin((folder / "m.cubin").read_bytes(), listing)
    out = np.zeros(TENSOR_MAP_BYTES, np.uint8)
    launch = Launch(
        entry="make", grid=(1, 1, 1), block=(1, 1, 1), arguments=(Pointer(array="out"),)
    )
    execute.run(module, launch, {"out": out})
    return out.tobytes()


ADDRESS = 0x7F12_3456_7800
PLAIN: list[tuple[str, int, int | None]] = [
    ("global_address", ADDRESS, None),
    ("rank", 2, None),
    *(("global_dim", extent, place) for place, extent in enumerate((1000, 300, 7))),
    *(("global_stride", stride, place) for place, stride in enumerate((2048, 0xA_0000_0000 * 16))),
    *(("box_dim", extent, place) for place, extent in enumerate((64, 32, 1))),
    *(("element_stride", 1, place) for place in range(3)),
    ("elemtype", 6, None),
    ("swizzle_mode", 3, None),
]


def test_fields_are_read_where_ptxas_puts_them(tools: Toolchain, tmp_path: Path) -> None:
    address, tensor = tensor_map_image.decode(made(tools, tmp_path, PLAIN), "x")
    assert tensor is not None
    assert (address, tensor.array, tensor.element) == (ADDRESS, "x", "f16")
    assert (tensor.shape, tensor.box, tensor.swizzle) == ((1000, 300, 7), (64, 32, 1), "128B")
    assert tensor.strides_bytes == (2048, 0xA_0000_0000 * 16)


@pytest.mark.parametrize(
    "change",
    [
        ("interleave_layout", 1, None),
        ("fill_mode", 1, None),
        ("element_stride", 2, 1),
        ("elemtype", 11, None),
        ("rank", 6, None),
    ],
)
def test_a_map_of_a_kind_that_is_not_executed_is_none(
    tools: Toolchain, tmp_path: Path, change: tuple[str, int, int | None]
) -> None:
    data = made(tools, tmp_path, [*PLAIN, change])
    assert tensor_map_image.decode(data, "x") == (ADDRESS, None)


def test_other_bytes_are_none(tools: Toolchain, tmp_path: Path) -> None:
    data = made(tools, tmp_path, PLAIN)
    assert tensor_map_image.decode(data[:-8] + struct.pack("<Q", ADDRESS), "x")[1] is None
