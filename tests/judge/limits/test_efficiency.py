"""Sectors per request and how full the lines are that accesses touch, as emulated."""

from __future__ import annotations

import msgspec
import pytest
from judge_cases import emulated_of, transpose

from kernelexp.judge.limits import efficiency
from kernelexp.model.arm import Arm, EmulatedLine

STORE = "ptx__sass__inst_executed_global_stores"
REQUESTS = "ptx__l1tex__t_requests_pipe_lsu_mem_global_op_st"
SECTORS = "ptx__l1tex__t_sectors_pipe_lsu_mem_global_op_st"
TAGS = "ptx__memory_l1_tag_requests_global"
IDEAL = "ptx__memory_l2_theoretical_sectors_global_ideal"


def storing(requests: int, sectors: int, tags: int) -> Arm:
    """Stores of 32 bytes per lane, each to a row of its own, as of the published baseline."""
    case = transpose()
    counters = {REQUESTS: requests, SECTORS: sectors, TAGS: tags, IDEAL: sectors, STORE: requests}
    lines = (EmulatedLine(file="a.cu", line=7, counters=counters),)
    emulated = msgspec.structs.replace(emulated_of(case), counters=counters, lines=lines)
    return msgspec.structs.replace(case.arm, emulated=emulated, emulated_sass=None)


def test_rows_of_32_bytes_fill_a_quarter_of_each_line() -> None:
    """What the audit of the published kernel says of its baseline: 32 sectors, 25%."""
    result = efficiency.of(storing(768, 24_576, 24_576), "stores")
    assert result
    assert result.sectors_per_request == 32
    assert result.line_fill_percent == pytest.approx(25)


def test_whole_rows_fill_their_lines() -> None:
    result = efficiency.of(transpose().arm, "stores")
    assert result
    assert result.sectors_per_request == 4


def test_what_was_not_emulated_has_no_efficiency() -> None:
    assert efficiency.of(Arm(axes={}), "loads") is None
