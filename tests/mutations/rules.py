"""The rules that make mutants: what to change of which instruction.

A rule looks at one instruction of a parsed entry and names the changes that it would make. Each is
one mistake that somebody could have made: a barrier forgotten, an arrival before the last read, a
parity the wrong way round, a field of a descriptor that is off by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

from kernelexp.emulator.ptx.syntax import (
    Address,
    Function,
    Immediate,
    Instruction,
    Register,
    Vector,
)
from mutations import edits
from mutations.edits import Edit


class Change(NamedTuple):
    """A change of one instruction: how it is named, and how it is made."""

    name: str
    edit: Edit


class Site(NamedTuple):
    """An instruction in its entry."""

    function: Function
    at: int

    @property
    def instruction(self) -> Instruction:
        return self.function.instructions[self.at]


class Rule(NamedTuple):
    kind: str
    """What is done: drop, move, weaken, swap, off by one, field."""
    pattern: re.Pattern[str]
    """Of the opcodes that it is about."""
    changes: Callable[[Site], Iterator[Change]]


RULES: list[Rule] = []


def rule(kind: str, pattern: str) -> Callable[[Callable[[Site], Iterator[Change]]], object]:
    def add(changes: Callable[[Site], Iterator[Change]]) -> object:
        RULES.append(Rule(kind, re.compile(pattern), changes))
        return changes

    return add


# What is forgotten

_DROPPED = (
    r"bar(rier)?(\.cta)?\.(sync|arrive)|bar\.warp\.sync|barrier\.cluster|fence|membar|"
    r"mbarrier\.(init|arrive|expect_tx|inval)|cp\.async\.(commit|wait|mbarrier)|"
    r"cp\.async\.bulk\.(commit|wait)|wgmma\.(fence|commit|wait)|"
    r"tcgen05\.(commit|wait|fence|alloc|dealloc|relinquish)|setmaxnreg"
)


@rule("drop", _DROPPED)
def drop(site: Site) -> Iterator[Change]:
    yield Change("dropped", edits.replace(site.at))


@rule("drop", r"mbarrier\.(try|test)_wait")
def drop_wait(site: Site) -> Iterator[Change]:
    ins = site.instruction
    true = edits.like(ins, "setp.eq.u32", ins.operands[0], Immediate(0), Immediate(0))
    yield Change("not waited for", edits.replace(site.at, true))


# What comes too early or too late

_SYNCHRONISES = re.compile(_DROPPED + r"|mbarrier")
_SHARED = re.compile(
    r"(ld|st)\.(volatile\.)?shared|ldmatrix|stmatrix|(atom|red)\.(\w+\.)*shared|cp\.async|"
    r"cp\.reduce|wgmma\.mma|tcgen05\.(mma|ld|st|alloc|dealloc)|st\.async"
)
_GLOBAL = re.compile(r"(ld|st)\.(?!param|const|local|shared|global\.nc)|atom|red\.")
_RELEASE = (
    r"membar|fence|mbarrier\.arrive|bar(rier)?\.(sync|arrive)|bar\.warp|barrier\.cluster\.arr"
)
_ACQUIRE = (
    r"membar|fence|bar(rier)?\.sync|bar\.warp|barrier\.cluster\.wait|wgmma\.wait|"
    r"cp\.async\.wait|cp\.async\.bulk\.wait|tcgen05\.wait|tcgen05\.fence::after"
)
_ENDS = re.compile(r"bra|brx|ret|exit|call|trap")


def _effects(opcode: str) -> re.Pattern[str]:
    """What an instruction of this kind orders."""
    return _GLOBAL if re.match(r"membar|fence\.(acq_rel|sc)", opcode) else _SHARED


def _written(instruction: Instruction) -> set[str]:
    return set(edits.registers(instruction.operands[0])) if instruction.operands else set()


def _read(instruction: Instruction) -> set[str]:
    named = {name for operand in instruction.operands for name in edits.registers(operand)}
    return named | ({instruction.guard.name} if instruction.guard else set())


def _neighbour(site: Site, step: int) -> int | None:
    """The nearest instruction that this one orders, in its basic block and before any other
    synchronisation; None if nothing of the kind can be passed."""
    function, at, ins = site.function, site.at, site.instruction
    starts, wanted = set(function.labels.values()), _effects(ins.opcode)
    to = at
    while True:
        if step < 0 and to in starts:
            return None
        to += step
        if not 0 <= to < len(function.instructions) or (step > 0 and to in starts):
            return None
        other = function.instructions[to]
        if _ENDS.match(other.opcode) or _written(other) & _read(ins):
            return None
        if wanted.match(other.opcode) and not _SYNCHRONISES.match(other.opcode):
            return to
        if _SYNCHRONISES.match(other.opcode):
            return None


@rule(
    "move", _RELEASE + r"|cp\.async\.(bulk\.)?commit|wgmma\.commit|tcgen05\.commit|tcgen05.fence::b"
)
def hoist(site: Site) -> Iterator[Change]:
    to = _neighbour(site, -1)
    if to is not None:
        yield Change("moved before the access", edits.move(site.at, to))


@rule("move", _ACQUIRE)
def sink(site: Site) -> Iterator[Change]:
    to = _neighbour(site, 1)
    if to is not None:
        yield Change("moved after the access", edits.move(site.at, to))


@rule("swap", _DROPPED)
def swap(site: Site) -> Iterator[Change]:
    """With the next synchronisation, if nothing but arithmetic stands between."""
    function, at, ins = site.function, site.at, site.instruction
    starts = set(function.labels.values())
    for to in range(at + 1, min(at + 8, len(function.instructions))):
        other = function.instructions[to]
        if to in starts or _ENDS.match(other.opcode) or _written(ins) & _read(other):
            return
        if _SHARED.match(other.opcode) or _GLOBAL.match(other.opcode):
            if not _SYNCHRONISES.match(other.opcode):
                return
        if _SYNCHRONISES.match(other.opcode):
            if other.opcode != ins.opcode and "init" not in other.opcode:
                yield Change(f"after {stem(other.opcode)}", edits.move(at, to))
            return


# What is too weak


def _instead(site: Site, pairs: tuple[tuple[str, str, str], ...]) -> Iterator[Change]:
    for name, old, new in pairs:
        opcode = re.sub(old, new, site.instruction.opcode, count=1)
        if opcode != site.instruction.opcode:
            yield Change(name, edits.renamed(site.at, site.instruction, opcode))


@rule(
    "weaken",
    r"mbarrier\.(arrive|try_wait|test_wait)|barrier\.cluster\.arrive|(ld|st|atom)\.(acq|rel)",
)
def relax(site: Site) -> Iterator[Change]:
    yield from _instead(site, (("relaxed", r"\.(acquire|release|acq_rel)\b", ".relaxed"),))


@rule("weaken", r"membar|fence\.(acq_rel|sc)|ld\.|st\.|atom|red\.|mbarrier\.(arrive|try)")
def narrow(site: Site) -> Iterator[Change]:
    if re.match(r"(ld|st|atom|red)\.", site.instruction.opcode) and not re.search(
        r"relaxed|acquire|release|acq_rel", site.instruction.opcode
    ):
        return
    yield from _instead(
        site,
        (
            ("for the CTA only", r"membar\.(gl|sys)", "membar.cta"),
            ("for the CTA only", r"(?<!shared::)\b(gpu|sys|cluster)\b(?!.*\bcluster\.b64)", "cta"),
        ),
    )


@rule("weaken", r"(ld|st)\.volatile|(ld|st)\.(acquire|release|relaxed)")
def plain(site: Site) -> Iterator[Change]:
    opcode = re.sub(
        r"\.(volatile|acquire|release|relaxed)(\.(cta|cluster|gpu|sys))?",
        "",
        site.instruction.opcode,
    )
    yield Change("plain", edits.renamed(site.at, site.instruction, opcode))


@rule("weaken", r"(atom|red)\.((relaxed|acq_rel)\.)?((gpu|cta)\.)?(global|shared)\.add\.u32")
def not_atomic(site: Site) -> Iterator[Change]:
    ins = site.instruction
    space = "shared" if "shared" in ins.opcode else "global"
    where, value = ins.operands[-2:]
    mutant = Register(edits.MUTANT)
    loaded = ins.operands[0] if ins.opcode.startswith("atom") else Register("%mutant0")
    if not isinstance(loaded, Register):
        loaded = Register("%mutant0")

    def edit(function: Function) -> Function:
        new = [
            edits.like(ins, f"ld.{space}.u32", loaded, where),
            edits.like(ins, "add.u32", mutant, loaded, value),
            edits.like(ins, f"st.{space}.u32", where, mutant),
        ]
        changed = edits.splice(function, site.at, new)
        changed.registers |= {edits.MUTANT: "b32", "%mutant0": "b32"}
        return changed

    yield Change("not atomic", edit)


@rule("weaken", r"(cp\.async\.(bulk\.)?wait_group|wgmma\.wait_group)")
def wait_for_fewer(site: Site) -> Iterator[Change]:
    ins = site.instruction
    (allowed,) = ins.operands
    assert isinstance(allowed, Immediate)
    more = edits.with_operand(ins, 0, Immediate(allowed.value + 1))
    yield Change("one group fewer", edits.replace(site.at, more))
    if re.fullmatch(r"cp\.async\.bulk\.wait_group", ins.opcode):
        yield Change("read only", edits.renamed(site.at, ins, ins.opcode + ".read"))


@rule("weaken", r"bar(rier)?\.sync")
def warp_only(site: Site) -> Iterator[Change]:
    ins = site.instruction
    yield Change(
        "of the warp only",
        edits.replace(site.at, edits.like(ins, "bar.warp.sync", Immediate(0xFFFFFFFF))),
    )
    if len(ins.operands) == 2:
        yield Change(
            "arrives only", edits.replace(site.at, edits.like(ins, "bar.arrive", *ins.operands))
        )


@rule("weaken", r"fence\.(proxy\.async|mbarrier_init)")
def another_fence(site: Site) -> Iterator[Change]:
    yield Change("a generic fence", edits.renamed(site.at, site.instruction, "fence.acq_rel.cta"))


# What is off by one


def _operand(
    site: Site, number: int, *values: tuple[str, str, int], bits: int = 32
) -> Iterator[Change]:
    for name, operation, by in values:
        yield Change(name, edits.compute(site.at, site.instruction, number, operation, by, bits))


def _address(site: Site, number: int, name: str, by: int) -> Iterator[Change]:
    if isinstance(site.instruction.operands[number], Address):
        yield Change(name, edits.offset(site.at, site.instruction, number, by))


@rule("count", r"mbarrier\.init")
def arrivals(site: Site) -> Iterator[Change]:
    yield from _operand(site, 1, ("count + 1", "add", 1), ("count - 1", "add", -1))


@rule("count", r"mbarrier\.(arrive|arrive_drop|try_wait|test_wait)")
def another_barrier(site: Site) -> Iterator[Change]:
    yield from _address(site, 1, "the next barrier", 8)


@rule("count", r"mbarrier\.arrive\.expect_tx|mbarrier\.expect_tx")
def bytes_expected(site: Site) -> Iterator[Change]:
    last = len(site.instruction.operands) - 1
    yield from _operand(site, last, ("bytes + 16", "add", 16), ("bytes - 16", "add", -16))


@rule("parity", r"mbarrier\.(try|test)_wait\.parity")
def parity(site: Site) -> Iterator[Change]:
    yield from _operand(site, 2, ("parity flipped", "xor", 1))


@rule("count", r"bar(rier)?\.(sync|arrive)")
def barrier_operands(site: Site) -> Iterator[Change]:
    if len(site.instruction.operands) == 2:
        yield from _operand(site, 0, ("number + 1", "add", 1))
        yield from _operand(site, 1, ("threads + 32", "add", 32), ("threads - 32", "add", -32))


@rule("mask", r"bar\.warp\.sync|(shfl|vote|match|redux|elect)\.")
def members(site: Site) -> Iterator[Change]:
    last = len(site.instruction.operands) - 1
    yield from _operand(
        site, last, ("without lane 0", "and", 0xFFFFFFFE), ("without lane 3", "and", 0xFFFFFFF7)
    )


@rule("count", r"shfl\.")
def shuffled(site: Site) -> Iterator[Change]:
    if ".bfly" in site.instruction.opcode:
        # Other steps of a butterfly may add up the same lanes.
        yield from _operand(site, 2, ("its own lane", "and", 0))
    else:
        yield from _operand(site, 2, ("lane + 1", "add", 1))


@rule("mask", r".*multicast::cluster")
def ctas(site: Site) -> Iterator[Change]:
    number = len(site.instruction.operands) - (2 if "cache_hint" in site.instruction.opcode else 1)
    yield from _operand(
        site,
        number,
        ("without CTA 0", "xor", 1),
        ("without CTA 1", "xor", 2),
        ("with CTA 2", "xor", 4),
        bits=16,
    )


@rule("mask", r"mapa")
def rank(site: Site) -> Iterator[Change]:
    yield from _operand(site, 2, ("the other CTA", "xor", 1), ("a CTA beyond", "xor", 2))


@rule("count", r"setmaxnreg")
def registers(site: Site) -> Iterator[Change]:
    yield from _operand(site, 0, ("8 more", "add", 8), ("8 fewer", "add", -8), ("4 more", "add", 4))


@rule("count", r"tcgen05\.(alloc|dealloc)")
def columns(site: Site) -> Iterator[Change]:
    ins = site.instruction
    old = ins.operands[1]
    assert isinstance(old, Immediate)
    for name, new in (
        ("half of the columns", old.value // 2),
        ("twice the columns", 2 * old.value),
    ):
        yield Change(name, edits.replace(site.at, edits.with_operand(ins, 1, Immediate(new))))


@rule("address", r"tcgen05\.(ld|st)\.")
def tensor_address(site: Site) -> Iterator[Change]:
    number = 1 if site.instruction.opcode.startswith("tcgen05.ld") else 0
    yield from _address(site, number, "column + 1", 1)
    yield from _address(site, number, "the next lanes", 32 << 16)


@rule("address", r"cp\.async\.bulk\.(tensor\.\dd\.)?(cta_group::\d\.)?shared::")
def loaded_box(site: Site) -> Iterator[Change]:
    ins = site.instruction
    tensor = "tensor" in ins.opcode
    yield from _address(site, 0, "destination + 128", 128)
    yield from _address(site, 2 if tensor else 3, "the next barrier", 8)
    where = ins.operands[1]
    if tensor and isinstance(where, Address) and isinstance(where.extra[0], Vector):
        for which in range(len(where.extra[0].items)):
            yield Change(f"coordinate {which} + 1", edits.coordinate(site.at, ins, 1, which))


@rule("address", r"cp\.(reduce\.)?async\.bulk\.tensor\.\dd\.global")
def stored_box(site: Site) -> Iterator[Change]:
    yield from _address(site, 1, "source + 128", 128)
    yield Change("coordinate 1 + 1", edits.coordinate(site.at, site.instruction, 0, 1))


@rule("address", r"cp\.async\.c[ag]\.")
def copied(site: Site) -> Iterator[Change]:
    yield from _address(site, 0, "destination + 16", 16)
    yield from _address(site, 1, "source + 16", 16)


@rule("address", r"ldmatrix|stmatrix|st\.shared|ld\.shared|st\.async")
def shared_address(site: Site) -> Iterator[Change]:
    ins = site.instruction
    number = 1 if ins.opcode.startswith("ld") else 0
    yield from _address(site, number, "address + 16", 16)


@rule("address", r"tcgen05\.commit")
def commit_barrier(site: Site) -> Iterator[Change]:
    yield from _address(site, 0, "the next barrier", 8)


@rule("field", r"bar\.red\.")
def voted(site: Site) -> Iterator[Change]:
    yield from _inverted(site, len(site.instruction.operands) - 1, "predicate inverted")


@rule("address", r"bar\.red\.")
def another_operation(site: Site) -> Iterator[Change]:
    yield from _instead(site, (("and", r"\.or\.", ".and."), ("or", r"\.and\.", ".or.")))


# Arrivals and commits that come twice


@rule(
    "twice", r"mbarrier\.arrive|tcgen05\.commit|bar\.arrive|barrier\.cluster\.arrive|mbarrier\.init"
)
def twice(site: Site) -> Iterator[Change]:
    yield Change("twice", edits.replace(site.at, site.instruction, site.instruction))


# Fields of descriptors

# PTX ISA, "Instruction descriptor": the lowest bit of each field of kind::f8f6f4.
_INSTRUCTION = {
    "sparse": 2, "saturate": 3, "D type": 4, "A type": 7, "B type": 10, "negate A": 13,
    "negate B": 14, "transpose A": 15, "transpose B": 16, "N": 17, "reserved 23": 23, "M": 24,
    "reserved 29": 29,
}  # fmt: skip
_MATRIX_SM100 = {
    "start": 1, "leading offset": 16, "stride offset": 32, "version": 46, "base offset": 49,
    "reserved": 53, "swizzle": 62,
}  # fmt: skip
_MATRIX_SM90 = {
    "start": 1, "leading offset": 16, "stride offset": 32, "base offset": 49, "swizzle": 62,
    "swizzle's high bit": 63,
}  # fmt: skip


@rule("field", r"tcgen05\.mma\.")
def tcgen05_descriptors(site: Site) -> Iterator[Change]:
    for name, bit in _INSTRUCTION.items():
        yield from _operand(site, 3, (f"instruction: {name}", "xor", 1 << bit))
    for number, matrix in ((1, "A"), (2, "B")):
        for name, bit in _MATRIX_SM100.items():
            yield from _operand(site, number, (f"{matrix}: {name}", "xor", 1 << bit), bits=64)
    yield from _inverted(site, 4, "accumulate inverted")
    yield from _address(site, 0, "column + 1", 1)


@rule("field", r"wgmma\.mma_async")
def wgmma_descriptors(site: Site) -> Iterator[Change]:
    operands = site.instruction.operands
    for number, matrix in ((1, "A"), (2, "B")):
        if isinstance(operands[number], Register):
            for name, bit in _MATRIX_SM90.items():
                yield from _operand(site, number, (f"{matrix}: {name}", "xor", 1 << bit), bits=64)
    yield from _inverted(site, 3, "accumulate inverted")


def _inverted(site: Site, number: int, name: str) -> Iterator[Change]:
    ins = site.instruction
    old = ins.operands[number] if number < len(ins.operands) else None
    if isinstance(old, Register):

        def edit(function: Function) -> Function:
            inverse = edits.like(ins, "not.pred", Register(edits.MUTANT), old)
            changed = edits.with_operand(ins, number, Register(edits.MUTANT))
            made = edits.splice(function, site.at, [inverse, changed])
            made.registers[edits.MUTANT] = "pred"
            return made

        yield Change(name, edit)


_STEM = re.compile(
    r"bar\.warp\.sync|bar(?:rier)?\.cluster\.\w+|bar\.\w+|barrier\.\w+|mbarrier\.\w+(?:\.expect_tx)?|"
    r"cp\.async\.bulk\.(?:tensor\.\dd\.(?:shared|global)|commit_group|wait_group(?:\.read)?)|"
    r"cp\.reduce|cp\.async\.bulk|cp\.async\.\w+|wgmma\.\w+|tcgen05\.\w+(?:::\w+)?|fence\.proxy\.async|"
    r"fence\.\w+|membar|\w+matrix|setmaxnreg\.\w+|\w+\.(?:volatile|acquire|release|relaxed|async)|"
    r"(?:ld|st|atom|red)\.\w+|\w+"
)


def stem(opcode: str) -> str:
    """The part of an opcode that says what it is."""
    found = _STEM.match(opcode)
    assert found, opcode
    return found[0]


class Mutant(NamedTuple):
    """A change of one instruction of a kernel."""

    key: str
    """kernel | instruction and which of its kind | change."""
    kind: str
    at: int
    instruction: Instruction
    change: Change


def mutants(
    kernel: str, function: Function, per_kind: int, executed: Container[tuple[int, str]]
) -> list[Mutant]:
    """Mutants of the instructions of an entry that were `executed`, by their line and opcode; of
    each kind of instruction and change `per_kind` at most, spread over the entry."""
    ordinals: dict[str, int] = {}
    groups: dict[tuple[str, str], list[Mutant]] = {}
    for at, ins in enumerate(function.instructions):
        name = stem(ins.opcode)
        number = ordinals[name] = ordinals.get(name, 0) + 1
        if (ins.line, ins.opcode) not in executed:
            continue
        for each in RULES:
            if each.pattern.match(ins.opcode):
                for change in each.changes(Site(function, at)):
                    key = f"{kernel} | {name} {number} | {change.name}"
                    made = Mutant(key, each.kind, at, ins, change)
                    groups.setdefault((name, change.name), []).append(made)
    return [
        chosen
        for group in groups.values()
        for chosen in _spread(group, 1 if group[0].kind == "field" else per_kind)
    ]


def _spread(group: list[Mutant], count: int) -> list[Mutant]:
    """The first, the last and those evenly between."""
    if len(group) <= count:
        return group
    if count == 1:
        return [group[len(group) // 2]]
    return [group[round(i * (len(group) - 1) / (count - 1))] for i in range(count)]
