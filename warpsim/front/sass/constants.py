"""Constant bank 0: where the driver puts what a launch is told, by architecture."""

from __future__ import annotations

from warpsim.front.sass.cubin import BLACKWELL, CONSTANTS, HOPPER, CubinEntry
from warpsim.machine.core.image import Bank
from warpsim.machine.memory.constants import WORD
from warpsim.machine.wave.runtime import FUNCTIONS

_EARLIER = {
    0x00: "ntid.x",
    0x04: "ntid.y",
    0x08: "ntid.z",
    0x0C: "nctaid.x",
    0x10: "nctaid.y",
    0x14: "nctaid.z",
    0x20: "local window",
    0x24: "local window+4",
    0x28: "stack",
    0x10C: "nsmid",
    0x114: "nothing",
}
_AMPERE = _EARLIER | {
    0x50: "constant window",
    0x54: "constant window+4",
    0x8C: "workspace+4",
    0x90: "workspace",
    0x18: "shared window",
    0x1C: "shared window+4",
    0x2C: "dynamic shared",
    0x118: "nothing",
    0x11C: "nothing",
}
_HOPPER = _EARLIER | {
    0x2C: "dynamic shared",
    0x30: "nothing",
    0x34: "nothing",
    0x44: "workspace+4",
    0x48: "workspace",
    0x6C: "reserved shared",
    0xC0: "bank 0",  # as in cuBLAS's nvjet, which adds the places of tensor maps in the bank to it
    0xC4: "bank 0+4",
    0xD0: "constant window",
    0xD4: "constant window+4",
    0x208: "nothing",
    0x20C: "nothing",
    0x140: "clusters",
    0x144: "cluster_nctaid.x",
    0x148: "cluster_nctaid.y",
    0x14C: "cluster_nctaid.z",
    0x150: "1/cluster_nctaid.x",
    0x154: "1/cluster_nctaid.y",
    0x158: "1/cluster_nctaid.z",
    0x15C: "nclusterid.x",
    0x160: "nclusterid.y",
    0x164: "nclusterid.z",
    0x188: "cluster_nctarank",
    0x198: "parameters",
    0x19C: "parameters+4",
}
_BLACKWELL = {
    0x120: "constant window",
    0x124: "constant window+4",
    0x140: "nothing",
    0x144: "nothing",
    0x16C: "nothing",
    0x254: "workspace+4",
    0x258: "workspace",
    0x27C: "reserved shared",
    0x2A0: "cluster_nctaid.x",
    0x2A4: "cluster_nctaid.y",
    0x2A8: "cluster_nctaid.z",
    0x2AC: "dynamic shared",
    0x2B0: "1/cluster_nctaid.x",
    0x2B4: "1/cluster_nctaid.y",
    0x2B8: "1/cluster_nctaid.z",
    0x2C0: "nclusterid.x",
    0x2C4: "nclusterid.y",
    0x2C8: "nclusterid.z",
    0x2CC: "cluster_nctarank",
    0x2D0: "nsmid",
    0x36C: "clusters",
    0x37C: "stack",
    0x2F8: "local window",
    0x2FC: "local window+4",
    0x348: "parameters",
    0x34C: "parameters+4",
    0x358: "nothing",
    0x35C: "nothing",
    0x360: "ntid.x",
    0x364: "ntid.y",
    0x368: "ntid.z",
    0x370: "nctaid.x",
    0x374: "nctaid.y",
    0x378: "nctaid.z",
}


def _driver(sm: int) -> dict[int, str]:
    """What the driver fills in besides parameters, by offset."""
    if sm >= BLACKWELL:
        return _BLACKWELL
    return _HOPPER if sm >= HOPPER else _AMPERE


def parameter_names(entry: CubinEntry) -> tuple[str, ...]:
    """What the entry's parameters are called."""
    return tuple(f"parameter {index}" for index in range(len(entry.parameters)))


def bank_0(entry: CubinEntry) -> Bank:
    """Bank 0 of an entry."""
    fields = dict(_driver(entry.sm))
    size = max(fields) + WORD
    for name, parameter in zip(parameter_names(entry), entry.parameters, strict=True):
        place = entry.parameter_base + parameter.offset
        size = max(size, place + parameter.size)
        fields |= {
            place + at: f"{name}+{at}" for at in range(0, parameter.size, WORD) if place % WORD == 0
        }
    return Bank(size=size, fields=fields)


def banks(entry: CubinEntry) -> dict[int, Bank]:
    """All banks of an entry."""
    others = {number: _filled(entry, number) for number in entry.banks}
    return {0: bank_0(entry), **others}


def _filled(entry: CubinEntry, number: int) -> Bank:
    """A bank that the cubin fills in, but for addresses of what only the driver has."""
    known = {variable.name for variable in entry.variables} | set(FUNCTIONS)
    pointers = entry.addresses.get(number, ())
    return Bank(
        size=len(entry.banks[number]),
        variables=entry.constants if number == CONSTANTS else {},
        data=entry.banks[number],
        addresses=tuple(pointer for pointer in pointers if pointer.name in known),
        absent=frozenset(
            pointer.offset + at
            for pointer in pointers
            if pointer.name not in known
            for at in (0, WORD)
        ),
    )
