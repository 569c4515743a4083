"""Instructions to closures over register arrays: done once, when a cubin is loaded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from warpsim.front.sass import constants, cubin, shared_arrays, text, word
from warpsim.front.sass import isa as isa  # importing it fills the table
from warpsim.front.sass.cubin import CubinEntry
from warpsim.front.sass.decoder import SassDecoder, is_uniform
from warpsim.front.sass.faults import SassSyntaxError, refuse
from warpsim.front.sass.isa.barrier import is_packed
from warpsim.front.sass.registry import BranchPoint, Reconvergence, Result, find
from warpsim.front.sass.scoreboards import Scoreboards, control, of_stores
from warpsim.front.sass.syntax import (
    AROUND,
    STORED,
    UNPACK,
    ConstantOperand,
    MachineInstruction,
)
from warpsim.front.sass.unwritten import LOADS, never_written, slot_uses
from warpsim.lineinfo import Source
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.core.image import Image, Variable
from warpsim.machine.memory.constants import RESERVED_SHARED
from warpsim.machine.schedule.program import (
    POLL,
    BasicBlock,
    Branch,
    DecodedProgram,
    Exit,
    in_loops,
)
from warpsim.machine.sync.gates import WaitGate
from warpsim.machine.sync.register_pool import STEP
from warpsim.machine.wave.machine import Op, WarpSet, guarded
from warpsim.machine.wave.runtime import FUNCTIONS, HEAP_BYTES

STACK_BYTES = 1024
"""Of each thread, beyond what the entry itself needs, for the functions that it calls and for what
it takes as it runs: as much as the driver sets aside unless it is told otherwise."""
_LOCAL = frozenset({"LDL", "STL", "LD", "ST", "CALL"})
"""Opcodes that local memory may be used by."""
_WHOLE = frozenset(
    "BAR BSYNC WARPSYNC DEPBAR LDSM STSM MOVM HMMA IMMA QMMA OMMA WARPGROUP HGMMA QGMMA IGMMA "
    "UCGABAR_ARV UCGABAR_WAIT USETMAXREG SYNCS.PHASECHK LDTM STTM RET BRX BRXU".split()
)
"""Opcodes at which lanes wait, act as one, or part for where registers say: those that a guard
leaves out go around."""

_MEETINGS = frozenset("ATOM ATOMG ATOMS RED REDG REDAS MEMBAR NANOSLEEP".split())
"""By which threads meet in memory, besides strong loads and stores."""


def decode(
    content: bytes, listing: str, name: str, sources: Mapping[int, Source] | None = None
) -> DecodedProgram:
    """The program of an entry of a cubin, whose listing is cuobjdump's; `sources` by address.

    UnsupportedInstruction for the first instruction that is not covered; CubinError, and
    SassSyntaxError for a listing that cannot be read.
    """
    return decode_apart(content, listing, name, frozenset(), sources)[0]


def decode_apart(
    content: bytes,
    listing: str,
    name: str,
    apart: frozenset[str],
    sources: Mapping[int, Source] | None = None,
) -> tuple[DecodedProgram, SassDecoder]:
    """The program, in which each instruction of the opcodes `apart` (their first part) begins a
    block of its own, and what it was decoded with; otherwise as decode()."""
    entry = cubin.read(content, name)
    code = text.read(listing, name, sources or {})
    for ins in code:
        if ins.word != word.at(entry.code, ins.address):
            sentence = f"`{ins.text}` is not what the cubin has at {ins.address:#x}."
            raise SassSyntaxError(f"{ins.where()}: {sentence}")
        if ins.address in entry.relocated:
            raise refuse(ins, "is changed by the loader, which is not covered")
        if ins.opcode.startswith("CALL.ABS"):
            _only_runtime(ins, entry)
    banks = constants.banks(entry)
    decoder = SassDecoder(list(_expanded(code)), entry.sm, banks)
    results = [_build(decoder, number) for number in range(decoder.length())]
    first = {number for number, ins in enumerate(decoder.code) if ins.base in apart}
    blocks = _blocks(decoder, results, first)
    stops = frozenset(ins.number for ins in decoder.code if _may_stop(ins))
    polls = any(_may_poll(decoder.code[number]) for number in in_loops(blocks))
    uses = slot_uses(decoder)
    image = _image(entry, decoder, polls=polls)
    hazards = Scoreboards(decoder.code, decoder.uses, blocks).hazards()
    hazards += never_written(decoder.code, decoder.uses)
    return DecodedProgram(image, decoder.sites, blocks, uses, stops, hazards), decoder


def _only_runtime(ins: MachineInstruction, entry: CubinEntry) -> None:
    """Refuses a call by an address if that may be of more than the runtime's functions."""
    known = {variable.name for variable in entry.variables} | set(FUNCTIONS)
    pointed = [address for variable in entry.variables for address in variable.addresses]
    pointed += [pointer for pointers in entry.addresses.values() for pointer in pointers]
    for item in pointed:
        if item.name not in known:
            raise refuse(ins, f"may call {item.name}, by its address, which is not covered")


def _expanded(code: Sequence[MachineInstruction]) -> Iterator[MachineInstruction]:
    """The code with what the emulator puts before an instruction at which lanes wait."""
    number, stores = 0, of_stores(code)
    for ins in code:
        before: list[MachineInstruction] = []
        if control(ins.word).waits & stores:
            before.append(msgspec.structs.replace(ins, opcode=STORED, guard=None))
        if ins.base == "BAR" and is_packed(ins.operands[:2]):
            before.append(msgspec.structs.replace(ins, opcode=UNPACK, guard=None))
        if ins.guard is not None and not _WHOLE.isdisjoint({ins.base, _two(ins.opcode)}):
            before.append(msgspec.structs.replace(ins, opcode=AROUND))
            ins = msgspec.structs.replace(ins, guard=None)
        for operation in (*before, ins):
            yield msgspec.structs.replace(operation, number=number)
            number += 1


def _two(opcode: str) -> str:
    """An opcode with its first modifier."""
    return ".".join(opcode.split(".")[:2])


def _image(entry: CubinEntry, decoder: SassDecoder, *, polls: bool) -> Image:
    names = constants.parameter_names(entry)
    parameters = [
        Variable(name=name, space="param", type="b8", align=1, size=parameter.size)
        for name, parameter in zip(names, entry.parameters, strict=True)
    ]
    used = any(ins.base in _LOCAL for ins in decoder.code)
    calls = any(ins.opcode.startswith("CALL.ABS") for ins in decoder.code)
    stack = entry.frame_bytes + (STACK_BYTES if used else 0)
    return Image(
        entry=entry.name,
        slots=decoder.slots,
        parameters=tuple(parameters),
        parameter_base=entry.parameter_base,
        parameter_offsets=tuple(parameter.offset for parameter in entry.parameters),
        max_registers=-(-entry.registers // STEP) * STEP,
        variables=(*entry.variables, *_shared(entry), *_local(stack)),
        functions=FUNCTIONS,
        heap_bytes=HEAP_BYTES if calls else 0,
        shared_unit=decoder.shared_unit,
        global_unit=decoder.global_unit,
        banks=decoder.banks,
        strict=False,
        has_tensor_memory=any(ins.base == "UTCATOMSWS" for ins in decoder.code),
        reads_reserved=any(_reads(ins, decoder, RESERVED_SHARED) for ins in decoder.code),
        polls=polls,
        cancels_launches=any(ins.base == "UGETNEXTWORKID" for ins in decoder.code),
        cluster=entry.cluster,
        block=entry.block,
        max_threads=entry.max_threads,
    )


def _may_poll(ins: MachineInstruction) -> bool:
    return ins.base in ("ATOM", "ATOMG") or (ins.base in ("LD", "LDG") and "STRONG" in ins.opcode)


def _may_stop(ins: MachineInstruction) -> bool:
    """Whether threads meet in memory by it."""
    return ins.base in _MEETINGS or "STRONG" in ins.modifiers


def _reads(ins: MachineInstruction, decoder: SassDecoder, name: str) -> bool:
    """Whether an operand is a field of constant bank 0, whatever register indexes it."""
    fields = decoder.banks[0].fields
    return any(
        isinstance(operand, ConstantOperand)
        and operand.bank == 0
        and fields.get(operand.offset) == name
        for operand in ins.operands
    )


def _shared(entry: CubinEntry) -> Iterator[Variable]:
    """Static arrays, and the dynamic one behind them."""
    yield from shared_arrays.static(entry.ptx, entry.name, entry.shared_bytes)
    name = shared_arrays.dynamic(entry.ptx)
    yield Variable(name=name, space="shared", type="b8", align=entry.shared_align, size=0)


def _local(size: int) -> Iterator[Variable]:
    # The stack grows down from the end of local memory, which LocalLayout rounds up to 32 bytes.
    if size:
        yield Variable(name="stack", space="local", type="b8", align=32, size=-(-size // 32) * 32)


def _build(decoder: SassDecoder, number: int) -> Result:
    decoder.at(number)
    ins = decoder.instruction
    builder = find(ins.opcode)
    if builder is None:
        raise decoder.refuse()
    result = builder(decoder)
    if not callable(result):
        return result
    if is_uniform(ins):
        return _uniform(decoder, result)
    if ins.guard is None:
        return result
    slot, negated = decoder.guard()
    op = guarded(result, slot, negated, decoder.site.number)
    if not isinstance(result, Formed):
        return op
    return Formed(op, result.form._replace(guard=slot, negated=negated))


def _uniform(decoder: SassDecoder, op: Op) -> Op:
    """An operation of the warp: whatever lanes are active, all of them keep its registers."""
    form = op.form._replace(uniform=True) if isinstance(op, Formed) else None
    if decoder.instruction.guard is None:

        def whole(R: list[Array], m: Mask, warps: WarpSet) -> None:
            op(R, True, warps)

        return Formed(whole, form) if form else whole
    slot, negated = decoder.guard()

    number = decoder.site.number

    def guarded(R: list[Array], m: Mask, warps: WarpSet) -> None:
        holds = ~R[slot] if negated else R[slot]
        on = holds & warps.active(m)
        warps.note(number, int(np.count_nonzero(on.any(axis=1))), int(np.count_nonzero(on)))
        op(R, holds, warps)

    return Formed(guarded, form._replace(guard=slot, negated=negated)) if form else guarded


def _noting(decoder: SassDecoder, number: int) -> Op:
    """Counts the lanes for which the guard of a branch holds."""
    decoder.at(number)
    slot, negated = decoder.guard()

    def note(R: list[Array], m: Mask, warps: WarpSet) -> None:
        on = (R[slot] != negated) & warps.active(m)
        warps.note(number, int(np.count_nonzero(on.any(axis=1))), int(np.count_nonzero(on)))

    return Formed(note, CompiledForm("nothing", (), guard=slot, negated=negated))


def _blocks(
    decoder: SassDecoder, results: Sequence[Result], more: Collection[int]
) -> dict[int, BasicBlock]:
    """The blocks; `more` begin some too."""
    starts = {0, *more}
    if any(isinstance(result, BranchPoint) and result.index is not None for result in results):
        starts |= set(decoder.starts().values())
    for number, item in enumerate(results):
        if isinstance(item, BranchPoint):
            starts |= {number + 1, *(item.targets if item.index is None else ())}
        elif isinstance(item, Exit):
            starts.add(number + 1)
        elif isinstance(item, WaitGate):
            starts |= {number, number + 1}
        elif isinstance(item, Reconvergence):
            starts.add(number)
    ordered = sorted(start for start in starts if 0 <= start < len(results))
    blocks = {}
    for first, last in zip(ordered, [*ordered[1:], len(results)], strict=True):
        block = blocks[first] = BasicBlock(first, last)
        for number in range(first, last):
            ins = decoder.code[number]
            if (
                isinstance(results[number], BranchPoint)
                and ins.guard is not None
                and ins.base != AROUND
            ):
                block.add(number, _noting(decoder, number))
            _put(block, number, results[number])
            block.loads |= ins.base in LOADS
        if _polls(block, decoder.code[first:last]):
            block.weight = POLL
    return blocks


def _put(block: BasicBlock, number: int, result: Result) -> None:
    """Adds an instruction to its block."""
    if isinstance(result, WaitGate):
        block.gate = result
    elif isinstance(result, Reconvergence):
        block.sync, block.anywhere = result.members, result.anywhere
        block.exclusive = result.exclusive
    elif isinstance(result, Exit):
        block.end = result
    elif isinstance(result, BranchPoint):
        if result.before is not None:
            block.add(number, result.before)
        block.end = Branch(result.targets, number + 1, result.guard, result.negated, result.index)
    else:
        block.add(number, result)


def _polls(block: BasicBlock, code: Sequence[MachineInstruction]) -> bool:
    """Whether a block may ask whether another thread has done something yet.

    A volatile load of shared memory is a plain one here: it asks where it is all of a loop.
    """
    loops = isinstance(block.end, Branch) and block.end.targets == (block.first,)
    for ins in code:
        if ins.base in ("ATOM", "ATOMG", "ATOMS", "NANOSLEEP"):
            return True
        if ins.base in ("LDS", "LDG", "LD") and (loops or "STRONG" in ins.modifiers):
            return True
        if "PHASECHK" in ins.modifiers and "TRYWAIT" not in ins.modifiers:
            return True
    return False
