"""Executed SASS by the counters that ncu has for pipes, compared with what an H200 counted."""

from __future__ import annotations

from collections import Counter

import pytest
from support import ROOT

from kernelexp.facts.counters import PIPE
from kernelexp.logs import profiles
from kernelexp.model.record import Profile
from warpsim.tables.opcodes import pipes

PROFILES = [
    item
    for kernel, arch in (("patch_embed_gemm", "sm_90a"), ("transpose", "sm_90a"))
    for item in profiles.read_all(ROOT)[0]
    if (item.arm.kernel, item.arm.arch) == (kernel, arch)
]
# A counter of ncu's is of another pass than the source page: what polls runs otherwise there.
# Of ADU it has 32 more for each SM, whatever the launch.
TOLERANCE = {"lsu": 0.0001, "alu": 0.001, "adu": 0.001}


def executed(profile: Profile) -> Counter[str]:
    """Warp instructions by pipe, from the source page."""
    assert profile.arm.profiled
    result: Counter[str] = Counter()
    for instruction in profile.arm.profiled.instructions:
        opcode = next(word for word in instruction.sass.split() if not word.startswith("@"))
        for pipe in pipes(opcode, instruction.sass, 90):
            result[pipe] += int(instruction.figures.get("Instructions Executed", 0.0))
    return result


# CBU and ADU also have what polls, the transpose does not.
ALL = ("fma", "alu", "lsu", "uniform", "xu", "tensor", "tma", "fp64")


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.run)
def test_the_sums_by_pipe_are_those_that_ncu_counted(profile: Profile) -> None:
    assert profile.arm.profiled
    counted = executed(profile)
    for pipe in (*ALL, *(("cbu", "adu") if profile.arm.kernel == "transpose" else ())):
        wanted = float(profile.arm.profiled.figures[f"{PIPE}{pipe}.sum"])
        assert counted[pipe] == pytest.approx(wanted, rel=TOLERANCE.get(pipe, 0.0)), pipe


def test_the_profiles_are_of_several_kernels() -> None:
    assert len(PROFILES) == 7


def test_halves_have_a_pipe_of_their_own_on_an_a100_alone() -> None:
    assert pipes("HFMA2", "HFMA2 R0, R1, R2, R3", 80) == ("fp16",)
    assert pipes("HFMA2", "HFMA2 R0, R1, R2, R3", 89) == ("fma", "fma_type_fp16")


def test_an_mma_of_blackwell_is_counted_by_two_pipes() -> None:
    assert pipes("UTCQMMA.2CTA", "", 100) == ("tensor", "tc")
    assert pipes("UTCBAR", "", 100) == ("tc",)
