"""Rules about order: what is forgotten, comes twice, too early or too late, or is too weak."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mutations import edits
from mutations.rules import Change, Site, replaced_in_opcode, rule, stem
from warpsim.front.ptx.syntax import Function, Immediate, Instruction, Register

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


@rule(
    "weaken",
    r"mbarrier\.(arrive|try_wait|test_wait)|barrier\.cluster\.arrive|(ld|st|atom)\.(acq|rel)",
)
def relax(site: Site) -> Iterator[Change]:
    yield from replaced_in_opcode(
        site, (("relaxed", r"\.(acquire|release|acq_rel)\b", ".relaxed"),)
    )


@rule("weaken", r"membar|fence\.(acq_rel|sc)|ld\.|st\.|atom|red\.|mbarrier\.(arrive|try)")
def narrow(site: Site) -> Iterator[Change]:
    if re.match(r"(ld|st|atom|red)\.", site.instruction.opcode) and not re.search(
        r"relaxed|acquire|release|acq_rel", site.instruction.opcode
    ):
        return
    yield from replaced_in_opcode(
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


# Arrivals and commits that come twice


@rule(
    "twice", r"mbarrier\.arrive|tcgen05\.commit|bar\.arrive|barrier\.cluster\.arrive|mbarrier\.init"
)
def twice(site: Site) -> Iterator[Change]:
    yield Change("twice", edits.replace(site.at, site.instruction, site.instruction))
