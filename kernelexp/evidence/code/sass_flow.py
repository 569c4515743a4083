"""The control flow of an entry's SASS: its loops, and what only diverged warps come to.

A loop is a strongly connected part of the control flow graph; without the instructions where it is
entered, what is still connected in it are the loops inside. That finds the loops of any code,
reducible or not. `CALL` is a branch where what it calls never returns (ptxas leaves loops so), and
else goes on behind itself; what is called from a loop counts as inside of it. Where a branch takes
its target from a register, any code that nothing else leads to may be meant.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kernelexp.evidence.code.sass_lines import SassInstruction

_TARGET = re.compile(r"(?:^|[\s,])(?P<offset>0x[0-9a-f]+)$")
_BRANCHES = frozenset({"BRA", "JMP"})
_INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
_ENDS = frozenset({"EXIT", "RET", "KILL"})

Graph = Mapping[int, Sequence[int]]
"""Where control may go on, by offset."""


class SassLoop(msgspec.Struct, frozen=True, kw_only=True):
    """A loop of the control flow."""

    number: int
    """From 1, in the order of where they begin."""
    parent: int
    """The number of the loop around it; 0 for none."""
    depth: int
    """1 for a loop in no other."""
    header: int
    """The offset where it is entered: the first of several."""
    branches: tuple[int, ...]
    """The offsets of the instructions that go back to there."""
    offsets: frozenset[int]
    """Of all its instructions, those of inner loops included."""


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """The control flow of an entry, by the offsets of its instructions."""

    loops: tuple[SassLoop, ...]
    innermost: dict[int, int]
    """The number of the innermost loop; offsets in no loop are left out."""
    diverged: frozenset[int]
    """Only reached where the lanes of a warp have parted: copies that BRA.DIV leads to."""
    indirect: tuple[int, ...]
    """The offsets of branches whose targets the listing does not have."""


def analyse(code: Sequence[SassInstruction]) -> Flow:
    """The control flow of an entry, from all of its instructions in order."""
    if not code:
        return Flow(loops=(), innermost={}, diverged=frozenset(), indirect=())
    edges = _Edges(code)
    start = code[0].offset
    graph, calls = edges.graph, edges.calls
    reached = _reach({start}, graph, calls)
    roots = {start, *(to for at, to in calls.items() if at in reached)}
    nested = sorted(_nest(_reach(roots, graph), graph, 1), key=lambda item: (min(item[1]), item[0]))
    loops = tuple(_number(nested, graph))
    parted = {at: [to for to in graph[at] if (at, to) not in edges.parting] for at in graph}
    return Flow(
        loops=loops,
        innermost=_innermost(loops, graph, {a: to for a, to in calls.items() if a in reached}),
        diverged=frozenset(reached - _reach({start}, parted, calls)),
        indirect=tuple(at for at in edges.indirect if at in reached),
    )


class _Edges:
    """The edges of the graph; calls of functions that return are apart from it."""

    def __init__(self, code: Sequence[SassInstruction]) -> None:
        self.offsets = [instruction.offset for instruction in code]
        self.graph: dict[int, list[int]] = {}
        self.calls: dict[int, int] = {}
        self.parting: set[tuple[int, int]] = set()
        self.indirect: list[int] = []
        known = set(self.offsets)
        called: dict[int, tuple[int, list[int]]] = {}
        for instruction, after in zip(code, [*self.offsets[1:], None], strict=True):
            following = [] if after is None else [after]
            target = _target(instruction)
            to = [target] if target in known and target is not None else []
            if instruction.opcode in _BRANCHES:
                self._branch(instruction, to, following)
            elif instruction.opcode == "CALL" and to:
                called[instruction.offset] = (to[0], following)
                self.graph[instruction.offset] = following
            else:
                ends = instruction.opcode in _ENDS or instruction.opcode in _INDIRECT
                self.graph[instruction.offset] = following if instruction.guard or not ends else []
                if instruction.opcode in _INDIRECT:
                    self.indirect.append(instruction.offset)
        guarded = {instruction.offset for instruction in code if instruction.guard}
        returns = {instruction.offset for instruction in code if instruction.opcode == "RET"}
        for at, (target, following) in called.items():
            if returns & _reach({target}, self.graph):
                self.calls[at] = target
            else:
                self.graph[at] = [target, *(following if at in guarded else ())]
        self._guess(code)

    def _branch(self, instruction: SassInstruction, to: list[int], following: list[int]) -> None:
        operands = instruction.text.partition(instruction.mnemonic)[2]
        conditional = instruction.guard or "," in operands
        self.graph[instruction.offset] = [*to, *(following if conditional else ())]
        if "DIV" in instruction.mnemonic.split(".")[1:]:
            self.parting |= {(instruction.offset, target) for target in to}

    def _guess(self, code: Sequence[SassInstruction]) -> None:
        """Indirect branches may lead to where nothing else does."""
        if not self.indirect:
            return
        reached = _reach({self.offsets[0]}, self.graph, self.calls)
        endless = {at for at, ways in self.graph.items() if ways == [at]}  # `BRA .` after the code
        begins = [
            instruction.offset
            for before, instruction in itertools.pairwise(code)
            if instruction.offset not in reached
            and instruction.offset not in self.graph[before.offset]
            and instruction.offset not in endless
            and not instruction.is_padding
        ]
        for at in self.indirect:
            self.graph[at] = [*self.graph[at], *begins]


def _target(instruction: SassInstruction) -> int | None:
    """The offset that a branch or a call names last."""
    match = _TARGET.search(instruction.text)
    return int(match["offset"], 16) if match else None


def _reach(roots: Iterable[int], graph: Graph, calls: Mapping[int, int] | None = None) -> set[int]:
    """Returns the nodes that the roots lead to, through calls too where they are given."""
    seen, rest = set(roots), list(roots)
    while rest:
        at = rest.pop()
        ways = [*graph[at], calls[at]] if calls and at in calls else graph[at]
        rest += [to for to in ways if to not in seen]
        seen.update(ways)
    return seen


def _nest(nodes: set[int], graph: Graph, depth: int) -> Iterator[tuple[int, set[int], set[int]]]:
    """Depth, offsets and headers of each loop among `nodes`, and of those inside."""
    entered = _sources(nodes, graph)
    for part in _components(nodes, graph):
        if len(part) == 1 and not part & set(graph[min(part)]):
            continue
        headers = {at for at in part if entered[at] - part} or {min(part)}
        yield depth, part, headers
        inside = part - headers
        within = {at: [to for to in graph[at] if to in inside] for at in inside}
        yield from _nest(inside, within, depth + 1)


def _sources(nodes: set[int], graph: Graph) -> dict[int, set[int]]:
    """Returns the predecessors of each node, by offset."""
    sources: dict[int, set[int]] = {at: set() for at in nodes}
    for at, ways in graph.items():
        for to in ways:
            if to in sources:
                sources[to].add(at)
    return sources


def _components(nodes: set[int], graph: Graph) -> list[set[int]]:
    """The strongly connected components, after Kosaraju."""
    order: list[int] = []
    seen: set[int] = set()
    for root in sorted(nodes):
        stack = [(root, iter(graph[root]))] if root not in seen else []
        seen.add(root)
        while stack:
            at, ways = stack[-1]
            to = next((way for way in ways if way in nodes and way not in seen), None)
            if to is None:
                order.append(at)
                stack.pop()
            else:
                seen.add(to)
                stack.append((to, iter(graph[to])))
    sources = _sources(nodes, {at: graph[at] for at in nodes})
    placed: set[int] = set()
    components = []
    for root in reversed(order):
        part, rest = set(), [root]
        while rest:
            at = rest.pop()
            if at not in placed:
                placed.add(at)
                part.add(at)
                rest += sources[at]
        components += [part] if part else []
    return components


def _number(nested: Sequence[tuple[int, set[int], set[int]]], graph: Graph) -> Iterator[SassLoop]:
    """The loops with the numbers of those around them."""
    for number, (depth, part, headers) in enumerate(nested, 1):
        around = [
            n
            for n, (above, other, _) in enumerate(nested, 1)
            if above == depth - 1 and part < other
        ]
        yield SassLoop(
            number=number,
            parent=around[0] if around else 0,
            depth=depth,
            header=min(headers),
            branches=tuple(sorted(at for at in part if headers & set(graph[at]))),
            offsets=frozenset(part),
        )


def _innermost(loops: Sequence[SassLoop], graph: Graph, calls: Mapping[int, int]) -> dict[int, int]:
    """Returns the innermost loop by offset; code called from a loop is inside of it."""
    innermost: dict[int, int] = {}
    for loop in sorted(loops, key=lambda item: item.depth):
        innermost.update(dict.fromkeys(loop.offsets, loop.number))
    changed = True
    while changed:
        changed = False
        for at, target in calls.items():
            if at in innermost:
                own = {to for to in _reach({target}, graph) if to not in innermost}
                innermost.update(dict.fromkeys(own, innermost[at]))
                changed = changed or bool(own)
    return innermost
