"""Counts of a profile beside those of the work: seed figures of a published profile."""

from __future__ import annotations

import msgspec
import pytest
from judge_cases import emulated_of, gemm, transpose, with_arm
from support import ROOT

from kernelexp.judge.limits import accounting
from kernelexp.judge.limits.case import Case
from kernelexp.model.arm import Arm, EmulatedLine
from kernelexp.model.record import Profile

PTX = "ptx__smsp__sass_inst_executed_op_utcmma"


def published(**counters: int) -> Case:
    """The published profile of 9bf658a, with emulated counts of the full problem on PTX."""
    path = ROOT / "logs/profiles/published-9bf658a.json"
    profile = msgspec.json.decode(path.read_bytes(), type=Profile)
    case = with_arm(gemm(), profiled=profile.arm.profiled)
    return msgspec.structs.replace(case, tiles=10_878, ctas=148, counters=dict(counters))


def test_the_mmas_of_a_profile_are_tiles_times_the_steps_of_one() -> None:
    """24 steps of 32 along K = 768, each one MMA of a pair of CTAs."""
    (mmas,) = accounting.accounts(published(**{PTX: 261_072}))
    assert (mmas.label, mmas.profiled, mmas.emulated) == ("MMAs", 261_072, 261_072)
    assert mmas.per_tile == 24


def test_a_count_that_no_tile_has_a_whole_number_of_has_none_per_tile() -> None:
    (mmas,) = accounting.accounts(published(**{PTX: 261_073}))
    assert (mmas.profiled, mmas.emulated, mmas.per_tile) == (261_072, 261_073, None)


def test_counts_of_a_small_size_account_for_nothing() -> None:
    case = msgspec.structs.replace(published(**{PTX: 144}), ratios_of="emulated")
    assert not list(accounting.accounts(case))


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
    result = accounting.of(storing(768, 24_576, 24_576), "stores")
    assert result
    assert result.sectors_per_request == 32
    assert result.line_fill_percent == pytest.approx(25)


def test_whole_rows_fill_their_lines() -> None:
    result = accounting.of(transpose().arm, "stores")
    assert result
    assert result.sectors_per_request == 4


def test_what_was_not_emulated_has_no_efficiency() -> None:
    assert accounting.of(Arm(axes={}), "loads") is None
