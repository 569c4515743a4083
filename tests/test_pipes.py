"""Executed SASS by ncu's counters of pipes, compared with what an H200 counted."""

from __future__ import annotations

from collections import Counter

import pytest
from support import ROOT

from kernelexp import pipes, profiles
from kernelexp.evidence.sass_lines import opcode_of
from kernelexp.record import Profile

PROFILES = [
    each
    for kernel, arch in (("patch_embed_gemm", "sm_90a"), ("transpose", "sm_90a"))
    for each in profiles.read_all(ROOT)[0]
    if (each.arm.kernel, each.arm.arch) == (kernel, arch)
]
# A counter of ncu's is of another pass than the source page: what polls runs otherwise there.
TOLERANCE = {"lsu": 0.0001, "alu": 0.001}


def executed(profile: Profile) -> dict[str, int]:
    """Warp instructions by opcode, from the source page."""
    assert profile.arm.profiled
    found: Counter[str] = Counter()
    for each in profile.arm.profiled.instructions:
        count = each.figures.get("Instructions Executed", 0.0)
        found[opcode_of(each.sass)] += int(count)
    return found


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.run)
def test_the_sums_by_pipe_are_those_that_ncu_counted(profile: Profile) -> None:
    assert profile.arm.profiled
    counted = pipes.counters("sm_90a", executed(profile))
    for pipe in ("fma", "alu", "lsu", "uniform", "xu", "tensor", "tma", "fp64"):
        wanted = float(profile.arm.profiled.figures[f"{pipes.PREFIX}{pipe}.sum"])
        found = counted.get(f"{pipes.PREFIX}{pipe}", 0)
        assert found == pytest.approx(wanted, rel=TOLERANCE.get(pipe, 0.0)), pipe


def test_the_profiles_are_of_several_kernels() -> None:
    assert len(PROFILES) == 7


def test_what_no_counter_has_is_the_rest() -> None:
    opcodes = {"FADD": 8, "BRA": 2, "UMOV": 3, "LDG": 1}
    assert pipes.counters("sm_90a", opcodes) == {
        "sm__inst_executed_pipe_fma": 8,
        "sm__inst_executed_pipe_lsu": 1,
    }
    assert pipes.rest("sm_90a", opcodes) == 5


def test_halves_have_a_pipe_of_their_own_on_an_a100_alone() -> None:
    assert pipes.counters("sm_80", {"HFMA2": 4}) == {"sm__inst_executed_pipe_fp16": 4}
    assert pipes.counters("sm_89", {"HFMA2": 4}) == {"sm__inst_executed_pipe_fma": 4}


def test_an_mma_of_blackwell_is_counted_by_two_pipes() -> None:
    assert pipes.counters("sm_100a", {"UTCQMMA": 6, "UTCBAR": 2}) == {
        "sm__inst_executed_pipe_tensor": 6,
        "sm__inst_executed_pipe_tc": 8,
    }
