"""How near a kernel comes to its chip's limits: profiled, else the least time over the time."""

from __future__ import annotations

import pytest
from judge_cases import (
    DEFAULTS,
    FOUR_STAGES,
    PADDED,
    PLAIN,
    gemm,
    merged,
    profile,
    profiled,
    transpose,
    with_arm,
)

from kernelexp.judge import bounds
from kernelexp.judge.bounds import Use
from kernelexp.judge.case import Case
from kernelexp.judge.explanation import moved
from kernelexp.model.arm import PublishedResult


def use(case: Case, resource: str) -> Use:
    return next(each for each in bounds.uses(case) if each.resource == resource)


@pytest.mark.parametrize(("place", "launch"), [(0, PLAIN), (1, PADDED)])
def test_what_is_reckoned_without_a_profile_is_near_what_ncu_reports(
    place: int, launch: int
) -> None:
    """Shared memory's is a lower bound; device memory's is within 2% of the limit."""
    reckoned, counted = transpose(place), profiled(transpose(place), launch)
    for resource, least, most in (("shared memory", -16, 0), ("device memory", -2, 2)):
        one, other = use(reckoned, resource).percent, use(counted, resource).percent
        assert one is not None
        assert other is not None
        assert least <= one - other <= most, resource


def test_the_nearest_limit_moves_with_the_padding() -> None:
    uses = [bounds.uses(transpose(place)) for place in (0, 1)]
    near = [bounds.nearest(each) for each in uses]
    assert [each.resource for each in near if each] == ["shared memory", "device memory"]
    assert moved(*uses) == (
        "The nearest limit moved: shared memory (80.7%) for the baseline, device memory (76.0%) "
        "for the candidate."
    )


def test_the_nearest_limit_may_stay() -> None:
    uses = [bounds.uses(profiled(gemm(), launch)) for launch in (DEFAULTS, FOUR_STAGES)]
    assert moved(*uses) == (
        "Both arms are nearest to the same limit, tensor cores: 88.9%, then 83.8%."
    )


def test_a_share_says_how_it_was_reckoned_and_of_which_kind_it_is() -> None:
    shared = use(transpose(), "shared memory")
    assert shared.kind == "emulated"
    assert shared.reckoned == "138,412,032 wavefronts (PTX) / (132 SMs x 1,980 MHz (measured))"
    tensor = use(gemm(), "tensor cores")
    assert (tensor.kind, tensor.reckoned) == (
        "measured",
        "1.095e+12 FLOPs / 1,979 TFLOPS (fp8, dense)",
    )
    assert "datasheet" in tensor.source
    assert use(profiled(gemm(), DEFAULTS), "tensor cores").kind == "profiled"


def test_without_a_measured_time_a_published_one_is_named_so() -> None:
    published = PublishedResult(time_ms=0.722)
    tensor = use(with_arm(gemm(), measured=None, published=published), "tensor cores")
    assert (tensor.kind, tensor.time_ms) == ("published", pytest.approx(0.722))


def test_without_any_time_only_the_floor_is_known() -> None:
    shared = use(with_arm(transpose(), measured=None), "shared memory")
    assert (shared.percent, shared.kind) == (None, "emulated")
    assert shared.floor_ms == pytest.approx(0.5296, abs=1e-4)


@pytest.mark.parametrize(
    ("case", "resource", "why"),
    [
        (transpose(), "tensor cores", "no tensor instructions"),
        (transpose(), "L2", "no source gives its peak"),
        (transpose(bytes=0), "device memory", "the problem does not state its bytes"),
        (transpose(counters={}), "shared memory", "not counted"),
        (
            merged(transpose()),
            "shared memory",
            "counted on PTX, and SASS accesses shared memory in other widths",
        ),
        (transpose(chip=None), "device memory", "the chip's limits are not known"),
        (gemm(flops=0), "tensor cores", "the problem does not state its FLOPs"),
    ],
)
def test_what_is_not_known_says_why(case: Case, resource: str, why: str) -> None:
    found = use(case, resource)
    assert (found.percent, found.reckoned) == (None, why)


def test_the_type_of_operands_is_read_from_the_instructions() -> None:
    assert bounds.tensor_type(gemm()) == "fp8"
    assert bounds.tensor_type(transpose()) == ""


def test_a_profile_has_the_names_that_are_looked_up() -> None:
    assert all(each.percent is not None for each in bounds.uses(profiled(transpose(), PLAIN)))
    assert profile(PLAIN).device == "NVIDIA H200"


def test_two_arms_of_which_one_is_profiled_are_reckoned_alike() -> None:
    one, other = bounds.uses_of_both(transpose(), profiled(transpose(1), PADDED))
    assert {each.kind for each in (*one, *other)} == {None, "emulated", "measured"}
