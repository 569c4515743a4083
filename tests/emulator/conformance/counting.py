"""What ncu counts of the suite's launches, as golden data for the emulator's counters.

python -m conformance.record build FOLDER memory sync copy ... # the areas of AREAS
python -m conformance.counting metrics              # for ncu --metrics
python -m conformance.counting launches FOLDER      # one launch a case, to be run under ncu
python -m conformance.counting write NCU_CSV OUT    # what ncu printed of them, as golden data
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from kernelexp.evidence.profile import pages
from kernelexp.evidence.profile.merging import bare

from . import cases
from .case import Case

AREAS = (
    "memory", "sync", "copy", "tma", "tma_store", "matrix", "mma", "wgmma", "cluster", "warp",
    "sparse",
)  # fmt: skip
"""Not the elementwise ones: ptxas leaves out their loads of operands that nobody uses."""

# ncu's counters, which wants a .sum behind the hardware's; the emulator's have ptx__ before them.
METRICS = (
    "sass__inst_executed_shared_loads",
    "sass__inst_executed_shared_stores",
    "smsp__inst_executed_op_ldsm",
    "smsp__inst_executed_op_shared_stsm",
    "smsp__inst_executed_op_ldgsts",
    "smsp__inst_executed_op_tma_ld",
    "smsp__inst_executed_op_tma_st",
    "smsp__sass_inst_executed_op_shared_gmma",
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
    "memory_l1_tag_requests_global",
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld",
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld_dest_multicast",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red",
)

WMMA = "ptxas makes LDSM, LDS.64 and STS.64 of wmma.load and wmma.store, and two HMMA of an mma"
GENERIC = "counted by the space that PTX spells; ncu looks at where the address leads"
DIFFERENT: dict[tuple[str, str], str] = {
    ("memory", "store_widths"): "ptxas merges two stores",
    ("copy", "cp_async"): "ptxas leaves out copies of no bytes",
    **{
        ("matrix", name): WMMA
        for name in (
            "wmma_f16_row",
            "wmma_f16_col",
            "wmma_f16_m8n32",
            "wmma_s8_m8n32",
            "wmma_s8_m16n16",
        )
    },
    **{
        ("cluster", f"{name} {size}"): GENERIC
        for name in ("neighbours", "remote_store", "remote_arrive")
        for size in (2, 4)
    },
    ("warp", "partial"): "ptxas leaves out loads whose results nobody uses",
}
"""Cases whose counts are not ncu's, and why."""


def launches() -> Iterator[tuple[str, Case]]:
    """Area and case of each launch, in the order in which ncu sees them."""
    for area in AREAS:
        for case in cases.AREAS[area].cases():
            yield area, case


def launch_each(folder: Path) -> None:
    from .driver import Gpu

    gpu = Gpu()
    modules = {area: gpu.load((folder / f"{area}.cubin").read_bytes()) for area in AREAS}
    for area, case in launches():
        gpu.run(modules[area], case.launch, case.arrays)


def write(printed: Path, target: Path) -> None:
    """The metrics of each launch from `ncu --csv --page raw --print-units base`."""
    result = pages.read(printed.read_text(), printed.name)
    with target.open("w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["area", "case", *METRICS])
        for (area, case), evidence in zip(launches(), result, strict=True):
            assert bare(evidence.entry) == case.launch.entry
            figures = evidence.figures
            counts = [int(figures.get(m, figures.get(f"{m}.sum", 0))) for m in METRICS]
            lines.writerow([area, case.name, *counts])


def main(argv: list[str]) -> None:
    match argv:
        case ["metrics"]:
            hardware = ("smsp__", "l1tex__")
            print(",".join(m + ".sum" if m.startswith(hardware) else m for m in METRICS))
        case ["launches", folder]:
            launch_each(Path(folder))
        case ["write", printed, target]:
            write(Path(printed), Path(target))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
