"""Rules about operands: counts, parities, masks, addresses and fields that are off by one."""

from __future__ import annotations

from collections.abc import Iterator

from mutations import edits
from mutations.rules import Change, Site, replaced_in_opcode, rule
from warpsim.front.ptx.syntax import Address, Function, Immediate, Register, Vector

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
    yield from replaced_in_opcode(site, (("and", r"\.or\.", ".and."), ("or", r"\.and\.", ".or.")))


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
            result = edits.splice(function, site.at, [inverse, changed])
            result.registers[edits.MUTANT] = "pred"
            return result

        yield Change(name, edit)
