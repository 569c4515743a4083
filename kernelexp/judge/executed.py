"""The least time of a launch by what executing it on a CPU counted: bounds that no card passes.

Only what the card can't do faster is a bound. A load may hit in L1, so its sectors bound nothing; a
store's, and those that TMA moves, pass between L2 and the SM, and need not be L2's own nor device
memory's: requests of several SMs may be one of L2's. What a kernel that polls executes depends on
time, so of such a kernel only MMAs, their operands and what TMA moves count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from kernelexp.facts.chips import ARCHITECTURES, Chip
from kernelexp.model.arm import EmulatedEvidence
from kernelexp.model.record import LaunchCounts
from kernelexp.model.text import si

MMAS = "sm__inst_executed_pipe_tensor"
_PORTS = {
    "read": ("l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld",),
    "written": (
        "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
    ),
}
PORT_BYTES = 128
"""Between an SM and L2 per clock and direction: one SM of an H200 was seen to read 99 by bulk
copies (warpsim/timing/chips/h200.toml), all of a card about a third of that each."""
_OPERANDS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma"
_SHARED = "memory_l1_wavefronts_shared_ideal"
_PIPES = {
    "fma": "sm__inst_executed_pipe_fma",
    "alu": "sm__inst_executed_pipe_alu",
    "xu": "sm__inst_executed_pipe_xu",
    "lsu": "sm__inst_executed_pipe_lsu",
}
COUNTERS = (MMAS, *sum(_PORTS.values(), ()), _OPERANDS, _SHARED, *_PIPES.values())
"""All that bounds are reckoned from."""
_POLLING = re.compile(r"SYNCS|NANOSLEEP|ATOM|CCTL|.*\.STRONG")
_SHAPE = re.compile(r"(?:64x(?P<n>\d+)x(?P<wide>\d+)|(?P<m>16|8)8(?P<k>\d+))\Z")
_UNLIKE = {"SP", "S4", "U4", "B1", "F16"}
"""Modifiers of an MMA whose rate is not that of the datasheet's figure for its type."""


def polls(evidence: EmulatedEvidence) -> bool:
    """Whether what it executes may depend on how long something takes."""
    return any(map(_POLLING.match, evidence.opcodes_with_modifiers))


def mma(opcode: str) -> tuple[str, int] | None:
    """Type of the operands and FLOPs of a warp's MMA, from its opcode with modifiers; None where it
    is not an MMA, or the opcode does not say."""
    name, *modifiers = opcode.split(".")
    flops = _flops(modifiers)
    if not flops or _UNLIKE & {*modifiers}:
        return None
    kinds = {"Q": "fp8", "I": "int8", "H": "tf32" if "TF32" in modifiers else "bf16"}
    kind = kinds.get(name[0]) if name[1:] in ("GMMA", "MMA") else None
    if kind is None or (kind != "int8" and "F32" not in modifiers):
        return None
    return kind, flops


def _flops(modifiers: Sequence[str]) -> int:
    """Returns the FLOPs of a dense MMA of a warp, by its shape; 0 where that is not known."""
    shape = next((item for word in modifiers if (item := _SHAPE.match(word))), None)
    if shape is None:
        return 0
    if shape["n"]:  # a fourth of the warpgroup's
        return 2 * 64 * int(shape["n"]) * int(shape["wide"]) // 4
    return 2 * int(shape["m"]) * 8 * int(shape["k"])


def mean_flops(evidence: EmulatedEvidence) -> float:
    """Returns the mean FLOPs of an MMA, of any types and rate; 0 if one is sparse or unknown."""
    executed = evidence.opcodes_with_modifiers
    known = [
        (0 if "SP" in modifiers else _flops(modifiers), count)
        for opcode, count in executed.items()
        if "MMA" in opcode
        for modifiers in (opcode.split(".")[1:],)
        if not opcode.startswith("HFMA2")
    ]
    if not known or not all(flops for flops, _ in known):
        return 0.0
    return sum(flops * count for flops, count in known) / sum(count for _, count in known)


def flops_of_mma(evidence: EmulatedEvidence) -> dict[str, float]:
    """Returns the average FLOPs of a tensor instruction by type of operands; empty unless all are
    of one known type."""
    executed = evidence.opcodes_with_modifiers
    known = [(mma(opcode), count) for opcode, count in executed.items() if "MMA" in opcode]
    kinds = {item[0] for item, _ in known if item}
    total = sum(count for _, count in known)
    if len(kinds) != 1 or not all(item for item, _ in known):
        return {}
    return {kinds.pop(): sum(item[1] * count for item, count in known if item) / total}


def least(counts: LaunchCounts, chip: Chip, clock_hz: float) -> Iterator[tuple[float, str]]:
    """Seconds that the chip needs at this clock, its highest, each with what for."""
    sms, clock = chip.sms.value, clock_hz
    at = f"{clock / 1e6:,.0f} MHz"
    executed = counts.counters.get(MMAS, 0)
    for kind, flops in counts.flops_of_mma.items():
        if kind in chip.tensor and executed:
            peak = chip.flops_per_clock(kind) * sms * clock
            words = f"the {si(executed * flops, 'FLOP')} of {executed:,} MMAs ({kind})"
            yield executed * flops / peak, f"{words} at {peak / 1e12:,.4g} TFLOPS, {at}"
    for way, names in _PORTS.items():
        sectors = sum(counts.counters.get(name, 0) for name in names)
        words = f"{sectors:,} sectors {way} by way of L2, {PORT_BYTES} B per clock and SM, {at}"
        yield 32 * sectors / (PORT_BYTES * sms * clock), words
    wavefronts = counts.counters.get(_OPERANDS if counts.polls else _SHARED, 0)
    words = f"{wavefronts:,} wavefronts of shared memory, one per clock and SM, {at}"
    yield wavefronts / (sms * clock), words
    if not counts.polls:
        yield from _pipes(counts.counters, chip, clock, at)


def _pipes(
    counters: Mapping[str, int], chip: Chip, clock: float, at: str
) -> Iterator[tuple[float, str]]:
    arch = ARCHITECTURES.get(chip.arch)
    for pipe, counter in _PIPES.items() if arch else ():
        assert arch
        count, per_clock = counters.get(counter, 0), arch.per_clock(pipe)
        words = f"{count:,} instructions of the {pipe} pipe, {per_clock:g} per clock and SM, {at}"
        yield count / (per_clock * chip.sms.value * clock), words
