"""Counts of instructions to counters by name.

SASS is what the hardware executes: what ncu counts too has ncu's name. PTX is not: ptxas merges,
drops and adds instructions, so that its counts are named ptx__ before ncu's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from warpsim.machine.counts.tally import InstructionCount, Tally
from warpsim.tables.opcodes import PIPE

OF_HARDWARE = frozenset({"SASS"})
"""The listings whose instructions are those that ncu counts."""

# By ncu's names. warpsim/docs/counters.md says for which kernels an H200 counted as is counted here
# on PTX.
_EXECUTED = {
    "sass__inst_executed_global_loads": ("global load",),
    "sass__inst_executed_global_stores": ("global store",),
    "sass__inst_executed_shared_loads": ("shared load",),
    "sass__inst_executed_shared_stores": ("shared store",),
    "smsp__inst_executed_op_ldsm": ("matrix load",),
    "smsp__inst_executed_op_shared_stsm": ("matrix store",),
    "sass__inst_executed_local_loads": ("local load",),
    "sass__inst_executed_local_stores": ("local store",),
    "smsp__sass_inst_executed_op_tmem_ldt": ("tmem load",),
    "smsp__sass_inst_executed_op_utcmma": ("utcmma",),
    "smsp__sass_inst_executed_op_shared_gmma": ("wgmma",),
    "smsp__inst_executed_op_tma_ld": ("tma load",),
    "smsp__inst_executed_op_tma_st": ("tma store", "tma reduction", "dshared copy"),
    "smsp__inst_executed_op_ldgsts": ("cp.async",),
}
# ptxas makes others of these: only of SASS are they ncu's.
_HARDWARE = {
    "smsp__inst_executed_op_shared_ld": ("shared load",),
    "smsp__inst_executed_op_shared_st": ("shared store",),
    "smsp__inst_executed_op_local_ld": ("local load",),
    "smsp__inst_executed_op_local_st": ("local store",),
}
# ncu has no metric of these, or ptxas makes other instructions of them.
_SPELLED = {
    "inst_executed_mma": ("mma",),
    "inst_executed_shuffle": ("shuffle",),
    "inst_executed_atomic": ("atomic",),
    "inst_executed_barrier": ("barrier",),
    "inst_executed_warp_barrier": ("warp barrier",),
    "inst_executed_mbarrier": ("mbarrier",),
    "inst_executed_mbarrier_wait": ("mbarrier wait",),
    "inst_executed_branch": ("branch",),
}
_READ = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op"
_WRITTEN = "l1tex__m_l1tex2xbar_write_sectors_mem_global_op"
_GLOBAL = ("global load", "global store", "atomic", "cp.async")
_SHARED = ("shared load", "shared store", "matrix load", "matrix store", "atomic", "cp.async")
_GENERIC = ("global load", "global store")
"""Of generic addresses these may lead to shared memory."""


class _Kinds:
    """Instruction counts by kind."""

    def __init__(self, counts: Iterable[InstructionCount]) -> None:
        self.all = list(counts)
        self._of: dict[str, list[InstructionCount]] = {}
        for count in self.all:
            self._of.setdefault(count.instruction.kind, []).append(count)

    def of(self, *kinds: str) -> list[InstructionCount]:
        return [count for kind in kinds for count in self._of.get(kind, ())]

    def tallies(self, *kinds: str) -> list[Tally]:
        return [count.tally for count in self.of(*kinds)]


def named(counts: Iterable[InstructionCount], listing: str) -> dict[str, int]:
    """Sums of instruction counts by counter; `listing`, "PTX" or "SASS", decides on the names."""
    prefix, kinds = listing.lower() + "__", _Kinds(counts)
    ncu = "" if listing in OF_HARDWARE else prefix
    whole = "smsp__" if listing in OF_HARDWARE else prefix
    return {
        f"{whole}inst_executed": sum(c.executed for c in kinds.all),
        f"{whole}thread_inst_executed": sum(c.lanes for c in kinds.all),
        **(_hardware(kinds) if listing in OF_HARDWARE else {}),
        **{ncu + name: value for name, value in _executed(kinds, _EXECUTED)},
        **{prefix + name: value for name, value in _executed(kinds, _SPELLED)},
        **{
            ncu + name: value
            for values in (_shared(kinds), _global(kinds), _tma(kinds))
            for name, value in values.items()
        },
    }


def _hardware(kinds: _Kinds) -> dict[str, int]:
    """What is counted of SASS alone."""
    pipes: Counter[str] = Counter()
    for count in kinds.all:
        for pipe in count.instruction.pipes:
            pipes[pipe] += count.executed
    return {
        "smsp__thread_inst_executed_pred_on": sum(c.threads for c in kinds.all),
        **{f"{PIPE}{pipe}": n for pipe, n in sorted(pipes.items())},
        **dict(_executed(kinds, _HARDWARE)),
    }


def _executed(kinds: _Kinds, wanted: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, int]]:
    """How often instructions of these kinds were executed, by the counter's name.

    ncu's counters of hardware count an instruction whatever its guard; those of its own (sass__),
    where the guard holds for any lane.
    """
    for name, own in wanted.items():
        guarded = name.startswith("sass__")
        yield name, sum(c.requests if guarded else c.executed for c in kinds.of(*own))


def _shared(kinds: _Kinds) -> dict[str, int]:
    """Wavefronts; ncu counts those of wgmma's operands with the others, those of tcgen05.mma's
    apart."""
    shared = kinds.tallies(*_SHARED, *_GENERIC)
    wgmma = sum(t.operand_wavefronts for t in kinds.tallies("wgmma"))
    values = {
        "memory_l1_wavefronts_shared": sum(t.wavefronts for t in shared) + wgmma,
        "memory_l1_wavefronts_shared_ideal": sum(t.ideal_wavefronts for t in shared) + wgmma,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma": wgmma,
        "l1tex__data_pipe_tc_wavefronts_mem_shared": sum(
            t.operand_wavefronts for t in kinds.tallies("utcmma")
        ),
    }
    for verb, name in (("load", "ld"), ("store", "st")):
        own = (f"shared {verb}", f"matrix {verb}", f"global {verb}")  # generic ones too
        conflicts = sum(t.conflicts for t in kinds.tallies(*own))
        values[f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{name}"] = conflicts
    return values


def _global(kinds: _Kinds) -> dict[str, int]:
    """A generic access is a request where it leads to global memory for any lane."""
    values = {}
    for name, own in (("ld", ("global load", "cp.async")), ("st", ("global store",))):
        tallies = kinds.tallies(*own)
        values[f"l1tex__t_requests_pipe_lsu_mem_global_op_{name}"] = sum(
            t.requests for t in tallies
        )
        values[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{name}"] = sum(
            t.l1_sectors for t in tallies
        )
    world = kinds.tallies(*_GLOBAL)
    values["memory_l2_theoretical_sectors_global"] = sum(t.sectors for t in world)
    values["memory_l2_theoretical_sectors_global_ideal"] = sum(t.ideal_sectors for t in world)
    values["memory_l1_tag_requests_global"] = sum(t.tags for t in world)
    return values


def _tma(kinds: _Kinds) -> dict[str, int]:
    """Sectors of bulk copies: what a CTA receives counts in each CTA of a multicast."""
    loads = kinds.tallies("tma load")
    multicast = sum(t.multicast_sectors for t in loads)
    return {
        f"{_READ}_tma_ld": sum(t.tma_sectors for t in loads) + multicast,
        f"{_READ}_tma_ld_dest_multicast": multicast,
        f"{_WRITTEN}_tma_st": sum(t.tma_sectors for t in kinds.tallies("tma store")),
        f"{_WRITTEN}_tma_red": sum(t.tma_sectors for t in kinds.tallies("tma reduction")),
    }
