"""What the emulator counts of a launch, compared with what ncu counts of it on this machine's GPU.

    python benchmarks/counters.py [VARIANT ...] [--size NAME]

VARIANT is KERNEL[@ARCH][:axis=value,...] or an experiment, as for `kernelexp emulate`; without one,
patch_embed_gemm@sm_90a. Each variant is built and emulated, then launched once under ncu as for
`kernelexp profile`; clocks and caches are left as they are. Needs nvcc, ncu, torch and a Hopper
GPU: the metrics are GH100's. Ends with 1 if a counter is not what it should be.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp import project
from kernelexp.cli.common import parse_variants
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.emulate import emulated
from kernelexp.evidence.emulate.emulated import EmulationOptions
from kernelexp.evidence.profile import ncu as programs
from kernelexp.evidence.profile import take
from kernelexp.evidence.profile.ncu import Ncu
from kernelexp.evidence.profile.take import ProfileSettings
from kernelexp.facts.counters import PTX
from kernelexp.model.arm import Arm, sound
from kernelexp.model.limits import Limits
from kernelexp.system import toolchain

ROOT = Path(__file__).parent.parent
DEFAULT = "patch_embed_gemm@sm_90a"
OPCODES = "sass__inst_executed_per_opcode_with_modifier_all"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One counter of the emulator's, and the figure of ncu's that it is compared with."""

    counter: str
    """The emulator's name: ptx__ and, where ncu counts the same on SASS, ncu's counter."""
    metric: str = ""
    """ncu's name, as `--metrics` takes it."""
    opcodes: str = ""
    """In place of a metric: which SASS opcodes to add up, as a regular expression."""
    because: str = ""
    """Why ncu's figure may be another one; empty: it must be equal."""
    at_least: bool = False
    """ncu's figure may be another one, but not less."""


def _same(*counters: str) -> tuple[Row, ...]:
    return tuple(
        Row(counter=f"{PTX}{c}", metric=f"{c}.sum" if c.startswith(("smsp", "l1tex")) else c)
        for c in counters
    )


_L1 = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op"
_PTXAS = "ptxas makes other instructions of it"
# ncu 2025.3 drops sass__inst_executed_global_loads and others from a list of metrics.
_SASS = "smsp__sass_inst_executed_op"
ROWS = (
    Row(counter=f"{PTX}sass__inst_executed_global_loads", metric=f"{_SASS}_global_ld.sum"),
    Row(counter=f"{PTX}sass__inst_executed_global_stores", metric=f"{_SASS}_global_st.sum"),
    Row(counter=f"{PTX}sass__inst_executed_shared_loads", opcodes=r"LDS\b"),
    Row(counter=f"{PTX}sass__inst_executed_shared_stores", opcodes=r"STS\b"),
    *_same(
        "smsp__inst_executed_op_ldsm",
        "smsp__inst_executed_op_shared_stsm",
        "smsp__inst_executed_op_ldgsts",
        "smsp__sass_inst_executed_op_shared_gmma",
        "smsp__inst_executed_op_tma_ld",
        "smsp__inst_executed_op_tma_st",
        "memory_l1_wavefronts_shared",
        "memory_l1_wavefronts_shared_ideal",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma",
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
        "l1tex__t_requests_pipe_lsu_mem_global_op_st",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
        "memory_l2_theoretical_sectors_global",
        "memory_l2_theoretical_sectors_global_ideal",
        "memory_l1_tag_requests_global",
        "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld",
        "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld_dest_multicast",
        "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st",
        "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red",
    ),
    *(
        Row(
            counter=f"{PTX}{_L1}_{op}",
            metric=f"{_L1}_{op}.sum",
            because="arbitration",
            at_least=True,
        )
        for op in ("ld", "st")
    ),
    *(
        Row(
            counter=f"{PTX}sass__inst_executed_local_{verb}s",
            metric=f"smsp__inst_executed_op_local_{op}.sum",
            because="spills of ptxas",
            at_least=True,
        )
        for verb, op in (("load", "ld"), ("store", "st"))
    ),
    Row(counter="ptx__inst_executed_shuffle", opcodes="SHFL", because=_PTXAS),
    Row(counter="ptx__inst_executed_barrier", opcodes=r"BAR\.|UCGABAR", because=_PTXAS),
    Row(counter="ptx__inst_executed_mbarrier", opcodes=r"SYNCS\.(?!PHASECHK)", because=_PTXAS),
    Row(
        counter="ptx__inst_executed_mbarrier_wait",
        opcodes=r"SYNCS\.PHASECHK",
        because="as often as time makes it",
    ),
    Row(counter="ptx__inst_executed_mma", opcodes="[HID]MMA", because=_PTXAS),
    Row(
        counter="ptx__inst_executed_branch",
        metric="smsp__inst_executed_op_branch.sum",
        because=_PTXAS,
    ),
    Row(counter="ptx__inst_executed", metric="smsp__inst_executed.sum", because=_PTXAS),
)
METRICS = (*dict.fromkeys(row.metric for row in ROWS if row.metric), OPCODES)


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A row with both figures."""

    row: Row
    emulated: int
    counted: int

    @property
    def equal(self) -> bool:
        return self.emulated == self.counted

    @property
    def wrong(self) -> bool:
        if self.row.at_least:
            return self.counted < self.emulated
        return not self.equal and not self.row.because


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A variant that is built and emulated."""

    label: str
    arm: Arm
    counters: dict[str, int]


def built_and_emulated(root: Path, names: Sequence[str], size: str) -> list[Prepared]:
    """Builds and emulates variants; SystemExit with what is wrong with one."""
    loaded = project.load(root)
    variants = parse_variants(loaded, list(names), None)
    tools = toolchain.find(None, root / build.CACHE)
    arms = prepare.built(loaded, variants, Session(tools=tools))
    done = prepare.emulated(loaded, arms, Session(tools=tools), how=EmulationOptions(size=size))
    return [_prepared(loaded, sound(arm)) for arm in done]


def _prepared(loaded: project.Project, arm: Arm) -> Prepared:
    label = loaded.label(arm)
    if arm.build is None or arm.emulated is None or arm.emulated.unsupported:
        result = arm.emulated.unsupported if arm.emulated else arm.build_log
        raise SystemExit(f"{label}: {arm.refused.sentence if arm.refused else result}")
    return Prepared(label=label, arm=arm, counters=arm.emulated.counters)


def count(prepared: Prepared, size: str, ncu: Ncu) -> dict[str, float | str]:
    """What ncu counts of one launch, by metric; opcodes are instances of theirs."""
    settings = ProfileSettings(
        size=size, sections=(), metrics=METRICS, instances=True, cache_control="none"
    )
    return take.take(ROOT, prepared.arm, settings, Limits(), ncu).evidence.figures


def figure(counted: Mapping[str, float | str], metric: str) -> int:
    """A metric's figure; 0 where ncu has none, as of instructions that a kernel has not."""
    value = counted.get(metric, 0)
    return int(value) if isinstance(value, float) else 0


def opcodes(counted: Mapping[str, float | str]) -> dict[str, int]:
    """The instructions executed, by opcode."""
    begun = f"{OPCODES}["
    return {
        name.removeprefix(begun).removesuffix("]"): figure(counted, name)
        for name in counted
        if name.startswith(begun)
    }


def hold(emulated: Mapping[str, int], counted: Mapping[str, float | str]) -> Iterator[Held]:
    """The rows in which either has counted something; `counted` are figures of a profile."""
    executed = opcodes(counted)
    for row in ROWS:
        if row.metric:
            result = figure(counted, row.metric)
        else:
            result = sum(n for name, n in executed.items() if re.match(row.opcodes, name))
        mine = emulated.get(row.counter, 0)
        if mine or result:
            yield Held(row=row, emulated=mine, counted=result)


def show(label: str, held: Sequence[Held]) -> None:
    print(label)
    print(f"  {'':70} {'emulated':>9} {'ncu':>9}")
    for item in held:
        verdict = "equal" if item.equal else f"differs: {item.row.because}"
        if item.wrong:
            verdict = "WRONG"
        print(f"  {item.row.counter:70} {item.emulated:9,} {item.counted:9,} {verdict}")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("variants", metavar="VARIANT", nargs="*", default=[DEFAULT])
    parser.add_argument("--size", default=emulated.SIZE, help="a key of problem.py's SIZES")
    chosen = parser.parse_args(argv)
    ncu = programs.find()
    wrong = False
    for item in built_and_emulated(ROOT, chosen.variants, chosen.size):
        held = list(hold(item.counters, count(item, chosen.size, ncu)))
        show(item.label, held)
        wrong = wrong or any(row.wrong for row in held)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
