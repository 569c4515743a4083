"""The bytes of tensor maps as hardware has them: what ptxas makes of `tensormap.replace`, executed
as SASS, puts the fields in their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import kept
import numpy as np

from kernelexp.system.toolchain import Toolchain
from warpsim import execute, modules
from warpsim.launch import TENSOR_MAP_BYTES, Launch, Pointer

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


Change: TypeAlias = tuple[str, int, int | None]
"""A field, what it is replaced by, and the index where it has several."""


def made(tools: Toolchain, changes: Sequence[Change]) -> bytes:
    """The bytes of a map that was all zeros."""
    return made_each(tools, [changes])[0]


def made_each(tools: Toolchain, maps: Sequence[Sequence[Change]]) -> list[bytes]:
    """What made() returns of each; in less time, as their code is disassembled together."""
    argv = [tools.ptxas, "-arch=sm_90a", "m.ptx", "-o", "m.cubin"]
    cubins = [kept.run(argv, {"m.ptx": _ptx(changes)}, "m.cubin") for changes in maps]
    launch = Launch(
        entry="make", grid=(1, 1, 1), block=(1, 1, 1), arguments=(Pointer(array="out"),)
    )
    images = []
    for cubin, listing in zip(cubins, kept.listings(tools.cuobjdump, cubins), strict=True):
        out = np.zeros(TENSOR_MAP_BYTES, np.uint8)
        execute.run(modules.load_cubin(cubin, listing), launch, {"out": out})
        images.append(out.tobytes())
    return images


def _ptx(changes: Sequence[Change]) -> str:
    text = [f"st.shared.b32 [map+{at}], 0;" for at in range(0, TENSOR_MAP_BYTES, 4)]
    for field, value, index in changes:
        where = "" if index is None else f" {index},"
        kind = FIELDS[field]
        text.append(
            f"tensormap.replace.tile.{field}.shared::cta.b1024.{kind} [map],{where} {value};"
        )
    for at in range(0, TENSOR_MAP_BYTES, 4):
        text += [f"ld.shared.b32 %t, [map+{at}];", f"st.global.b32 [%rd1+{at}], %t;"]
    return BEGIN + "\n".join(text) + "\nret;\n}\n"
