"""Accesses to memory in an entry's PTX: what the source asks for.

ptxas merges neighbouring accesses into wider ones, unrolls loops, and splits accesses whose
alignment it can't prove: SASS has other counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernelexp.facts.accesses import Access, tensor_bits, times
from kernelexp.model.errors import KernelexpError

if TYPE_CHECKING:
    from warpsim.front.ptx.syntax import Instruction, PtxModule

_TYPE = re.compile(r"[bsufe]\w*?(\d+)(x2)?$")


def count(text: str, entry: str) -> dict[Access, int] | None:
    """Counts each access in the PTX of an entry and of all that it calls.

    None where the text is not understood.
    """
    from warpsim.front.ptx import parser  # half a second, for those who only read records

    try:
        module = parser.parse(text)
    except (KernelexpError, IndexError, ValueError):
        return None
    counter = Counter(filter(None, map(_of_instruction, _instructions(module, entry))))
    return dict(sorted(counter.items()))


def _instructions(module: PtxModule, entry: str) -> Iterator[Instruction]:
    from warpsim.front.ptx.outline import callees

    rest, seen = [entry], {entry}
    while rest:
        function = module.functions.get(rest.pop())
        if function:
            yield from function.instructions
            more = callees(function) - seen
            seen |= more
            rest += sorted(more)


def _of_instruction(instruction: Instruction) -> Access | None:
    parts = instruction.opcode.split(".")
    match parts:
        case ["ld" | "ldu" | "st", *rest]:
            return _plain(parts[0], rest)
        case ["cp", "async", "ca" | "cg", *_]:
            size = instruction.operands[2] if len(instruction.operands) > 2 else None
            return Access("copy to shared", 8 * getattr(size, "value", 0))
        case ["ldmatrix" | "stmatrix", *rest]:
            kind = "matrix load" if parts[0] == "ldmatrix" else "matrix store"
            wider = 2 if "m16n16" in rest else 1
            return Access(kind, wider * 32 * times(rest))
        case ["tcgen05", "ld" | "st" as verb, *rest]:
            name = "load" if verb == "ld" else "store"
            return Access(f"tensor memory {name}", tensor_bits(rest))
        case _:
            return None


def of_opcode(opcode: str) -> Access | None:
    """The access of a plain load or store such as `ld.shared.v4.f32`; None of anything else."""
    verb, *rest = opcode.split(".")
    return _plain(verb, rest) if verb in ("ld", "ldu", "st") else None


def _plain(verb: str, rest: list[str]) -> Access | None:
    if rest[:1] == ["async"]:
        kind = "remote store"
    elif "param" in rest or "param::func" in rest or "const" in rest:
        return None
    else:
        spaces = ("global", "shared", "local")
        # A place in a cluster's shared memory is a generic address to SASS.
        named = "generic" if "shared::cluster" in rest or "" in rest else None
        words = [modifier.split("::")[0] for modifier in rest]
        space = named or next((name for name in spaces if name in words), "generic")
        kind = f"{space} {'store' if verb == 'st' else 'load'}"
    vector = next((int(modifier[1:]) for modifier in rest if re.fullmatch(r"v[248]", modifier)), 1)
    width = _TYPE.fullmatch(rest[-1])
    bits = int(width[1]) * (2 if width[2] else 1) if width else 0
    return Access(kind, vector * bits)
