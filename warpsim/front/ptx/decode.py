"""Instructions to closures over register arrays: done once, when a kernel is loaded."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator

import msgspec
import numpy as np

from warpsim.front.ptx import bounds, isa  # noqa: F401  (importing isa fills the tables)
from warpsim.front.ptx.cfg import flow, is_exit, targets
from warpsim.front.ptx.decoder import AROUND, PtxDecoder, copyto
from warpsim.front.ptx.faults import MALFORMED, refuse
from warpsim.front.ptx.inline import inlined
from warpsim.front.ptx.registry import Alu, Effect, find
from warpsim.front.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Operand,
    PtxModule,
    Symbol,
    Vector,
)
from warpsim.front.ptx.types import width_of
from warpsim.launch import Dim3
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.core.image import Image, Variable
from warpsim.machine.schedule.program import (
    POLL,
    BasicBlock,
    Branch,
    DecodedProgram,
    Exit,
    in_loops,
)
from warpsim.machine.sync.gates import WaitGate
from warpsim.machine.wave.frames import STACK, STACK_BYTES
from warpsim.machine.wave.machine import Op, WarpSet, guarded
from warpsim.machine.wave.runtime import HEAP_BYTES

# What asks whether another thread has done something yet.
_POLLS = re.compile(
    r"atom\.|nanosleep|mbarrier\.test_wait|ld\.(.*\.)?(volatile|relaxed|acquire|c[vg])\b"
)
# By what threads meet in memory: a warp may be stopped before it, and after it.
_STOPS = re.compile(
    r"(atom|red)\.|nanosleep|fence\.(sc|acq_rel|acquire|release)|membar"
    r"|(ld|st)\.(.*\.)?(volatile|relaxed|acquire|release)\b"
)


def decode(module: PtxModule, name: str) -> DecodedProgram:
    """The program of entry `name`; UnsupportedInstruction for the first that is not covered."""
    function = unguarded(inlined(module, name))
    decoder = PtxDecoder(function, module.target)
    operations: list[Op | WaitGate | None] = []
    cuts = set()
    for number, ins in enumerate(function.instructions):
        decoder.at(number)
        entry = find(ins.opcode)
        try:
            operations.append(None if _controls(ins) else _build(decoder, entry))
        except MALFORMED as error:
            raise refuse(ins, "has other operands than the emulator expects") from error
        if isinstance(entry, Effect) and entry.gate:
            cuts |= {number, number + 1}
        elif isinstance(entry, Effect) and entry.sync:
            cuts.add(number)
    blocks = _blocks(decoder, operations, sorted(cut for cut in cuts if cut < len(operations)))
    stops = frozenset(site.number for site in decoder.sites if _STOPS.match(site.opcode))
    polls = any(_may_poll(decoder.sites[number].opcode) for number in in_loops(blocks))
    image = _image(module, decoder, polls=polls)
    found = bounds.find(function)
    return DecodedProgram(image, decoder.sites, blocks, decoder.uses(), stops, bounds=found)


def _image(module: PtxModule, decoder: PtxDecoder, *, polls: bool) -> Image:
    function = decoder.function
    most = _padded(function.directives.get("maxntid"))
    return Image(
        entry=function.name,
        slots=decoder.slots,
        parameters=function.parameters,
        variables=_variables(module, function),
        functions=tuple(f.name for f in module.functions.values() if not f.entry),
        shared_unit=decoder.shared_unit,
        global_unit=decoder.global_unit,
        heap_bytes=HEAP_BYTES if any(s.opcode == "builtin.malloc" for s in decoder.sites) else 0,
        polls=polls,
        cancels_launches=any("try_cancel" in site.opcode for site in decoder.sites),
        overlaps=frozenset(
            site.opcode.partition(".")[2]
            for site in decoder.sites
            if site.opcode.startswith("griddepcontrol.")
        ),
        cluster=_padded(function.directives.get("reqnctapercluster")),
        block=_padded(function.directives.get("reqntid")),
        max_registers=next(iter(function.directives.get("maxnreg", ())), None),
        min_ctas=next(iter(function.directives.get("minnctapersm", ())), 1),
        max_threads=None if most is None else math.prod(most),
    )


def _variables(module: PtxModule, function: Function) -> tuple[Variable, ...]:
    """Those that a kernel sees. In shared memory they lie as ptxas places them: the kernel's own,
    then those of the module that it names; what only other kernels name is not there, but for the
    alignment of dynamic arrays."""
    named = frozenset(_named(item for ins in function.instructions for item in ins.operands))
    shared = [v for v in module.variables if v.space == "shared"]
    others = [v for v in module.variables if v.space != "shared"]
    static = [v for v in shared if v.size and v.name in named]
    dynamic = [v for v in shared if not v.size]
    align = max((v.align for v in dynamic), default=1)
    seen = [v for v in dynamic if v.name in named] or dynamic[:1]
    after = (*static, *(msgspec.structs.replace(v, align=align) for v in seen))
    return (*others, *function.variables, *after, *_stack(function))


def _named(operands: Iterable[Operand]) -> Iterator[str]:
    for operand in operands:
        if isinstance(operand, Symbol):
            yield operand.name
        elif isinstance(operand, Vector):
            yield from _named(operand.items)
        elif isinstance(operand, Address):
            yield from _named((operand.base, *operand.extra))


def _may_poll(opcode: str) -> bool:
    name, *modifiers = opcode.split(".")
    strong = {"volatile", "relaxed", "acquire"} & set(modifiers)
    return (name == "atom" or (name == "ld" and bool(strong))) and "shared" not in opcode


def _stack(function: Function) -> list[Variable]:
    """What alloca takes memory from."""
    if not any(ins.opcode.startswith("alloca") for ins in function.instructions):
        return []
    return [Variable(name=STACK, space="local", type="b8", align=16, size=STACK_BYTES)]


def _padded(numbers: tuple[int, ...] | None) -> Dim3 | None:
    """The numbers of a directive, which may leave out trailing ones."""
    if not numbers:
        return None
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def unguarded(function: Function) -> Function:
    """The function with a branch around each guarded instruction at which lanes wait."""
    body: list[Instruction] = []
    moved: list[int] = []
    labels: dict[str, int] = {}
    for ins in function.instructions:
        moved.append(len(body))
        entry = find(ins.opcode)
        if ins.guard is not None and isinstance(entry, Effect) and (entry.gate or entry.sync):
            label = f"@skip{len(body)}"
            body.append(
                msgspec.structs.replace(
                    ins,
                    opcode=AROUND,
                    operands=(Symbol(label),),
                    guard_negated=not ins.guard_negated,
                )
            )
            body.append(msgspec.structs.replace(ins, guard=None, guard_negated=False))
            labels[label] = len(body)
        else:
            body.append(ins)
    moved.append(len(body))
    labels |= {name: moved[at] for name, at in function.labels.items()}
    return msgspec.structs.replace(function, instructions=body, labels=labels)


def _controls(ins: Instruction) -> bool:
    return ins.opcode.startswith(("bra", "brx")) or (is_exit(ins) and ins.opcode != "trap")


def _build(decoder: PtxDecoder, entry: Alu | Effect | None) -> Op | WaitGate:
    if entry is None and decoder.parts[0] == "multimem":
        raise decoder.refuse(
            "acts on a multicast object, memory that several GPUs have in common; the emulator has "
            "one GPU"
        )
    if entry is None:
        raise decoder.refuse()
    item = _pure(decoder, entry) if isinstance(entry, Alu) else entry.function(decoder)
    if decoder.checks and not isinstance(item, WaitGate):
        item = _checked(decoder.checks, item)
    # Instructions at which lanes wait have a branch around them instead of a guard.
    if decoder.instruction.guard is None or isinstance(item, WaitGate):
        return item
    return _guard(decoder, item)


def _checked(checks: list[Op], op: Op) -> Op:
    def checked(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for check in checks:
            check(R, m, warps)
        op(R, m, warps)

    # A compiled form leaves to Python what its checks would report.
    return Formed(checked, op.form) if isinstance(op, Formed) else checked


def _guard(decoder: PtxDecoder, op: Op) -> Op:
    slot, negated = decoder.guard(decoder.instruction.guard), decoder.instruction.guard_negated
    if isinstance(op, Formed):
        return Formed(
            guarded(op.op, slot, negated, decoder.site.number),
            op.form._replace(guard=slot, negated=negated),
        )
    return guarded(op, slot, negated, decoder.site.number)


def _pure(decoder: PtxDecoder, entry: Alu) -> Op:
    operands = decoder.operands
    kinds = [kind.removesuffix("?") for kind in entry.kinds[: len(operands)]]
    least = sum(not kind.endswith("?") for kind in entry.kinds)
    if not least <= len(operands) <= len(entry.kinds):
        raise decoder.refuse(f"has {len(operands)} operands where {least} are expected")
    sources = [decoder.source(o, k) for o, k in zip(operands[1:], kinds[1:], strict=True)]
    target = decoder.destination(operands[0])
    function: Callable[..., Array] = entry.function
    if entry.keywords:
        plain, keywords = function, entry.keywords

        def function(*args: Array) -> Array:
            return plain(*args, **keywords)

    width = decoder.width(target)
    if operands[0] is not None and width != width_of(kinds[0]):
        return _applied(_widened(function, kinds[0], width), target, sources, entry.ufunc)
    op = _applied(function, target, sources, entry.ufunc)
    if operands[0] is None or len(operands) > least:
        return op
    return Formed(op, CompiledForm(decoder.instruction.opcode, (target, *sources)))


def _widened(function: Callable[..., Array], kind: str, width: int) -> Callable[..., Array]:
    """A destination register wider than the type: sign- or zero-extended, as cvt is."""
    narrow = np.dtype(f"i{width_of(kind) // 8}") if kind[0] == "s" else None
    wide = np.dtype(f"u{width // 8}")

    def extended(*args: Array) -> Array:
        value = function(*args)
        if narrow is not None:
            value = value.astype(f"u{narrow.itemsize}").view(narrow)
        return value.astype(wide)

    return extended


def _applied(function: Callable[..., Array], d: int, s: list[int], ufunc: np.ufunc | None) -> Op:
    """d = function(*s), straight to the register where a ufunc can; one op an arity, for speed."""
    if len(s) == 1:
        return _unary(function, d, *s)
    if len(s) == 2:
        return _binary(function, d, *s) if ufunc is None else _direct(ufunc, d, *s)
    if len(s) == 3:
        return _ternary(function, d, *s)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[d], function(*[R[i] for i in s]), where=m)

    return op


def _unary(function: Callable[..., Array], d: int, a: int) -> Op:
    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[d], function(R[a]), where=m)

    return op


def _binary(function: Callable[..., Array], d: int, a: int, b: int) -> Op:
    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[d], function(R[a], R[b]), where=m)

    return op


def _direct(ufunc: np.ufunc, d: int, a: int, b: int) -> Op:
    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        if m is True:
            ufunc(R[a], R[b], R[d])
        else:
            copyto(R[d], ufunc(R[a], R[b]), where=m)

    return op


def _ternary(function: Callable[..., Array], d: int, a: int, b: int, c: int) -> Op:
    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[d], function(R[a], R[b], R[c]), where=m)

    return op


def _blocks(
    decoder: PtxDecoder, made: list[Op | WaitGate | None], cuts: list[int]
) -> dict[int, BasicBlock]:
    graph = flow(decoder.function, cuts)
    joins = {join for join in graph.join.values() if join is not None}
    ends = (*graph.starts[1:], len(made))
    blocks = {}
    for first, last in zip(graph.starts, ends, strict=True):
        block = BasicBlock(first, last, join=graph.join[first], joins=first in joins)
        blocks[first] = block
        _fill(block, decoder, made)
    return blocks


def _fill(block: BasicBlock, decoder: PtxDecoder, made: list[Op | WaitGate | None]) -> None:
    decoder.at(block.first)
    entry, opcode = find(decoder.site.opcode), decoder.site.opcode
    aligned = "aligned" in decoder.parts or (opcode.startswith("bar.") and "warp" not in opcode)
    if isinstance(entry, Effect) and entry.gate:
        block.sync = -1 if aligned else None
    elif isinstance(entry, Effect) and entry.sync:
        # The member mask is the last operand of every such instruction that has one.
        block.sync = -1 if aligned else decoder.source(decoder.operands[-1], "b32")
        block.anywhere = opcode == "bar.warp.sync"
    for number in range(block.first, block.last):
        item = made[number]
        if _POLLS.match(decoder.sites[number].opcode):
            block.weight = POLL
        if isinstance(item, WaitGate):
            block.gate = item
        elif item is not None:
            block.add(number, item)
            block.loads |= decoder.sites[number].opcode.startswith(
                ("ld", "shfl", "tcgen05.ld", "wmma.load")
            )
        else:
            decoder.at(number)
            block.end = _end(decoder)


def _end(decoder: PtxDecoder) -> Branch | Exit:
    ins, following = decoder.instruction, decoder.site.number + 1
    guard = None if ins.guard is None else decoder.guard(ins.guard)
    if is_exit(ins):
        if guard is None:
            return Exit()
        return Branch((-1,), following, guard, ins.guard_negated)
    branch = Branch(targets(decoder.function, ins), following, guard, ins.guard_negated)
    if ins.opcode.startswith("brx"):
        branch.negated = False
        branch.index = decoder.source(ins.operands[0], "u32")
    return branch
