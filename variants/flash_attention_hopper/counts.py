"""Small sizes of which two, of persistent CTAs three, have the loop of the full problem, to solve
its counts from: with heads of 128 columns, and without keys that a tile of 64 or 128 masks, as
4,096 keys have none."""

from __future__ import annotations

from collections.abc import Mapping

from kernelexp.problem import Axes, Size

SIZES: Mapping[str, Size] = {
    "emulated_whole": {"b": 1, "h": 2, "s": 256, "d": 64, "sms": 2},
    "emulated_blocks": {"b": 1, "h": 3, "s": 256, "d": 64, "sms": 1},
    "emulated128_whole": {"b": 1, "h": 2, "s": 256, "d": 128, "sms": 2},
    "emulated128_more": {"b": 1, "h": 1, "s": 384, "d": 128, "sms": 1},
    "emulated128_blocks": {"b": 1, "h": 3, "s": 256, "d": 128, "sms": 1},
}


def blocks(axes: Axes, size: Size, exports: Mapping[str, int]) -> int | None:
    """Of queries, which persistent CTAs have in turn."""
    if axes["ctas"] != "persistent":
        return None
    return size["b"] * size["h"] * -(-size["s"] // exports["block_m"])
