"""Which part of a chip has more or less to do where a count changes."""

from __future__ import annotations

import re

from kernelexp.facts import counters
from kernelexp.judge.limits.floors import Resource

PIPE = re.compile(r"sm__inst_executed_pipe_(alu|fma|xu|lsu)")
_UNIT_OF: dict[str, Resource] = {
    "alu": "ALU pipe",
    "fma": "FMA pipe",
    "xu": "XU pipe",
    "lsu": "LSU",
}
# What has less to do, besides issue slots, where one is not executed.
_L1: tuple[Resource, ...] = ("L1 data pipe", "shared memory", "L1 tag stage", "LSU")
_PIPES: tuple[Resource, ...] = ("issue slots", "FMA pipe", "ALU pipe", "XU pipe")
_FREED: tuple[tuple[str, tuple[Resource, ...]], ...] = (
    (r"memory_l1_wavefronts|l1tex__data_|derived__memory_l1", ("shared memory", "L1 data pipe")),
    (r"memory_l1_tag_requests", ("L1 tag stage", "L1 data pipe")),
    (r"executed_mma_gflop", ("tensor cores", "shared memory", "L1 data pipe")),
    (r"dram__bytes", ("device memory", "L2")),
    (r"l1tex__m_", ("L2", "L1 to L2")),
    (r"memory_l2_|l1tex__t_", ("L2", "L1 to L2", *_L1)),
    (r"sass__inst_executed_(shared|global|local)", _L1),
    (r"sm__inst_executed_pipe_alu", ("ALU pipe", "issue slots")),
    (r"sm__inst_executed_pipe_fma", ("FMA pipe", "issue slots")),
    (r"sm__inst_executed_pipe_xu", ("XU pipe", "issue slots")),
    (r"sm__inst_executed_pipe_lsu", ("LSU", "issue slots")),
    (r"", _PIPES),
)
EXECUTED = "smsp__inst_executed"


def units(metric: str) -> tuple[Resource, ...]:
    """Returns the units that have less to do where a figure falls."""
    name = metric.removeprefix(counters.PTX)
    return next(freed for pattern, freed in _FREED if re.match(pattern, name))


def own_units(metric: str) -> tuple[Resource, ...]:
    """Returns the units that have more to do where a figure rises."""
    name = metric.removeprefix(counters.PTX)
    if pipe := PIPE.match(name):
        return (_UNIT_OF[pipe[1]],)
    return ("issue slots",) if name.startswith(EXECUTED) else units(metric)
