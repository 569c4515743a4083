"""Files of Triton beside the PTX or the cubin of a kernel: its launch, and its signature.

In its cache a kernel has a folder with NAME.json, which holds the number of warps and the bytes of
shared memory, and NAME.ttir, whose function has the parameters with their names and types.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from kernelexp.model.decoding import decode

_FUNCTION = re.compile(r"tt\.func public @\w+\((.*?)\)\s*(?:->|attributes|\{)", re.S)
_PARAMETER = re.compile(r"%(\w+):\s*(?:!tt\.ptr<(\w+)[^>]*>|([fi]\d+|bf16))")
_TYPES = {
    **{"f16": "__half", "bf16": "__nv_bfloat16", "f32": "float", "f64": "double"},
    **{"f8E4M3FN": "__nv_fp8_e4m3", "f8E5M2": "__nv_fp8_e5m2"},
    **{"i1": "bool", "i8": "signed char", "i16": "short", "i32": "int", "i64": "long"},
}


class LaunchNotes(msgspec.Struct, frozen=True, kw_only=True):
    """The launch of a kernel, as far as files next to it say."""

    threads: int = 0
    dynamic_smem_bytes: int = 0
    parameters: tuple[str, ...] = ()
    """As C++ would declare them."""


class _Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """NAME.json."""

    num_warps: int = 0
    shared: int = 0


def read(path: Path) -> LaunchNotes:
    """Reads the notes beside a file; empty where Triton did not make it."""
    try:
        metadata = decode(path.with_suffix(".json").read_bytes(), _Metadata)
        function = _FUNCTION.search(path.with_suffix(".ttir").read_text("utf-8"))
    except (OSError, UnicodeDecodeError, msgspec.DecodeError):
        return LaunchNotes()
    return LaunchNotes(
        threads=32 * metadata.num_warps,
        dynamic_smem_bytes=metadata.shared,
        parameters=tuple(_declare(*item) for item in _PARAMETER.findall(function[1]))
        if function
        else (),
    )


def _declare(name: str, element: str, scalar: str) -> str:
    kind = element or scalar
    return f"{_TYPES.get(kind, kind)}{'*' if element else ''} {name}"
