"""Loads and stores, constants, copies past the registers, and what orders accesses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsim.front.sass.decoder import SassDecoder, copyto
from warpsim.front.sass.operands import Reader, is_zero
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import (
    ZERO,
    ConstantOperand,
    LiteralOperand,
    MemoryOperand,
    Operand,
    RegisterOperand,
)
from warpsim.machine.copies import lane_copies
from warpsim.machine.copies.lane_copies import LaneCopy
from warpsim.machine.copies.scoreboard import GroupsWait
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.forms import MEMORIES, CompiledForm, Formed
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.wave.machine import Op, WarpSet, each_warp
from warpsim.machine.wave.windows import lies_in

_SPACES = {
    "LDG": "global", "STG": "global", "LD": "generic", "ST": "generic",
    "LDS": "shared", "STS": "shared", "LDL": "local", "STL": "local",
}  # fmt: skip
_NARROW = {"U8": (1, "u1"), "S8": (1, "i1"), "U16": (2, "u2"), "S16": (2, "i2")}
_HINTS = "{:|.EF|.EL|.LU|.NA}{:|.LTC64B|.LTC128B|.LTC256B}"
_SIZE = "{:|.U8|.S8|.U16|.S16|.64|.128}"
_WIDE = ".{:ENL2|ELL2|EFL2}.256"
_STRONG = "{:|.STRONG.SM|.STRONG.GPU|.STRONG.SYS}"


_QUERIED = {"S": "shared", "D": "shared::cluster", "L": "local", "G": "global"}


@covers("QSPC.E.{:S|D|L|G}")
def qspc(d: SassDecoder) -> Op:
    """Whether a generic address leads to the CTA's shared memory, to the cluster's (`.D`), to local
    or to global memory."""
    result, unused, address = d.take(d.operands, 3)
    if getattr(unused, "index", 0) != ZERO:
        raise d.refuse("gives a result, which is not covered")
    target, where = d.to_predicate(result), d.address(address, wide=True)
    space = _QUERIED[d.instruction.modifiers[1]]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[target], lies_in(warps, where(R), space), where=m)

    return op


class SassAccessForm:
    """What the modifiers of a load or a store say."""

    def __init__(self, d: SassDecoder) -> None:
        self.space = _SPACES[d.instruction.base]
        narrow = next((_NARROW[modifier] for modifier in d.modifiers if modifier in _NARROW), None)
        self.kind = narrow[1] if narrow else "u4"
        bits = next((int(width) for width in ("64", "128") if width in d.modifiers), 32)
        self.elements = bits // 32
        element = narrow[0] if narrow else 4
        self.relaxed = "STRONG" in d.modifiers
        self.access = AccessKind(
            d.site,
            element,
            self.elements,
            store=d.instruction.base.startswith("ST"),
            relaxed=self.relaxed,
            coherent="CONSTANT" not in d.modifiers,
            swapped=any(map(d.swapped, d.operands)),
        )
        d.note_unit(self.space, element)


def _address(d: SassDecoder, operand: object, space: str) -> Reader:
    if space in ("global", "generic"):
        return d.address(operand, wide=True)  # type: ignore[arg-type]
    if space == "shared":
        return d.shared_address(operand)  # type: ignore[arg-type]
    return d.address(operand, wide=False)  # type: ignore[arg-type]


def _formed(
    d: SassDecoder,
    op: Op,
    form: SassAccessForm,
    memory: Operand,
    register: Operand,
    slots: Sequence[int],
) -> Op:
    """A load or a store with its compiled form, if it has any."""
    if form.space not in MEMORIES or not isinstance(memory, MemoryOperand) or is_zero(register):
        return op
    bases = [
        register_operand
        for register_operand in (memory.base, memory.uniform)
        if register_operand is not None
    ]
    wide, offset = form.space != "shared", memory.offset
    if wide:
        words = _pairs(d, bases, narrow=form.space == "local")
    elif (base := d.shared_base(memory)) is not None:
        words, offset = (base[0], -1, -1, -1), base[1]
    else:
        return op
    access, name = form.access, "st" if form.access.store else "ld"
    more = int(form.kind[0] == "i"), int(access.coherent), -1
    numbers = (MEMORIES[form.space], 16 if wide else 4, access.element, access.elements, *more)
    places = (words[0], *slots, *[-1] * (6 - len(slots)), *words[1:])
    return Formed(op, CompiledForm(name, places, numbers, offset))


def _pairs(
    d: SassDecoder, bases: Sequence[RegisterOperand], *, narrow: bool
) -> tuple[int, int, int, int]:
    """The words of a sum of up to two registers of 64 bits, or of 32 bits (`narrow`, and `.U32`);
    -1: none."""
    words = [(d.word_of(x), -1 if narrow or x.part == "U32" else d.word_of(x, 1)) for x in bases]
    words += [(-1, -1)] * (2 - len(words))
    return *words[0], *words[1]


@covers(f"LDG.E{_HINTS}{_SIZE}{_STRONG}", f"LDG.E{_HINTS}{_SIZE}.CONSTANT")
@covers(f"LD.E{_SIZE}{_STRONG}", f"LDS{_SIZE}", f"LDL{{:|.LU}}{_SIZE}")
def load(d: SassDecoder) -> Op:
    """Cache hints have no effect."""
    form = SassAccessForm(d)
    target, source = d.take(d.operands, 2)
    where, targets = _address(d, source, form.space), d.to_words(target, form.elements)
    space, access, kind = form.space, form.access, np.dtype(form.kind)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        address = where(R)
        values = warps.machine.spaces[space].load(warps, address, access, m)
        if len(targets) == 1:
            copyto(R[targets[0]], values.view(kind).astype(np.uint32), where=m)
        else:
            for index, slot in enumerate(targets):
                copyto(R[slot], values[..., index], where=m)

    def acquiring(R: list[Array], m: Mask, warps: WarpSet) -> None:
        address = where(R)  # what is loaded may replace it
        op(R, m, warps)
        warps.machine.flags.acquire(warps, address, m)

    return acquiring if form.relaxed else _formed(d, op, form, source, target, targets)


@covers(f"STG.E{_HINTS}{_SIZE}{_STRONG}", f"ST.E{_SIZE}{_STRONG}", f"STS{_SIZE}", f"STL{_SIZE}")
def store(d: SassDecoder) -> Op:
    """Cache hints have no effect."""
    form = SassAccessForm(d)
    target, source = d.take(d.operands, 2)
    where, sources = _address(d, target, form.space), d.words(d.unsigned(source), form.elements)
    space, access, kind = form.space, form.access, np.dtype(f"u{form.access.element}")

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        if len(sources) == 1:
            values = R[sources[0]].astype(kind)
        else:
            values = np.stack([R[slot] for slot in sources], axis=-1)
        warps.machine.spaces[space].store(warps, where(R), values, access, m)

    def releasing(R: list[Array], m: Mask, warps: WarpSet) -> None:
        warps.machine.flags.release(warps, where(R), m, relaxed=True)
        op(R, m, warps)

    return releasing if form.relaxed else _formed(d, op, form, target, source, sources)


_WHOLE = 8
"""Words of 256 bits, in two runs of registers."""


@covers(f"LDG.E{_HINTS}{_WIDE}{{:|.CONSTANT}}", f"LDG.E{_HINTS}{_WIDE}{_STRONG}")
def load_256(d: SassDecoder) -> Op:
    """The first run of registers is the upper half."""
    upper, lower, source = d.take(d.operands, 3)
    where = d.address(source, wide=True)
    slots = [*d.to_words(lower, _WHOLE // 2), *d.to_words(upper, _WHOLE // 2)]
    relaxed, coherent = "STRONG" in d.modifiers, "CONSTANT" not in d.modifiers
    access = AccessKind(d.site, 4, _WHOLE, store=False, relaxed=relaxed, coherent=coherent)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        address = where(R)
        values = warps.machine.spaces["global"].load(warps, address, access, m)
        for index, slot in enumerate(slots):
            copyto(R[slot], values[..., index], where=m)
        if relaxed:
            warps.machine.flags.acquire(warps, address, m)

    return op


@covers(f"STG.E{_HINTS}{_WIDE}{_STRONG}")
def store_256(d: SassDecoder) -> Op:
    """The first run of registers is the lower half."""
    target, *halves = d.take(d.operands, 3)
    where, relaxed = d.address(target, wide=True), "STRONG" in d.modifiers
    access = AccessKind(d.site, 4, _WHOLE, store=True, relaxed=relaxed)
    slots = [slot for half in halves for slot in d.words(d.unsigned(half), _WHOLE // 2)]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = np.stack([R[slot] for slot in slots], axis=-1)
        if relaxed:
            warps.machine.flags.release(warps, where(R), m, relaxed=True)
        warps.machine.spaces["global"].store(warps, where(R), values, access, m)

    return op


@covers("LDC{:|.U8|.S8|.U16|.S16|.64|.128}", "ULDC{:|.U8|.S8|.U16|.S16|.64}")
@covers("LDCU{:|.U8|.S8|.U16|.S16|.64|.128}")
def ldc(d: SassDecoder) -> Op:
    """From a constant bank, at a place that a register may name."""
    target, source = d.take(d.operands, 2)
    if not isinstance(source, ConstantOperand):
        raise d.refuse("reads no constant bank")
    narrow = next((_NARROW[modifier] for modifier in d.modifiers if modifier in _NARROW), None)
    count = next((int(width) // 32 for width in ("64", "128") if width in d.modifiers), 1)
    targets = d.to_words(target, count)
    if source.register is None and narrow is None:
        slots = d.words(d.unsigned(source), count)

        def fixed(R: list[Array], m: Mask, warps: WarpSet) -> None:
            for to, slot in zip(targets, slots, strict=True):
                copyto(R[to], R[slot], where=m)

        return fixed
    return _indexed(d, source, targets, narrow)


def _indexed(
    d: SassDecoder, source: ConstantOperand, targets: Sequence[int], narrow: tuple[int, str] | None
) -> Op:
    where, number = d.place_in_bank(source), source.bank
    size, kind = narrow or (4, "u4")
    whole, site = size * len(targets), d.site

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        bank = warps.machine.execution.banks[number]
        at = where(R).astype(np.int64)
        wrong = ((at < 0) | (at + whole > len(bank)) | (at % whole != 0)) & warps.active(m)
        if wrong.any():
            row, lane = (int(index[0]) for index in np.nonzero(wrong))
            sentence = f"load of {whole} bytes from c[{number:#x}][{int(at[row, lane]):#x}]."
            warps.machine.report("out-of-bounds", sentence, site, int(warps.warps[row]))
            raise Fatal
        at = np.where(warps.active(m), at, 0)
        for index, slot in enumerate(targets):
            values = bank.view(np.dtype(kind))[at // size + index]
            copyto(R[slot], values.astype(np.uint32), where=m)

    return op


@covers("LDGSTS.E{:|.BYPASS}{:|.LTC64B|.LTC128B|.LTC256B}{:|.64|.128}{:|.ZFILL}")
def ldgsts(d: SassDecoder) -> Op:
    """Lands late. Where the predicate does not hold zeros are written; with `.ZFILL` the low bits
    of the address in global memory say how many of the last bytes are zeros."""
    to, source, *others = d.operands
    size = next((int(width) // 8 for width in ("64", "128") if width in d.modifiers), 4)
    fills = "ZFILL" in d.modifiers
    bypasses, low = "BYPASS" in d.modifiers, np.uint64(size - 1)
    copy = LaneCopy(d.site, size, bypasses=bypasses, fills=fills or bool(others))
    d.note_unit("shared", 4)
    where, from_ = d.shared_address(to), d.address(source, wide=True)
    wanted = d.predicate(*d.take(others, 1)) if others else None

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        address = from_(R)
        zeros = address & low if fills else np.zeros_like(address)
        kept = (np.uint64(size) - zeros).astype(np.uint32)
        if wanted is not None:
            kept = np.where(wanted(R), kept, 0).astype(np.uint32)
        copy.issue(warps, where(R), address - zeros, kept, m)

    return op


@covers("LDGDEPBAR")
def ldgdepbar(d: SassDecoder) -> Op:
    """Closes the warp's group of copies."""
    return each_warp(lane_copies.commit)


_COPIES = 0
"""The scoreboard of copies."""


@covers("DEPBAR.LE")
def depbar(d: SassDecoder) -> GroupsWait | Op:
    """Waits until at most so many of the warp's groups of copies, and of bulk stores, are pending:
    these until they have written. Other scoreboards than the first are those of results, which are
    there at once."""
    board, allowed = d.take(d.operands, 2)
    if not (isinstance(board, RegisterOperand) and board.file == "SB"):
        raise d.refuse("waits for no scoreboard")
    if not isinstance(allowed, LiteralOperand):
        raise d.refuse("has a register where a number is expected")
    return GroupsWait(d.site, allowed.value) if board.index == _COPIES else nothing


@covers("DEPBAR")
def wait_for_results(d: SassDecoder) -> Op:
    """Results of loads are there at once, so that nothing has to be waited for."""
    return nothing


@covers("UMEMSETS.64")
def clear(d: SassDecoder) -> Op:
    """Zeros in shared memory, so many times 8 bytes."""
    target, value, count = d.take(d.operands, 3)
    if not is_zero(value):
        raise d.refuse("sets memory to something else than zeros, which is not covered")
    where, (size,) = d.shared_address(target), d.words(d.unsigned(count), 1)
    access = AccessKind(d.site, 8, 1, store=True)
    d.note_unit("shared", 8)
    first = np.arange(32) == 0

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        lanes, zeros = warps.active(m) & first, np.zeros((warps.count, 32), np.uint64)
        memory, address = warps.machine.spaces["shared"], np.broadcast_to(where(R), lanes.shape)
        for unit in range(int(np.where(lanes, R[size], 0).max())):
            at = address + np.uint32(8 * unit)
            memory.store(warps, at, zeros, access, lanes & (R[size] > unit))

    return op


@covers("MEMBAR.{:ALL|SC}.{:CTA|GPU|SYS}", "ERRBAR", "CGAERRBAR", "CCTL.IVALL")
@covers("FENCE.VIEW.ASYNC.{:S|G|T}", "SYNCS.CCTL.IVALL", "UTMACCTL.IV")
@covers("CCTL.E.C.LDCU.IV.DEEP")
def fence(d: SassDecoder) -> Op:
    """Memory is sequentially consistent here, so that fences have nothing to do."""
    return nothing


@covers("CCTL.E.{:PF1|PF2|PML2|DML2|RML2}")
@covers("UBLKPF.L2", "UTMAPF.L2.{:1D|2D|3D|4D|5D}", "UTMACCTL.PF")
def hint(d: SassDecoder) -> Op:
    """Has no effect that a program can see."""
    return nothing


def nothing(R: list[Array], m: Mask, warps: WarpSet) -> None:
    """No effect."""
