"""Executes the variants that experiments name in both instruction sets, and prints what differs.

python benchmarks/variants_in_both.py [KERNEL ...]

Each is executed at its small size, once as PTX and once as SASS under the same schedule. Compared
are every bit of the output, and the sectors and wavefronts that both count.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kernelexp import project
from kernelexp.dossier import emulations
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.emulate.emulated import BOTH, EmulationOptions
from kernelexp.judge import verdict
from kernelexp.model.arm import Arm, EmulatedEvidence
from kernelexp.services.check import gates
from kernelexp.system import toolchain
from warpsim.schedule import first_schedules

ROOT = Path(__file__).parent.parent
TRAFFIC = {
    "memory_l2_theoretical_sectors_global": "global sectors",
    "memory_l1_wavefronts_shared": "shared wavefronts",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma": "wgmma operands",
    "l1tex__data_pipe_tc_wavefronts_mem_shared": "tcgen05 operands",
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld": "TMA loads",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st": "TMA stores",
}


def main(kernels: list[str]) -> None:
    """Prints a line for each variant."""
    loaded = project.load(ROOT)
    tools = toolchain.find(None, ROOT / build.CACHE)
    how = EmulationOptions(schedules=first_schedules(1), isas=BOTH)
    print("| variant | bits | traffic |")
    print("|---|---|---|")
    for label, variant in gates.named_variants(loaded, kernels).items():
        result, faults = emulations.emulate(
            loaded, [variant], Session(tools=tools), how=how, full=False
        )
        for item in result:
            print(f"| {label} | {bits(item.arm)} | {traffic(item.arm)} |", flush=True)
        for fault in faults:
            print(f"| {label} | {fault} | |", flush=True)


def bits(arm: Arm) -> str:
    """Whether the SASS writes the same bits."""
    if not arm.emulated or not arm.emulated_sass:
        return "not executed"
    if arm.emulated_sass.unsupported:
        return f"refused: {arm.emulated_sass.unsupported}"
    other = verdict.disagreement(arm)
    return other.sentence if other else "same"


def traffic(arm: Arm) -> str:
    """What the two count otherwise."""
    if not arm.emulated or not arm.emulated_sass:
        return ""
    pairs = {
        name: (_count(arm.emulated, f"ptx__{counter}"), _count(arm.emulated_sass, counter))
        for counter, name in TRAFFIC.items()
    }
    apart = [f"{name} {a:,} -> {b:,}" for name, (a, b) in pairs.items() if a != b]
    return "; ".join(apart) or "same"


def _count(evidence: EmulatedEvidence, name: str) -> int:
    return evidence.counters.get(name, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
