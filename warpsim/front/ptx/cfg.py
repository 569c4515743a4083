"""Control flow of a PTX body: basic blocks and where divergent lanes come together again."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from warpsim.front.ptx.faults import refuse
from warpsim.front.ptx.syntax import Function, Instruction, Symbol


class ControlFlow(msgspec.Struct, frozen=True, kw_only=True):
    """Blocks by the index of their first instruction."""

    starts: tuple[int, ...]
    join: dict[int, int | None]
    """Immediate post-dominator of each block; None where nothing but the end of the kernel follows:
    lanes that leave early exit at once."""


def targets(function: Function, ins: Instruction) -> tuple[int, ...]:
    """Where a branch may go, fall-through apart."""
    if ins.opcode.startswith("brx"):
        table = ins.operands[1]
        assert isinstance(table, Symbol)
        return tuple(function.labels[name] for name in function.tables[table.name])
    label = ins.operands[0] if len(ins.operands) == 1 else None
    if not isinstance(label, Symbol):
        raise refuse(ins, "branches to what is not a label")
    if label.name not in function.labels:
        raise refuse(ins, f"branches to {label.name}, which is not a label")
    return (function.labels[label.name],)


def is_exit(ins: Instruction) -> bool:
    return ins.opcode in ("ret", "ret.uni", "exit", "trap")


def flow(function: Function, cuts: Sequence[int]) -> ControlFlow:
    """Blocks of `function`, cut additionally before each instruction of `cuts`."""
    body = function.instructions
    starts = {0, *(at for at in function.labels.values() if at < len(body)), *cuts}
    for index, ins in enumerate(body):
        if (ins.opcode.startswith(("bra", "brx")) or is_exit(ins)) and index + 1 < len(body):
            starts.add(index + 1)
    ordered = tuple(sorted(starts))
    successors: dict[int, tuple[int, ...]] = {}
    for position, start in enumerate(ordered):
        end = ordered[position + 1] if position + 1 < len(ordered) else len(body)
        successors[start] = _successors(function, end - 1, end)
    joins = _join(ordered, successors, len(body))
    for start, join in joins.items():
        if join is not None and is_exit(body[join]) and body[join].guard is None:
            joins[start] = None
    return ControlFlow(starts=ordered, join=joins)


def _successors(function: Function, last: int, following: int) -> tuple[int, ...]:
    ins = function.instructions[last]
    end = len(function.instructions)
    if ins.opcode.startswith(("bra", "brx")):
        gone = targets(function, ins)
        return (*gone, following) if ins.guard else gone
    if is_exit(ins):
        return (end, following) if ins.guard else (end,)
    return (following,)


def _join(
    starts: Sequence[int], successors: dict[int, tuple[int, ...]], end: int
) -> dict[int, int | None]:
    """Immediate post-dominators: Cooper, Harvey and Kennedy's iteration on the reversed graph."""
    predecessors: dict[int, list[int]] = {start: [] for start in (*starts, end)}
    for start in starts:
        for target in successors[start]:
            predecessors[target].append(start)
    order = _postorder(end, predecessors)
    number = {block: index for index, block in enumerate(order)}
    above: dict[int, int] = {end: end}
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [t for t in successors[block] if t in above]
            best = known[0]
            for other in known[1:]:
                best = _meet(best, other, above, number)
            if above.get(block) != best:
                above[block] = best
                changed = True
    return {b: (None if above.get(b, end) == end else above[b]) for b in starts}


def _meet(a: int, b: int, above: dict[int, int], number: dict[int, int]) -> int:
    while a != b:
        while number[a] < number[b]:
            a = above[a]
        while number[b] < number[a]:
            b = above[b]
    return a


def _postorder(root: int, edges: dict[int, list[int]]) -> list[int]:
    """Blocks from which the end can be reached, in postorder of the reversed graph."""
    order: list[int] = []
    seen = {root}
    stack = [(root, iter(edges[root]))]
    while stack:
        block, rest = stack[-1]
        for following in rest:
            if following not in seen:
                seen.add(following)
                stack.append((following, iter(edges[following])))
                break
        else:
            order.append(block)
            stack.pop()
    return order
