"""The bytes of tensor maps as hardware has them: what ptxas makes of `tensormap.replace`, executed
as SASS, puts the fields in their places."""

from __future__ import annotations

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


def made(tools: Toolchain, changes: list[tuple[str, int, int | None]]) -> bytes:
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
    argv = [tools.ptxas, "-arch=sm_90a", "m.ptx", "-o", "m.cubin"]
    cubin = kept.run(argv, {"m.ptx": BEGIN + "\n".join(text) + "\nret;\n}\n"}, "m.cubin")
    listing = kept.run([tools.cuobjdump, "-sass", "m.cubin"], {"m.cubin": cubin}).decode()
    module = modules.load_cubin(cubin, listing)
    out = np.zeros(TENSOR_MAP_BYTES, np.uint8)
    launch = Launch(
        entry="make", grid=(1, 1, 1), block=(1, 1, 1), arguments=(Pointer(array="out"),)
    )
    execute.run(module, launch, {"out": out})
    return out.tobytes()
