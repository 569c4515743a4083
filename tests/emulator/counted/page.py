"""The table of sgemm.md: the twelve kernels of SGEMM_CUDA, emulated and by ncu.

python -m counted.page # writes it; needs a checkout of the repository
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import warpsim as emulator

from . import golden, launches
from .comparison import execute, load
from .golden import Counted
from .program import ENVIRONMENT
from .sgemm import SGEMM

PAGE = Path(__file__).with_name("sgemm.md")
BEGIN, END = "<!-- sgemm: python -m counted.page -->\n", "<!-- end of sgemm -->\n"
COLUMNS = (
    ("ptx__inst_executed", "smsp__inst_executed"),
    ("ptx__sass__inst_executed_shared_loads", "smsp__inst_executed_op_shared_ld"),
    ("ptx__memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared"),
    ("ptx__memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global"),
)
"""The counter of PTX, and the one of SASS and of ncu."""
_HEADS = ("instructions", "shared loads", "shared wavefronts", "global sectors")


def cells(counted: Counted) -> list[str]:
    """ncu's figures, a column each."""
    return [f"{counted.figures.get(name, 0):,}" for _, name in COLUMNS]


def rows() -> Iterator[str]:
    """The table, a line each."""
    heads = " | ".join(f"{head}: PTX | SASS | ncu" for head in _HEADS)
    yield f"| kernel, M x N x K | {heads} |"
    yield "|---" * (1 + 3 * len(_HEADS)) + "|"
    module, ptx = functools.cache(load), functools.cache(emulator.load)
    for item in launches.of_program(SGEMM):
        name = item.case.name
        sass = execute(module(item.code), item).counters.kernel
        source = execute(ptx(item.code.ptx), item).counters.kernel
        ncu = cells(golden.recorded().launches["sgemm"][name])
        figures = [
            f"{source[theirs]:,} | {sass[ours]:,} | {counted}"
            for (theirs, ours), counted in zip(COLUMNS, ncu, strict=True)
        ]
        yield f"| {name} | {' | '.join(figures)} |"


def main() -> None:
    table = list(rows())
    if len(table) == 2:
        raise SystemExit(f"{ENVIRONMENT} names no folder with a checkout of {SGEMM.repository}")
    text = PAGE.read_text()
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{''.join(line + chr(10) for line in table)}{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
