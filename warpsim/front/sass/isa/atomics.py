"""Atomic updates of memory: lanes execute one at a time, in lane order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsim.arithmetic.reductions import GLOBAL_ADD, GLOBAL_ADD_64, Combine, reduction
from warpsim.front.sass.decoder import SassDecoder, copyto
from warpsim.front.sass.operands import Reader, is_predicate
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import ZERO, Operand, RegisterOperand
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.sync import atomics
from warpsim.machine.wave.machine import Op, WarpSet
from warpsim.machine.wave.windows import lies_in

_KINDS = {
    "S32": "s32", "64": "u64", "S64": "s64", "F32": "f32", "F64": "f64", "F16x2": "f16x2",
    "BF16x2": "bf16x2",
}  # fmt: skip
_NAMES = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "CAS")
_SCOPE = ".STRONG.{:SM|GPU|SYS}"
_FORMS = (
    "{:ADD|MIN|MAX}{:|.S32|.64|.S64}",
    "{:INC|DEC|AND|OR|XOR}",
    "{:AND|OR|XOR}.64",
    "ADD.F32.FTZ.RN",
    "ADD.F64.RN",
    "ADD.{:F16x2|BF16x2}.RN",
)
_VECTORS = ("ADD.{:F32x2|F32x4}.FTZ.RN", "{:ADD|MIN|MAX}.{:F16x4|F16x8|BF16x4|BF16x8}.RN")
_ELEMENTS = {"F32": ("f32", 1), "F16": ("f16x2", 2), "BF16": ("bf16x2", 2)}
"""What a word of a vector is updated as, and how many elements it has."""


class Update:
    """What the modifiers of an atomic operation say."""

    def __init__(self, d: SassDecoder, space: str) -> None:
        names = d.instruction.modifiers
        self.name = next(name for name in names if name in _NAMES)
        self.type = next((_KINDS[name] for name in names if name in _KINDS), "u32")
        self.words = 2 if self.type.endswith("64") else 1
        self.space = space
        size, swapped = 4 * self.words, self.name == "CAS"
        self.access = AccessKind(d.site, size, 1, store=True, relaxed=True, swapped=swapped)
        d.note_unit(space, 4 * self.words)

    def function(self) -> Combine | None:
        if self.name == "CAS":
            return None
        if self.name == "ADD" and self.type == "f32":
            return GLOBAL_ADD
        if self.name == "ADD" and self.type == "f64":
            return GLOBAL_ADD_64
        return reduction(self.name.lower(), self.type)

    def source(self, d: SassDecoder, operand: Operand) -> Reader:
        return d.pair(operand) if self.words == 2 else d.bits(operand)

    def shared_too(self) -> bool:
        """Whether the hardware has the operation for shared memory."""
        return (self.words == 1 and self.type in ("u32", "s32")) or self.name in ("EXCH", "CAS")


def _updating(
    d: SassDecoder, update: Update, target: Operand | None, where: Reader, operands: list[Operand]
) -> Op:
    sources = [update.source(d, operand) for operand in operands]
    targets = _targets(d, target, update.words)
    function, access, space = update.function(), update.access, update.space

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = [source(R) for source in sources]
        memory = warps.machine.spaces[space]
        old = atomics.update(warps, memory, where(R), values, function, access, m, relaxed=True)
        for part, slot in enumerate(targets):
            word = old if part == 0 else old >> np.uint64(32)
            copyto(R[slot], word.astype(np.uint32), where=m)

    return op


def _targets(d: SassDecoder, target: Operand | None, words: int) -> list[int]:
    """Where the old value goes; empty if nobody wants it."""
    wanted = target is not None and getattr(target, "index", ZERO) != ZERO
    return d.to_words(target, words) if wanted and target is not None else []


def _patterns(stem: str, forms: tuple[str, ...], end: str) -> tuple[str, ...]:
    return tuple(f"{stem}.{form}{end}" for form in forms)


@covers(*_patterns("{:ATOMG|ATOM}.E", (*_FORMS, "{:EXCH|CAS}{:|.64}"), _SCOPE))
@covers(*_patterns("ATOMG.E", _FORMS, ""))
def atomg(d: SassDecoder) -> Op:
    """Gives the old value. The predicate of ATOM is whether it was done: not in local memory, and
    in shared memory only what ATOMS has too."""
    done, target, address, *operands = d.operands
    update = Update(d, "global" if d.instruction.base == "ATOMG" else "generic")
    d.take(operands, 2 if update.name == "CAS" else 1)
    where = d.address(address, wide=True)
    op = _updating(d, update, target, where, operands)
    if isinstance(done, RegisterOperand) and done.index == ZERO:
        return op
    if update.space == "global":
        raise d.refuse("gives a predicate, which is not covered")
    return _where_possible(op, where, d.to_predicate(done), update.shared_too())


def _where_possible(op: Op, where: Reader, predicate: int, shared_too: bool) -> Op:
    """An operation of the lanes whose addresses it is possible at; the predicate is which."""

    def possible(R: list[Array], m: Mask, warps: WarpSet) -> None:
        addresses = where(R)
        done = lies_in(warps, addresses, "global")
        if shared_too:
            done |= lies_in(warps, addresses, "shared::cluster")
        op(R, done & warps.active(m), warps)
        copyto(R[predicate], done, where=m)

    return possible


@covers(*_patterns("{:ATOMG|ATOM}.E", _VECTORS, _SCOPE), *_patterns("REDG.E", _VECTORS, _SCOPE))
def vectors(d: SassDecoder) -> Op:
    """Each element for itself."""
    target: Operand | None = None
    operands: Sequence[Operand] = d.operands
    if d.instruction.base != "REDG":
        unused, target, *operands = operands
        _unwanted(d, unused)
    address, operand = d.take(operands, 2)
    name, spelled = d.instruction.modifiers[1:3]
    stem, _, elements = spelled.partition("x")
    kind, per_word = _ELEMENTS[stem]
    words = int(elements) // per_word
    targets, sources = _targets(d, target, words), d.words(d.unsigned(operand), words)
    function = GLOBAL_ADD if kind == "f32" else reduction(name.lower(), kind)
    space = "generic" if d.instruction.base == "ATOM" else "global"
    access, where = (
        AccessKind(d.site, 4, 1, store=True, relaxed=True),
        d.address(address, wide=True),
    )
    d.note_unit(space, 4)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        memory, first = warps.machine.spaces[space], where(R)
        values = [R[source].copy() for source in sources]
        for index, value in enumerate(values):
            at = first + np.uint64(4 * index)
            old = atomics.update(warps, memory, at, [value], function, access, m, relaxed=True)
            if targets:
                copyto(R[targets[index]], old, where=m)

    return op


@covers(f"{{:ATOMG|ATOM}}.E.{{:EXCH|CAS}}.128{_SCOPE}")
def wide(d: SassDecoder) -> Op:
    """Four words at once."""
    unused, target, address, *operands = d.operands
    _unwanted(d, unused)
    d.take(operands, 2 if "CAS" in d.modifiers else 1)
    space = "generic" if d.instruction.base == "ATOM" else "global"
    targets, where = _targets(d, target, 4), d.address(address, wide=True)
    sources = [d.words(d.unsigned(operand), 4) for operand in operands]
    access = AccessKind(d.site, 8, 2, store=True, relaxed=True)
    d.note_unit(space, 16)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        memory = warps.machine.spaces[space]
        words = [np.stack([R[slot] for slot in source], axis=-1) for source in sources]
        values = [np.ascontiguousarray(word).view(np.uint64) for word in words]
        old = atomics.update_pair(warps, memory, where(R), values, access, m, relaxed=True)
        for index, slot in enumerate(targets):
            copyto(R[slot], old.view(np.uint32)[..., index], where=m)

    return op


def _unwanted(d: SassDecoder, predicate: Operand) -> None:
    if not (
        isinstance(predicate, RegisterOperand) and predicate.file == "P" and predicate.index == ZERO
    ):
        raise d.refuse("gives a predicate, which is not covered")


@covers(*_patterns("{:REDG|RED}.E", _FORMS, _SCOPE))
def redg(d: SassDecoder) -> Op:
    address, operand = d.take(d.operands, 2)
    where = d.address(address, wide=True)
    return _updating(d, Update(d, "global"), None, where, [operand])


@covers("ATOMS.{:ADD|MIN|MAX}{:|.S32}", "ATOMS.{:INC|DEC|AND|OR|XOR}", "ATOMS.{:EXCH|CAS}{:|.64}")
def atoms(d: SassDecoder) -> Op:
    """Gives the old value."""
    target, address, *operands = d.operands
    update = Update(d, "shared")
    d.take(operands, 2 if update.name == "CAS" else 1)
    return _updating(d, update, target, d.shared_address(address), operands)


@covers("ATOMS.CAST.SPIN{:|.64}", "ATOM.E.CAST.SPIN{:|.64}")
def cast(d: SassDecoder) -> Op:
    """Stores the new value where the old one is as expected: 1 where it has, else 0; of Blackwell's
    ATOMS a predicate."""
    operands: Sequence[Operand] = d.operands
    space = "shared"
    if d.instruction.base == "ATOM":
        unused, *operands = operands
        _unwanted(d, unused)
        space = "generic"
    target, address, expected, new = d.take(operands, 4)
    words = 2 if "64" in d.modifiers else 1
    access = AccessKind(d.site, 4 * words, 1, store=True, relaxed=True, swapped=True)
    d.note_unit(space, 4 * words)
    generic = space == "generic"
    where = d.address(address, wide=True) if generic else d.shared_address(address)
    predicate = d.to_predicate(target) if is_predicate(target) else None
    slots = d.to_words(target, words) if predicate is None else []
    read = d.pair if words == 2 else d.bits
    sources = [read(expected), read(new)]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = [source(R) for source in sources]
        memory = warps.machine.spaces[space]
        old = atomics.update(warps, memory, where(R), values, None, access, m, relaxed=True)
        stored = (old == values[0]).astype(np.uint32)
        if predicate is not None:
            copyto(R[predicate], stored != 0, where=m)
        for slot, value in zip(slots, (stored, np.zeros_like(stored)), strict=False):
            copyto(R[slot], value, where=m)

    return op


@covers("ATOMS.POPC.INC.32")
def count(d: SassDecoder) -> Op:
    """Each active lane adds one; the old value may not be used."""
    target, address = d.take(d.operands, 2)
    if getattr(target, "index", 0) != ZERO:
        raise d.refuse("gives the old value, which is not covered")
    access = AccessKind(d.site, 4, 1, store=True, relaxed=True)
    d.note_unit("shared", 4)
    where, function = d.shared_address(address), reduction("add", "u32")

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        ones = [np.ones((warps.count, 32), np.uint32)]
        memory = warps.machine.spaces["shared"]
        atomics.update(warps, memory, where(R), ones, function, access, m, relaxed=True)

    return op
