"""Opportunities of grids and resources that leave an SM few warps, or none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from judge_cases import (
    DEFAULTS,
    TILES,
    build_of,
    gemm,
    only,
    profiled,
    transpose,
    with_arm,
)

from kernelexp.judge.limits import bottleneck, filling
from kernelexp.judge.limits import opportunities as rules
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.opportunity import Suppressed


def plain_gemm(**changes: Any) -> Case:
    """The same resources in a kernel without copies that feed warps with roles."""
    case = gemm(**{"ctas": 13_200, "tiles": 13_200, **changes})
    return with_arm(case, build=msgspec.structs.replace(build_of(case), opcodes={"QGMMA": 4}))


def test_occupancy_names_its_limiter_and_is_bounded_by_the_nearest_limit() -> None:
    result = only(filling.occupancy, plain_gemm())
    assert result.issue == (
        "12 of 64 warps per SM, limited by registers and shared memory: 168 registers per thread, "
        "229,496 B of shared memory, 384 threads"
    )
    assert result.percent == pytest.approx(100 - 78.6, abs=0.1)  # of the tensor cores' 78.6%
    assert list(filling.occupancy(transpose())) == []


def test_one_cta_by_design_is_no_lack_of_warps() -> None:
    """The kernel that has all that a kernel of its kind can have has no opportunity left."""
    (roles,) = filling.occupancy(gemm())
    assert isinstance(roles, Suppressed)
    assert "its warps have roles" in roles.why
    (persistent,) = filling.occupancy(plain_gemm(ctas=132))
    assert isinstance(persistent, Suppressed)
    assert "the kernel is persistent" in persistent.why
    result, suppressed = rules.find(profiled(gemm(), DEFAULTS))
    assert result == []
    assert any("LaunchConfiguration" in item.rule for item in suppressed)


def test_a_grid_too_small_for_the_sms_is_what_limits_the_warps() -> None:
    few = transpose(ctas=128)
    half = msgspec.structs.replace(build_of(few).occupancy, warps_per_sm=32, ctas_per_sm=4)
    few = with_arm(few, build=msgspec.structs.replace(build_of(few), occupancy=half))
    (result,) = filling.occupancy(few)
    assert isinstance(result, Suppressed)
    assert result.why == "the grid limits the warps: 128 CTAs on 132 SMs, which hold 4 each"
    issue = only(filling.grid, few).issue
    assert "4 SMs without work, at most 8 of 64 warps on an SM and 7.76 on average" in issue


def test_a_grid_that_leaves_sms_idle_is_found() -> None:
    result = only(filling.grid, transpose(ctas=66))
    assert result.issue.startswith("66 CTAs for 132 SMs: 0.062 waves, 66 SMs without work")
    assert result.percent == pytest.approx(50)


def test_a_grid_with_work_for_each_sm_has_no_share_of_time_that_it_loses() -> None:
    case = msgspec.structs.replace(with_arm(transpose(ctas=512), measured=None), tiles=512)
    result = only(filling.grid, case)
    assert result.issue == (
        "512 CTAs for 132 SMs: 0.48 waves, 4 CTAs on 116 SMs and 3 on the others, at most 32 of 64 "
        "warps on an SM and 31 on average"
    )
    assert result.percent is None
    assert "would save 3% where they share" in result.reckoning


def test_a_grid_that_gives_some_sms_twice_the_work_of_others_is_found() -> None:
    """64 CTAs of 512 threads on an L4 with 58 SMs, two at once: nothing else said so."""
    case = msgspec.structs.replace(plain_gemm(ctas=146), tiles=1024)
    two = msgspec.structs.replace(build_of(case).occupancy, ctas_per_sm=2)
    case = with_arm(case, build=msgspec.structs.replace(build_of(case), occupancy=two))
    assert "2 CTAs on 14 SMs and 1 on the others" in only(filling.grid, case).issue


def test_a_last_wave_that_is_not_full_is_found_where_it_matters() -> None:
    result = only(filling.grid, transpose(ctas=132 * 8 + 1))
    assert result.issue.startswith("1.00 waves of 1,056 CTAs")
    # One SM has 9 CTAs, which share its L1, and the others 8.
    assert result.percent == pytest.approx(100 * (1 - 1057 / (132 * 9)), abs=0.1)
    assert list(filling.grid(transpose(ctas=TILES))) == []  # 124.12 waves: 0.7%
    assert list(filling.grid(gemm(ctas=132))) == []  # persistent: one wave


@pytest.mark.parametrize(
    ("ctas", "words"),
    [
        # llm.c's permute_kernel, 2.39 waves: 20 CTAs on some SMs, 19 on others, is no reason.
        (2520, ""),
        (140, "140 CTAs on 132 SMs, 2 on some and 1 on others, so that no limit can be used "
         "beyond 53.0% if all do the same work"),
        (100, "its 100 CTAs leave 32 of 132 SMs without work"),
    ],
)  # fmt: skip
def test_a_grid_comes_first_where_an_sm_has_much_more_of_it_than_the_chip(
    ctas: int, words: str
) -> None:
    sentence = bottleneck.conclude(transpose(ctas=ctas), ())
    assert ("The grid comes first: " in sentence) == bool(words)
    assert words in sentence


def test_barriers_matter_with_one_cta_per_sm() -> None:
    many = {"ptx__inst_executed_barrier": 13_200 * 24}
    result = only(filling.barriers, plain_gemm(counters=many))
    assert result.issue.startswith("2 CTA barriers per tile and warp, 2 per CTA, with 1 CTA per SM")
    assert result.percent is None
    assert list(filling.barriers(gemm(counters=many))) == []  # warps with roles
    assert list(filling.barriers(transpose(counters={"ptx__inst_executed_barrier": 48}))) == []
