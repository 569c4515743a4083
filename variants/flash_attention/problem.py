"""Attention: out = softmax(q k^T / sqrt(d)) v for each head of each sequence, F16 in and out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attention import PEERS, heads, inputs, outputs, peers, reference, tolerance, work

from kernelexp.launch import Launch, Pointer, Scalar
from kernelexp.problem import Axes, Size

__all__ = ["PEERS", "SIZES", "inputs", "launch", "outputs", "peers", "reference", "tiles"]
__all__ += ["tolerance", "work"]

SIZES: Mapping[str, Size] = {
    # The published analysis's shape.
    "full": {"b": 1, "h": 8, "s": 512, "d": 64},
    "long": {"b": 4, "h": 16, "s": 4096, "d": 64},
    # Two tiles of keys, and one to four of queries.
    "emulated": {"b": 1, "h": 1, "s": 128, "d": 64},
    "emulated_more": {"b": 1, "h": 2, "s": 256, "d": 64},
}


def launch(axes: Axes, size: Size, exports: Mapping[str, int]) -> Launch:
    """Tiles of queries by heads. Arguments: q, k, v, the output, the number of keys, the scale."""
    for name in ("block_m", "block_n"):
        if size["s"] % exports[name]:
            raise ValueError(f"{name}={exports[name]} does not divide {size['s']} queries or keys")
    if size["d"] != exports["head_dim"]:
        raise ValueError(f"the kernel has {exports['head_dim']} columns a head, not {size['d']}")
    # From phase 5 on the exponential is to base 2.
    scale = math.log2(math.e) if axes["phase"] in (5, 6, 7) else 1.0
    return Launch(
        entry="flash_attention",
        grid=(size["s"] // exports["block_m"], heads(size), 1),
        block=(exports["threads"], 1, 1),
        arguments=(
            *(Pointer(array=name) for name in ("q", "k", "v", "out")),
            Scalar(type="u32", value=size["s"]),
            Scalar(type="f32", value=scale / math.sqrt(size["d"])),
        ),
    )


def tiles(axes: Axes, size: Size, exports: Mapping[str, int]) -> int:
    """Tiles of queries by tiles of keys."""
    return heads(size) * (size["s"] // exports["block_m"]) * (size["s"] // exports["block_n"])
