"""Counts of a profile beside those of the work: seed figures of a published profile."""

from __future__ import annotations

import msgspec
from judge_cases import gemm, with_arm
from support import ROOT

from kernelexp.judge.limits import accounting
from kernelexp.judge.limits.case import Case
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
