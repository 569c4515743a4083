"""Accesses to memory by kind and width: what an instruction moves for a thread."""

from __future__ import annotations

import re

import msgspec

KINDS = (
    "global load",
    "global store",
    "shared load",
    "shared store",
    "local load",
    "local store",
    "generic load",
    "generic store",
    "copy to shared",
    "matrix load",
    "matrix store",
    "remote store",
    "tensor memory load",
    "tensor memory store",
)
"""In the order in which they are shown."""

COMPARED = KINDS[:6]
"""Those whose widths in PTX and in SASS compare: of a named space, by threads of their own."""

_OPCODES = {
    "LDG": "global load",
    "STG": "global store",
    "LDS": "shared load",
    "STS": "shared store",
    "LDL": "local load",
    "STL": "local store",
    "LD": "generic load",
    "ST": "generic store",
    "LDGSTS": "copy to shared",
    "LDSM": "matrix load",
    "STSM": "matrix store",
    "STAS": "remote store",
    "LDTM": "tensor memory load",
    "STTM": "tensor memory store",
}
_WIDTHS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}
_SHAPE = re.compile(r"(\d+)dp(\d+)bit|(\d+)x(\d+)b(?:x2)?")
_LANES = 32


class Access(msgspec.Struct, frozen=True, order=True):
    """The kind and the width of one instruction's access."""

    kind: str
    bits: int
    """For a thread; 0 where the instruction does not say."""


def of_sass(mnemonic: str) -> Access | None:
    """The access of an instruction such as LDG.E.128; None of one that is no such access."""
    opcode, *modifiers = mnemonic.split(".")
    kind = _OPCODES.get(opcode)
    if kind is None:
        return None
    if kind.startswith("matrix"):  # LDSM.16.M88.4: of four matrices
        count = "".join(modifiers[-1:])
        return Access(kind, 32 * (int(count) if count in ("2", "4") else 1))
    if kind.startswith("tensor"):
        return Access(kind, tensor_bits(modifiers))
    return Access(
        kind, next((_WIDTHS[modifier] for modifier in modifiers if modifier in _WIDTHS), 32)
    )


def tensor_bits(parts: list[str]) -> int:
    """Returns the bits of an access to tensor memory, by what its name says after the dots.

    Lanes times bits times repetitions, for each thread; 32 lanes of 32 bits where SASS is silent.
    """
    shape = next(filter(None, map(_SHAPE.fullmatch, parts)), None)
    lanes, bits = (int(group) for group in shape.groups() if group) if shape else (_LANES, 32)
    return lanes * bits * times(parts) // _LANES


def times(parts: list[str]) -> int:
    """The 4 of `x4`; 1 where there is none."""
    return next((int(part[1:]) for part in parts if re.fullmatch(r"x\d+", part)), 1)
