"""The arrays of an entry's static shared memory, by the PTX that a cubin has of it.

A cubin's symbols do not name them. With line information (-lineinfo) it has the PTX, whose arrays
ptxas lays out in the order of their declaration, each as it is aligned: 42 random entries for
sm_80, sm_90a and sm_100a by ptxas 13.0 are so. Where the sum is not the size of the section, as
with arrays of a function that is called, nothing is known of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpsim.machine.core.image import Variable

SECTION = ".nv_debug_ptx_txt"
DYNAMIC = "dynamic"
_DECLARED = re.compile(
    r"\.shared\s+(?:\.align\s+(\d+)\s+)?\.[busf](\d+)\s+([\w$]+)((?:\[\d+\])*)\s*;"
)
_EXTERN = re.compile(r"\.extern\s+\.shared\s[^;]*?([\w$]+)\[\s*\]\s*;")


def static(ptx: str, entry: str, size: int) -> tuple[Variable, ...]:
    """Those of an entry with `size` bytes of static shared memory; one that stands for all where
    they are not known."""
    if not size:
        return ()
    arrays = tuple(_declared(ptx, entry))
    end = 0
    for array in arrays:
        end = -(-end // array.align) * array.align + array.size
    if arrays and end <= size <= -(-end // 16) * 16:  # up to where a dynamic array begins
        return arrays
    return (Variable(name="shared", space="shared", type="b8", align=16, size=size),)


def dynamic(ptx: str) -> str:
    """The name of the dynamic array; where there are several, or none is known, DYNAMIC."""
    names = set(_EXTERN.findall(ptx))
    return names.pop() if len(names) == 1 else DYNAMIC


def _declared(ptx: str, entry: str) -> Iterator[Variable]:
    head = re.search(rf"\.entry\s+{re.escape(entry)}\s*[({{]", ptx)
    body = ptx[head.start() :].partition("\n}")[0] if head else ""
    for align, bits, name, extents in _DECLARED.findall(body):
        size = element = int(bits) // 8
        for extent in re.findall(r"\d+", extents):
            size *= int(extent)
        yield Variable(
            name=name, space="shared", type=f"b{bits}", align=int(align or element), size=size
        )
