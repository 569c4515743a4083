"""SASS instructions as the model of time sees them: which units, for how long, waiting for what."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from warpsim.front.sass import word
from warpsim.front.sass.syntax import (
    Described,
    LiteralOperand,
    MachineInstruction,
    Other,
    RegisterOperand,
)
from warpsim.machine.core.arrays import Array
from warpsim.tables import opcodes
from warpsim.timing import footprints
from warpsim.timing.chips import TimedChip
from warpsim.timing.errors import NotModelled
from warpsim.timing.recording import BlockShape

# compiled/timing.hpp has the same names in the same order.
KINDS = (
    "skip fixed queued constant shared load store atomic copy sync test arrive bulk_load "
    "bulk_store prefetch commit groups matrix matrix_arrive matrix_wait product signal "
    "tensor_memory exit"
).split()
_KIND = {name: number for number, name in enumerate(KINDS)}
PIPES = ("fma", "lite", "alu", "xu", "tensor", "uniform", "fp64", "control")
_PIPE = {name: number for number, name in enumerate(PIPES)}
INSTRUCTION = np.dtype(
    [
        *((name, np.int32) for name in ("kind", "pipe", "second")),
        ("interval", np.float32),
        *((name, np.int32) for name in "latency stall wbar rbar wait extra".split()),
    ]
)
NO_BOARD = 7
_COPIES = 0
"""The scoreboard of groups of copies."""


class OpcodeTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Which units an instruction takes."""

    kind: str = "fixed"
    pipe: str = ""
    second: str = ""
    interval: float = 1
    latency: int = 0
    extra: int = 0
    waits: int = 0
    """Scoreboards that it waits for beside those of its control field."""


# By the group of tables/opcodes.py. Half pipes of 16 lanes take a warp in two cycles; an SM has a
# quarter of its special functions, 16 results per cycle, in each sub-core.
_GROUPS: Mapping[str, OpcodeTiming] = {
    "alu": OpcodeTiming(pipe="alu", interval=2),
    "xu": OpcodeTiming(kind="queued", pipe="xu", interval=8, latency=18),
    "uniform": OpcodeTiming(pipe="uniform", interval=2),
    "fp64": OpcodeTiming(pipe="fp64", interval=2),
    "cbu": OpcodeTiming(pipe="control", interval=2),
    "lsu": OpcodeTiming(kind="queued", latency=23, extra=1),
    "adu": OpcodeTiming(kind="queued", latency=24),
    "tma": OpcodeTiming(),
    "none": OpcodeTiming(),
    "unknown": OpcodeTiming(),
}
_FMA = OpcodeTiming(pipe="fma", second="lite", interval=2)
_HEAVY = OpcodeTiming(pipe="fma", interval=2)
_BOTH = frozenset("FADD FFMA FMUL FADD32I FFMA32I FMUL32I HADD2 HMUL2 HFMA2".split())
_NAMED: Mapping[str, OpcodeTiming] = {
    "LDC": OpcodeTiming(kind="constant", latency=26),
    "S2R": OpcodeTiming(kind="queued", latency=22),
    "S2UR": OpcodeTiming(kind="queued", latency=22),
    "MEMBAR": OpcodeTiming(kind="queued", latency=12),
    "MEMBAR.ALL.GPU": OpcodeTiming(kind="queued", latency=280),
    "MEMBAR.SC.GPU": OpcodeTiming(kind="queued", latency=280),
    "FENCE": OpcodeTiming(kind="queued", latency=10),
    "LDGDEPBAR": OpcodeTiming(kind="commit"),
    "UTMACMDFLUSH": OpcodeTiming(kind="commit"),
    "EXIT": OpcodeTiming(kind="exit"),
    "UTMACCTL": OpcodeTiming(),
    # Eight cycles of a sub-core for both and a branch, and eight until a warp goes on (an H100).
    "BSSY": OpcodeTiming(pipe="control", interval=4),
    "BSYNC": OpcodeTiming(pipe="control", interval=4, latency=8),
}
_BY_LANE = OpcodeTiming(kind="constant", latency=29, extra=1)
_FOOTPRINTS = (
    (footprints.SHARED, "shared"),
    (footprints.LOADS, "load"),
    (footprints.STORES, "store"),
    (footprints.ATOMICS, "atomic"),
    (footprints.COPIES, "copy"),
    (footprints.BULK_STORES, "bulk_store"),
    (footprints.PREFETCHES, "prefetch"),
)
_PRODUCTS = frozenset("HGMMA QGMMA IGMMA BGMMA".split())
_PAIR, _FROM_TENSOR_MEMORY = 1, 2
"""compiled/timing.hpp: ProductForm."""
_TENSOR_MEMORY = frozenset("LDTM STTM".split())
_PER_COUNT = {"16dp256bit": 4, "16dp128bit": 2}
"""Registers of a lane per unit of a form's count, where it is not one."""
_WARP_PRODUCTS = frozenset("HMMA IMMA QMMA".split())
_UNKNOWN = frozenset("UTCCP UTCSHIFT".split())
_FLOAT = re.compile(r"B?F\d+")
_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")
_ROWS_OF_A = 64
_ROW_BYTES = 32
"""Of an operand's row, in one instruction."""


def table(
    code: Sequence[MachineInstruction], blocks: Mapping[int, BlockShape], sm: int, chip: TimedChip
) -> Array:
    """An INSTRUCTION for each, with what its control field says."""
    rows = np.zeros(len(code), INSTRUCTION)
    for number, ins in enumerate(code):
        rows[number] = _row(ins, blocks.get(number), sm, chip)
    return rows


def _row(
    ins: MachineInstruction, block: BlockShape | None, sm: int, chip: TimedChip
) -> tuple[float, ...]:
    if ins.opcode.startswith("@"):
        return (_KIND["skip"], -1, -1, 0, 0, 0, NO_BOARD, NO_BOARD, 0, 0)
    timing = of(ins, block, sm, chip)
    bits = ins.word
    return (
        _KIND[timing.kind],
        _PIPE.get(timing.pipe, -1),
        _PIPE.get(timing.second, -1),
        timing.interval,
        timing.latency,
        word.field(bits, 105, 4),
        word.field(bits, 110, 3),
        word.field(bits, 113, 3),
        word.field(bits, 116, 6) | timing.waits,
        timing.extra,
    )


def of(ins: MachineInstruction, block: BlockShape | None, sm: int, chip: TimedChip) -> OpcodeTiming:
    """The units that an instruction takes; `block`: the one that begins there."""
    if block is not None and block.gate:
        return OpcodeTiming(kind=block.gate)
    base = ins.base
    if base in footprints.ARRIVALS and (base == "ARRIVES" or "ARRIVE" in ins.modifiers):
        return OpcodeTiming(kind="arrive")
    if base in footprints.BULK_LOADS:
        stores = ins.modifiers[:2] == ("G", "S")
        return OpcodeTiming(kind="bulk_store" if stores else "bulk_load")
    for bases, kind in _FOOTPRINTS:
        if base in bases:
            return _of_memory(kind, ins)
    if base == "DEPBAR":
        return _waiting(ins)
    if base == "WARPGROUP" and "DEPBAR" in ins.modifiers:
        return OpcodeTiming(kind="matrix_wait", extra=_allowed(ins))
    if base == "WARPGROUP" and "ARRIVE" in ins.modifiers:
        return OpcodeTiming(kind="matrix_arrive")
    if base in _PRODUCTS:
        return _product(ins, chip)
    fifth = _tensor_memory(ins, chip)
    if fifth is not None:
        return fifth
    if base in _WARP_PRODUCTS:
        return OpcodeTiming(pipe="tensor", interval=_flops(ins) / _rate(ins, chip["mma_flops"]))
    return _by_group(ins, sm)


def _of_memory(kind: str, ins: MachineInstruction) -> OpcodeTiming:
    """Of what reads or writes memory, or has it copied."""
    if kind == "atomic":
        return _atomic(ins)
    extra = _words(ins) if kind == "shared" else int(_is_past_l1(kind, ins))
    return OpcodeTiming(kind=kind, extra=extra)


def _atomic(ins: MachineInstruction) -> OpcodeTiming:
    """Of a warp: an SM needs twice as long where it wants the results; float64 and compare-and-swap
    take L2 twice as long (warpsim/timing/microbenchmarks.cu on an H100)."""
    wide = "F64" in ins.modifiers or "CAS" in ins.modifiers
    floats = any(_FLOAT.match(m) for m in ins.modifiers)
    return OpcodeTiming(
        kind="atomic",
        interval=2 if wide else 1,
        latency=1 if ins.base in ("RED", "REDG") else 2,
        extra=int(floats),
    )


def _words(ins: MachineInstruction) -> int:
    """That a lane loads from shared memory: its registers take as long as so many wavefronts."""
    if ins.base != "LDS":
        return 1
    return 4 if "128" in ins.modifiers else 2 if "64" in ins.modifiers else 1


def _is_past_l1(kind: str, ins: MachineInstruction) -> bool:
    """Whether L1 has nothing of what it reads: copies that bypass it, loads that other SMs see."""
    if kind == "copy":
        return "BYPASS" in ins.modifiers
    return kind == "load" and not {"GPU", "SYS"}.isdisjoint(ins.modifiers)


def _by_group(ins: MachineInstruction, sm: int) -> OpcodeTiming:
    if footprints.reads_by_lane(ins):
        return _BY_LANE
    known = _NAMED.get(".".join(ins.opcode.split(".")[:3])) or _NAMED.get(ins.base)
    if known is not None:
        return known
    group = opcodes.group(ins.opcode, ins.text, sm)
    if group in ("fma", "fp16"):
        return _FMA if ins.base in _BOTH else _HEAVY
    return _GROUPS.get(group, _GROUPS["none"])


def _waiting(ins: MachineInstruction) -> OpcodeTiming:
    """DEPBAR: for groups of copies, or for scoreboards."""
    board = ins.operands[0] if ins.operands else None
    if isinstance(board, RegisterOperand) and board.file == "SB":
        if "LE" in ins.modifiers and board.index == _COPIES:
            return OpcodeTiming(kind="groups", extra=_allowed(ins))
        return OpcodeTiming(waits=1 << board.index)
    boards = re.findall(r"\d+", board.text) if isinstance(board, Other) else []
    return OpcodeTiming(waits=sum(1 << int(item) for item in boards))


def _allowed(ins: MachineInstruction) -> int:
    return next((x.value for x in ins.operands if isinstance(x, LiteralOperand)), 0)


def _product(ins: MachineInstruction, chip: TimedChip) -> OpcodeTiming:
    """A quarter of a warpgroup's product. Operands in shared memory are read at its rate."""
    shape = _SHAPE.search(ins.opcode)
    n = int(shape[2]) if shape else 0
    flops = _flops(ins) / 4
    described = [x for x in ins.operands if isinstance(x, Described)]
    in_registers = isinstance(ins.operands[1], RegisterOperand)
    rows = n if in_registers else n + _ROWS_OF_A
    reading = rows * _ROW_BYTES / 128 if described else 0
    cycles = max(flops / _rate(ins, chip["gmma_flops"]), reading)
    if in_registers:
        cycles += chip["gmma_registers"]
    closes = Other("gsb0") in ins.operands
    return OpcodeTiming(
        kind="matrix", pipe="tensor", interval=cycles, latency=round(reading), extra=int(closes)
    )


def _tensor_memory(ins: MachineInstruction, chip: TimedChip) -> OpcodeTiming | None:
    """Of what works on tensor memory."""
    if ins.base in footprints.PRODUCTS:
        return _tensor_product(ins)
    if ins.base in footprints.SIGNALS:
        return OpcodeTiming(kind="signal")
    if ins.base in _TENSOR_MEMORY:
        turns = _registers(ins) / chip["tmem_rate"]
        return OpcodeTiming(kind="tensor_memory", interval=turns)
    if ins.base in _UNKNOWN:
        raise NotModelled(f"{ins.opcode} has no modelled time.")
    return None


def _tensor_product(ins: MachineInstruction) -> OpcodeTiming:
    """Of tcgen05: its cycles follow from the shape, which a register holds."""
    a = ins.operands[0]
    in_tensor_memory = isinstance(a, Described) and a.kind == "tmem"
    pair = _PAIR if "2CTA" in ins.modifiers else 0
    return OpcodeTiming(
        kind="product", extra=pair | (_FROM_TENSOR_MEMORY if in_tensor_memory else 0)
    )


def _registers(ins: MachineInstruction) -> int:
    """Of each lane, that an access to tensor memory gives or takes."""
    count = next((int(m[1:]) for m in ins.modifiers if re.fullmatch(r"x\d+", m)), 1)
    return count * next((_PER_COUNT[m] for m in ins.modifiers if m in _PER_COUNT), 1)


def _flops(ins: MachineInstruction) -> int:
    shape = _SHAPE.search(ins.opcode)
    if shape is not None:
        return 2 * math.prod(map(int, shape.groups()))
    packed = re.search(r"\.(16)(8)(\d+)", ins.opcode)
    return 2 * math.prod(map(int, packed.groups())) if packed else 4096


def _rate(ins: MachineInstruction, rate: float) -> float:
    """Twice that of 16 bits for operands of 8, half for those of 32."""
    if ins.base in ("QGMMA", "IGMMA", "IMMA", "QMMA"):
        return 2 * rate
    return rate / 2 if "TF32" in ins.modifiers else rate
