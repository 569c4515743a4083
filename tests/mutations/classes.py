"""Mutants that do no harm, or only a formal one, and why.

Equivalent: the mutant does what the kernel does, on all hardware and by the PTX ISA. Formal: the
ISA forbids it, and no hardware has been seen to do anything else than with the kernel.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kernelexp.emulator.ptx.cfg import targets
from kernelexp.emulator.ptx.syntax import Function, Immediate
from mutations.rules import Mutant


class Harmless(NamedTuple):
    """Why nobody needs to find a mutant."""

    formal: bool
    reason: str


class Reviewed(NamedTuple):
    """Mutants by a pattern of their keys."""

    pattern: str
    harmless: Harmless


def _equivalent(pattern: str, reason: str) -> Reviewed:
    return Reviewed(pattern, Harmless(False, reason))


def _formal(pattern: str, reason: str) -> Reviewed:
    return Reviewed(pattern, Harmless(True, reason))


# Decided by rule


def _last_barrier(mutant: Mutant, function: Function) -> Harmless | None:
    """No access to shared memory can follow a barrier before the end."""
    if not re.match(r"bar\.sync", mutant.instruction.opcode) or mutant.kind == "count":
        return None
    if mutant.change.name == "moved before the access":
        return None
    seen: set[int] = set()
    waiting = [mutant.at + 1]
    while waiting:
        at = waiting.pop()
        if at in seen or at >= len(function.instructions):
            continue
        seen.add(at)
        ins = function.instructions[at]
        if re.match(r"(?!ld\.param|st\.global|ld\.global|ld\.const)(ld|st|atom|red|bar|cp|mb|wg|tc)", ins.opcode):
            return None
        jumps = re.match(r"bra|brx", ins.opcode)
        if jumps:
            waiting += targets(function, ins)
        if not jumps or ins.guard is not None:
            if not re.match(r"ret|exit", ins.opcode):
                waiting.append(at + 1)
    return Harmless(False, "nothing follows that the barrier would order")


def _leading_offset(mutant: Mutant, function: Function) -> Harmless | None:
    """A K-major operand in a swizzled layout is one swizzle wide."""
    if not mutant.change.name.endswith("leading offset"):
        return None
    last = mutant.instruction.operands[-2:]
    if mutant.instruction.opcode.startswith("wgmma") and all(isinstance(x, Immediate) for x in last):
        # The F16 forms end in whether A and B are transposed; without them the A in registers.
        transposed = last[-1] if mutant.change.name.startswith("B") else last[0]
        if isinstance(transposed, Immediate) and transposed.value:
            return None
    return Harmless(False, "a swizzled operand whose rows lie along K has no leading offset")


_LATER = re.compile(r"after (mbarrier\.try_wait|bar\.sync|barrier\.cluster\.wait)")


def _stricter(mutant: Mutant, function: Function) -> Harmless | None:
    """An arrival that comes after a wait promises more than before it."""
    arrives = re.match(r"bar\.arrive|mbarrier\.arrive|cp\.async\.(bulk\.)?commit", mutant.instruction.opcode)
    if arrives and _LATER.match(mutant.change.name):
        return Harmless(False, "an arrival after a wait comes later, and covers more")
    return None


RULES = (_last_barrier, _leading_offset, _stricter)
REVIEWED: tuple[Reviewed, ...] = ()


def harmless(mutant: Mutant, function: Function) -> Harmless | None:
    """Why a mutant need not be found; None if it must."""
    for decide in RULES:
        if found := decide(mutant, function):
            return found
    for each in REVIEWED:
        if re.fullmatch(each.pattern, mutant.key):
            return each.harmless
    return None
