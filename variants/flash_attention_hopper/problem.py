"""Attention: out = softmax(q k^T / sqrt(d)) v for each head of each sequence, F16 in and out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attention import PEERS, heads, inputs, outputs, peers, reference, tolerance, work

from kernelexp.launch import Launch, Scalar, TensorMap
from kernelexp.problem import Axes, Size

__all__ = ["PEERS", "SIZES", "TERMS", "inputs", "launch", "outputs", "peers", "reference", "tiles"]
__all__ += ["tolerance", "work"]

# With the number of SMs, which are the CTAs if they are persistent.
SIZES: Mapping[str, Size] = {
    "full": {"b": 4, "h": 16, "s": 4096, "d": 64, "sms": 132},
    "long128": {"b": 4, "h": 16, "s": 4096, "d": 128, "sms": 132},
    # That of flash_attention.
    "short": {"b": 1, "h": 8, "s": 512, "d": 64, "sms": 132},
    # Two to five tiles of queries and of keys, of which the last ones are not whole; a CTA has two
    # blocks or three.
    "emulated": {"b": 1, "h": 1, "s": 320, "d": 64, "sms": 1},
    "emulated_more": {"b": 1, "h": 2, "s": 512, "d": 64, "sms": 2},
    "emulated128": {"b": 2, "h": 1, "s": 320, "d": 128, "sms": 2},
}

TERMS: Mapping[str, str] = {
    "threads": "({Config::WARPGROUPS} warpgroups that multiply + 1 that loads) x 128",
    "dynamic_smem_bytes": "{Config::Q_STAGES} x Q {Config::Q_BYTES} B"
    " + {Config::STAGES} stages x 2 x {Config::TILE_BYTES} B of K and V"
    " + barriers {8 * Config::BARRIERS} B",
}


def launch(axes: Axes, size: Size, exports: Mapping[str, int]) -> Launch:
    """Tiles of queries by heads. Arguments: tensor maps of q, k, v and the output, the numbers of
    keys and heads, the scale of the scores for an exponential to base 2.

    Where a head has fewer columns than its tile has room for, the others are zeros.
    """
    if size["d"] > exports["head_dim"]:
        raise ValueError(f"head_dim={exports['head_dim']} has no room for {size['d']} columns")

    def rows(array: str, count: int) -> TensorMap:
        """Of a head, [heads][s][d]: a box ends where its head does."""
        return TensorMap(
            array=array,
            element="f16",
            shape=(size["d"], size["s"], heads(size)),
            strides_bytes=(2 * size["d"], 2 * size["d"] * size["s"]),
            box=(exports["box_columns"], count, 1),
            swizzle="128B",
        )

    blocks = heads(size) * _query_tiles(size, exports)
    persistent = size["sms"] * exports["persistent_ctas_per_sm"]
    return Launch(
        entry="flash_attention",
        grid=(min(blocks, persistent) if persistent else blocks, 1, 1),
        block=(exports["threads"], 1, 1),
        dynamic_smem_bytes=exports["dynamic_smem_bytes"],
        arguments=(
            rows("q", exports["q_box_rows"]),
            rows("k", exports["block_n"]),
            rows("v", exports["block_n"]),
            rows("out", exports["out_box_rows"]),
            Scalar(type="u32", value=size["s"]),
            Scalar(type="u32", value=heads(size)),
            Scalar(type="f32", value=math.log2(math.e) / math.sqrt(size["d"])),
        ),
    )


def _query_tiles(size: Size, exports: Mapping[str, int]) -> int:
    return -(-size["s"] // exports["block_m"])


def tiles(axes: Axes, size: Size, exports: Mapping[str, int]) -> int:
    """Tiles of queries by tiles of keys."""
    return heads(size) * _query_tiles(size, exports) * -(-size["s"] // exports["block_n"])
