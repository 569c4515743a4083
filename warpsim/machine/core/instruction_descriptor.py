"""What the instruction descriptor of a tcgen05.mma says, and whether there is such an operation."""

from __future__ import annotations

import functools

_F8F6F4 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
_TYPES = {
    "f8f6f4": _F8F6F4,
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "mxf8f6f4": _F8F6F4,
    "mxf4": {1: "e2m1"},
    "mxf4nvf4": {1: "e2m1"},
}
_ELEMENT = {"f16": 2, "tf32": 4}
CODE_BITS = {"e2m3": 6, "e3m2": 6, "e2m1": 4}
"""Of the types narrower than a byte."""

RESERVED = 1 << 6 | 1 << 23 | 1 << 29
_SHIFT = 3 << 30
"""The largest shift of B, which `.ws` alone has."""
_RESERVED_SCALED = 3 | 1 << 3 | 1 << 6 | 7 << 24 | 1 << 31
_RESERVED_MXF4 = _RESERVED_SCALED | 1 << 12
"""With bit 31, K = 96, which sm_103a alone has."""


class DescriptorFields:
    """The fields of a descriptor, and what the opcode says (PTX ISA, "Instruction descriptor",
    Tables 42 to 44)."""

    def __init__(
        self, value: int, kind: str, group: int, *, stationary: bool = False, scales: int = 0
    ) -> None:
        """group: CTAs; stationary: `.ws`; scales: factors per row, 0 without `.block_scale`."""
        self.kind = kind
        self.group = group
        self.stationary = stationary
        self.scales = scales
        self.n = (value >> 17 & 0x3F) << 3
        self.m = (value >> 24 & 0x1F) << 4
        self.transpose_a, self.transpose_b = bool(value >> 15 & 1), bool(value >> 16 & 1)
        self.negate_a, self.negate_b = bool(value >> 13 & 1), bool(value >> 14 & 1)
        self.a_signed, self.b_signed = bool(value >> 7 & 1), bool(value >> 10 & 1)
        types = _TYPES.get(kind, {})
        self.a_type, self.b_type = types.get(value >> 7 & 7, ""), types.get(value >> 10 & 7, "")
        self.sparse = bool(value >> 2 & 1)
        self.d_type, self.saturate = "f32", False
        self.scale_type, self.a_scale_id, self.b_scale_id = "", 0, 0
        if scales:
            self.m &= ~0x7F
            self.scale_type = "ue8m0" if value >> 23 & 1 else "ue4m3"
            self.a_scale_id, self.b_scale_id = value >> 29 & 3, value >> 4 & 3
            reserved = _RESERVED_SCALED if kind == "mxf8f6f4" else _RESERVED_MXF4
        else:
            self.d_type = {0: "f16", 1: "f32", 2: "s32"}.get(value >> 4 & 3, "")
            self.saturate = bool(value >> 3 & 1)
            reserved = RESERVED if stationary else RESERVED | _SHIFT
        self.reserved = value & reserved

    @property
    def element(self) -> int:
        """Bytes of an element of A and B; two of mxf4 share one."""
        return _ELEMENT.get(self.kind, 1)

    @property
    def paired(self) -> bool:
        """Whether a byte holds two elements of four bits."""
        return self.kind in ("mxf4", "mxf4nvf4")

    @property
    def parts(self) -> int:
        """Into how many parts N is split, each in its share of the lanes (PTX ISA, "Data path
        layout organization"; CUTLASS, tmem_frg and tmem_frg_ws): layout B two, E two, G four."""
        if self.stationary:
            return 128 // self.m
        return 2 if self.m == 128 and self.group == 2 else 1

    @functools.cached_property
    def faults(self) -> list[str]:
        """What makes it impossible."""
        faults = []
        if self.reserved:
            faults.append(f"{self.reserved:#x} in the reserved bits of an instruction descriptor")
        if self.saturate and self.kind != "i8":
            faults.append(f"saturation with kind::{self.kind}")
        faults += self._size_faults()
        if self.kind != "i8" and not (self.a_type and self.b_type):
            faults.append(f"an operand type that kind::{self.kind} does not have")
        types = {"i8": ("s32",), "f16": ("f16", "f32"), "f8f6f4": ("f16", "f32")}
        if self.d_type not in types.get(self.kind, ("f32",)):
            faults.append(f"D type {self.d_type or 'reserved'} with kind::{self.kind}")
        for name, transposed in ((self.a_type, self.transpose_a), (self.b_type, self.transpose_b)):
            if transposed and name in CODE_BITS:
                faults.append(f"a transposed matrix of {name}")
        return faults + (self._scale_faults() if self.scales else [])

    def _size_faults(self) -> list[str]:
        if self.stationary:
            right = self.m in (32, 64, 128) and self.n in (64, 128, 256)
            return [] if right else [f"M = {self.m} and N = {self.n} with .ws"]
        smallest = 128 if self.scales or self.group == 2 else 64
        faults = []
        if self.m not in (smallest, 128 * self.group):
            faults.append(f"M = {self.m} with cta_group::{self.group}")
        step = 8 if self.group == 1 else 16
        coarse = self.m == 128 and not self.scales
        if self.n % step or not step <= self.n <= 256 or (coarse and self.n % 16):
            faults.append(f"N = {self.n} with M = {self.m} and cta_group::{self.group}")
        return faults

    def _scale_faults(self) -> list[str]:
        faults = []
        if self.scale_type == "ue4m3" and (self.kind, self.scales) != ("mxf4nvf4", 4):
            faults.append(
                f"scale factors of UE4M3 with kind::{self.kind} and {self.scales} per row"
            )
        for name, at in (("A", self.a_scale_id), ("B", self.b_scale_id)):
            if at % self.scales:
                faults.append(f"scale factors of {name} with the ID {at}, {self.scales} per row")
        return faults


@functools.lru_cache(maxsize=256)
def shape_of(
    value: int, kind: str, group: int, *, stationary: bool = False, scales: int = 0
) -> DescriptorFields:
    """The same for the same: a kernel has few of them."""
    return DescriptorFields(value, kind, group, stationary=stationary, scales=scales)
