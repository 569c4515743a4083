"""A second small size with heads of 128 columns, to solve the counts of size long128 from."""

from __future__ import annotations

from collections.abc import Mapping

from kernelexp.problem import Size

SIZES: Mapping[str, Size] = {
    "emulated128_more": {"b": 1, "h": 2, "s": 512, "d": 128, "sms": 2},
}
