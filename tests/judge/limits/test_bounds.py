"""How near a kernel comes to its chip's limits: profiled, else the least time over the time."""

from __future__ import annotations

import msgspec
import pytest
from judge_cases import (
    DEFAULTS,
    FOUR_STAGES,
    PADDED,
    PLAIN,
    executed_sass,
    gemm,
    merged,
    profile,
    profiled,
    transpose,
    with_arm,
)
from support import ROOT

from kernelexp.facts import chips
from kernelexp.judge import executed
from kernelexp.judge.explanation import moved, work
from kernelexp.judge.limits import bottleneck, bounds, floors
from kernelexp.judge.limits.bounds import Use
from kernelexp.judge.limits.case import Case
from kernelexp.model.arm import EmulatedLine, PublishedResult
from kernelexp.model.record import Profile


def use(case: Case, resource: str) -> Use:
    return next(item for item in bounds.uses(case) if item.resource == resource)


def elapsed(case: Case, launch: int) -> Case:
    """Profiled for as many cycles as its FLOPs need at the share that ncu reports."""
    result = profiled(case, launch)
    busy = case.flops / (8192 * 132)
    share = (use(result, "tensor cores").percent or 0.0) / 100
    taken = result.arm.profiled
    assert taken
    figures = {**taken.figures, "sm__cycles_elapsed.avg": busy / share}
    return with_arm(result, profiled=msgspec.structs.replace(taken, figures=figures))


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


def test_counts_that_two_sizes_do_not_agree_on_bound_what_a_tile_adds() -> None:
    executed = floors.EXECUTED["ptx"]
    case = transpose(counters={**transpose().counters, executed: 1 << 30})
    known = {floor.resource for floor in floors.floors(case)}
    for counter, resources in (
        (executed, {"issue slots"}),
        ("ptx__memory_l1_tag_requests_global", {"L1 tag stage"}),
    ):
        doubted = msgspec.structs.replace(case, unsolved=frozenset({counter}))
        assert {floor.resource for floor in floors.floors(doubted)} == known - resources
        assert resources <= known
        bound = msgspec.structs.replace(doubted, least={counter: 132 << 20})
        rough = {floor.resource for floor in floors.floors(bound) if floor.rough}
        assert {floor.resource for floor in floors.floors(bound)} == known
        assert rough >= resources


def test_the_nearest_limit_moves_with_the_padding() -> None:
    uses = [bounds.uses(transpose(place)) for place in (0, 1)]
    near = [bounds.nearest(item) for item in uses]
    assert [item.resource for item in near if item] == ["L1 data pipe", "device memory"]
    assert moved(*uses) == (
        "The limit moved: the baseline is bound by the L1 data pipe (88.1% of the peak), the "
        "candidate is nearest to device memory (76.0%)."
    )


def test_the_nearest_limit_may_stay() -> None:
    uses = [bounds.uses(profiled(gemm(), launch)) for launch in (DEFAULTS, FOUR_STAGES)]
    assert moved(*uses) == (
        "Both arms are bound by the tensor cores: 88.9% of the peak, then 83.8%."
    )


def test_a_share_says_how_it_was_reckoned_and_of_which_kind_it_is() -> None:
    shared = use(transpose(), "shared memory")
    assert shared.kind == "emulated"
    assert shared.reckoned == "138,412,032 wavefronts (PTX) / (132 SMs x 1,980 MHz (measured))"
    tensor = use(gemm(), "tensor cores")
    assert (tensor.kind, tensor.reckoned) == (
        "measured",
        "1.095 TFLOP (fp8, dense) / (8,192 per clock x 132 SMs x 1,635 MHz (measured))",
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
    result = use(case, resource)
    assert (result.percent, result.reckoned) == (None, why)


def test_the_type_of_operands_is_read_from_the_instructions() -> None:
    assert floors.tensor_type(gemm()) == "fp8"
    assert floors.tensor_type(transpose()) == ""


def test_a_profile_has_the_names_that_are_looked_up() -> None:
    known = [item for item in bounds.uses(profiled(transpose(), PLAIN)) if item.percent is not None]
    assert {*bounds.MAIN} <= {item.resource for item in known}
    assert profile(PLAIN).device == "NVIDIA H200"


def test_two_arms_of_which_one_is_profiled_are_reckoned_alike() -> None:
    one, other = bounds.uses_of_both(transpose(), profiled(transpose(1), PADDED))
    assert {item.kind for item in (*one, *other)} == {None, "emulated", "measured"}


def test_peaks_are_those_of_the_clock_that_was_measured() -> None:
    """The FLOPs of a launch over its cycles are ncu's share of the tensor pipe."""
    assert chips.CHIPS["H200"].flops_per_clock("fp8") == 8192
    assert chips.CHIPS["B200"].flops_per_clock("fp8") == 16384
    slow, fast = (use(gemm(clock_hz=clock), "tensor cores").percent for clock in (1e9, 2e9))
    assert slow == pytest.approx(2 * (fast or 0.0))


def test_a_part_of_l1_is_named_before_the_whole_that_is_as_busy() -> None:
    near = bounds.nearest(bounds.uses(profiled(transpose(), PLAIN)))
    assert near
    assert (near.resource, near.percent) == ("L1 data pipe", pytest.approx(87.5, abs=0.1))


def published(run: str) -> Case:
    profile = msgspec.json.decode(
        (ROOT / f"logs/profiles/published-{run}.json").read_bytes(), type=Profile
    )
    return Case(label=run, arm=profile.arm, chip=chips.CHIPS["B200"])


def test_the_published_kernel_is_bound_by_l1_as_its_authors_found() -> None:
    before, after = (bounds.uses(published(run)) for run in ("cefc59d", "c32ab7a"))
    assert moved(before, after) == "Both arms are bound by L1: 82.0% of the peak, then 85.0%."
    assert bottleneck.conclude(published("c32ab7a"), after) == (
        "This kernel is bound by L1: 85.0% of the peak."
    )


def test_ncus_shares_of_its_own_cycles_say_nothing_of_the_work() -> None:
    """85 / 82 of the share in 0.904 of the published time: of another launch, at another clock."""
    before, after = (bounds.uses(published(run)) for run in ("cefc59d", "c32ab7a"))
    assert work(before, after, 0.633 / 0.700 - 1, ()) == ""


def test_what_ncu_counted_is_a_share_of_the_time_that_was_measured() -> None:
    """88.9% of its 1.1 million cycles are as many as the FLOPs need: the same work, whatever the
    clock was under the profiler."""
    stated = use(gemm(), "tensor cores")
    for launch in (DEFAULTS, FOUR_STAGES):
        counted = use(elapsed(gemm(), launch), "tensor cores")
        assert counted.kind == "profiled"
        assert counted.percent == pytest.approx(stated.percent, rel=1e-3)
        assert "cycles under ncu" in counted.reckoned


def test_mmas_beyond_the_edge_of_the_problem_are_work_of_the_tensor_cores() -> None:
    """Tiles of 176 keys cover 4,096 in 24 steps, 4,224 keys: 3.1% more than is useful."""
    emulated = executed_sass(opcodes_with_modifiers={"QGMMA.64x96x32.F32.E4M3.E4M3": 8})
    mmas = round(1.031 * gemm().flops / (2 * 64 * 96 * 32 / 4))
    case = with_arm(
        gemm(counters={"smsp__inst_executed": 1, "sm__inst_executed_pipe_tensor": mmas}),
        emulated_sass=emulated,
    )
    useful, padded = (use(item, "tensor cores") for item in (gemm(), case))
    assert padded.kind == "emulated"
    assert padded.percent == pytest.approx(1.031 * (useful.percent or 0.0), rel=1e-3)
    assert "1.095 TFLOP of them useful" in padded.reckoned


def test_spills_pass_the_l1_as_loads_of_global_memory_do() -> None:
    counters = {"smsp__inst_executed": 1, "memory_l1_tag_requests_global": 100}
    case = transpose(counters=counters)
    spilling = transpose(counters={**counters, "sass__inst_executed_local_loads": 300})
    for resource in ("L1 data pipe", "L1 tag stage"):
        was, now = (use(item, resource).floor_ms for item in (case, spilling))
        assert now == pytest.approx(4 * (was or 0.0))


def test_where_no_limit_is_near_none_is_said_to_have_moved() -> None:
    slow = transpose()
    measured = msgspec.structs.replace(slow.arm.measured, time_us=1e5)
    uses = bounds.uses(with_arm(slow, measured=measured))
    assert moved(uses, uses).startswith("Neither arm is near a limit: ")


def test_of_a_slower_candidate_with_the_same_work_no_limit_is_the_cause() -> None:
    """Its share falls with its time alone: 77.9% of the tensor cores, then 72.2%, 7.96% slower."""
    before, after = gemm(), gemm()
    measured = after.arm.measured
    assert measured
    assert measured.time_us
    slow = msgspec.structs.replace(measured, time_us=1.0796 * measured.time_us)
    uses = bounds.uses(before), bounds.uses(with_arm(after, measured=slow))
    assert work(*uses, 0.0796, ()) == (
        "The candidate gives the tensor cores no more work (by the FLOPs that are useful) and "
        "leaves them idle for longer."
    )


def test_below_every_limit_the_largest_waits_are_named() -> None:
    case = published("9bf658a")
    words = bottleneck.conclude(case, bounds.uses(case))
    assert "below 60% of every known limit (most: the tensor cores, 48.2%)" in words
    assert "wait 43% of their time for global or tensor memory (long scoreboard)" in words


def test_a_grid_that_leaves_sms_idle_is_named_first() -> None:
    case = transpose(ctas=66)
    assert bottleneck.conclude(case, bounds.uses(case)).startswith(
        "The grid comes first: its 66 CTAs leave 66 of 132 SMs without work, so that no limit can "
        "be used beyond 50.0%."
    )


def test_below_every_limit_few_warps_are_named_where_no_profile_says_what_they_wait_for() -> None:
    slow = transpose(ctas=140)
    measured = msgspec.structs.replace(slow.arm.measured, time_us=1e5)
    slow = with_arm(slow, measured=measured)
    assert (
        "It waits for latency, with at most 16 of 64 warps on an SM to hide it (140 CTAs of 8 "
        in (bottleneck.conclude(slow, bounds.uses(slow)))
    )
    roles = with_arm(gemm(ctas=132), measured=measured)
    assert "warps on an SM" not in bottleneck.conclude(roles, bounds.uses(roles))
    many = msgspec.structs.replace(slow, ctas=10**5)
    assert "warps on an SM" not in bottleneck.conclude(many, bounds.uses(many))


def test_power_that_holds_the_clock_is_said() -> None:
    capped = gemm(power_capped=True)
    assert "Power holds its clock at 1,635 of 1,980 MHz" in bottleneck.conclude(
        capped, bounds.uses(capped)
    )
    assert "Power" not in bottleneck.conclude(gemm(), bounds.uses(gemm()))


def test_without_a_time_the_longest_floor_is_named() -> None:
    untimed = with_arm(transpose(), measured=None)
    assert bottleneck.conclude(untimed, bounds.uses(untimed)) == (
        "Not timed. Its work keeps the L1 data pipe busy for at least 0.578 ms, shared memory for "
        "0.53 ms, device memory for 0.224 ms."
    )


def test_counts_of_a_small_size_say_which_unit_is_busy_and_none_of_the_full_problem() -> None:
    untimed = with_arm(transpose(ratios_of="emulated", tiles=0), measured=None)
    words = bottleneck.conclude(untimed, bounds.uses(untimed))
    assert "nothing says what limits it; device memory alone needs 0.224 ms" in words
    assert "At size 'emulated' it keeps the L1 data pipe busy for longest" in words


def test_a_slower_candidate_that_is_further_from_the_limit_waits() -> None:
    """Four stages: the tensor cores are at 83.8% and not 88.9%, and it is 3.95% slower."""
    slow = msgspec.structs.replace(gemm().arm.measured, time_us=1.0605 * 787.6)
    cases = elapsed(gemm(), DEFAULTS), elapsed(with_arm(gemm(), measured=slow), FOUR_STAGES)
    uses = [bounds.uses(case) for case in cases]
    words = work(uses[0], uses[1], 0.0605, ())
    assert words == (
        "The candidate gives the tensor cores no more work and leaves them idle for longer: its "
        "warps wait longer."
    )


def test_two_phases_that_take_turns_are_named_where_no_limit_is_near() -> None:
    """MMAs and exponentials of attention: each below 40%, together 78% of the time."""
    case = gemm()
    uses = tuple(
        Use(resource=name, percent=share, kind="emulated", time_ms=1.0)
        for name, share in (("tensor cores", 38.3), ("XU pipe", 39.6))
    )
    assert "the tensor cores (38.3%) and the XU pipe (39.6%) are busy for 78% of the time" in (
        bottleneck.conclude(case, uses)
    )


def test_a_kernel_near_what_its_grid_allows_does_not_wait_for_latency() -> None:
    """64 of 132 SMs: no limit can be used beyond 48.5%, and 45% is nearly all of that."""
    case = transpose(ctas=64)
    uses = (Use(resource="L1 data pipe", percent=45.0, kind="emulated", time_ms=1.0),)
    assert "waits for latency" not in bottleneck.conclude(case, uses)


def test_a_limit_is_near_by_what_the_grid_can_use_of_it() -> None:
    """64 CTAs on 132 SMs can use 48.5% of any limit: 31.2% is most of that."""
    measured = transpose().arm.measured
    uses = bounds.uses(
        with_arm(transpose(), measured=msgspec.structs.replace(measured, time_us=1600.0))
    )
    assert moved(uses, uses).startswith("Neither arm is near a limit: ")
    words = moved(uses, uses, (1.0, 0.485))
    assert words.startswith("Both arms are nearest to the L1 data pipe: ")
    assert words.endswith("of what the grid allows.")


def test_of_two_arms_without_a_time_the_longest_need_of_either_is_compared() -> None:
    uses = [bounds.uses(with_arm(transpose(place), measured=None)) for place in (0, 1)]
    words = bottleneck.of_both(*uses)
    assert words.startswith("Not timed. The baseline keeps the L1 data pipe busy for at least ")
    assert "the candidate device memory for " in words


def test_mmas_that_are_executed_need_the_tensor_cores_where_no_work_is_stated() -> None:
    evidence = executed_sass(opcodes_with_modifiers={"QGMMA.64x96x32.F32.E4M3.E4M3": 8})
    counters = {"smsp__inst_executed": 10**9, executed.MMAS: 10**8}
    case = with_arm(gemm(counters=counters, flops=0), emulated_sass=evidence)
    (tensor,) = (floor for floor in floors.floors(case) if floor.resource == "tensor cores")
    assert tensor.emulated
    assert tensor.seconds > 0


def test_polls_of_mbarriers_keep_no_unit_busy_for_at_least_so_long() -> None:
    """A third of the instructions are at a line that waits."""
    executed_name, waits = "smsp__inst_executed", "sass__inst_executed_mbarrier_wait"
    waiting = EmulatedLine(file="a.cu", line=82, counters={executed_name: 300, waits: 100})
    counters = {executed_name: 900, waits: 100}
    evidence = executed_sass(counters=counters, lines=(waiting,))
    full = gemm(counters={name: 10**6 * count for name, count in counters.items()})
    polling = with_arm(full, emulated_sass=evidence)
    without = with_arm(full, emulated_sass=executed_sass(counters=counters))
    issue = [
        next(floor.seconds for floor in floors.floors(case) if floor.resource == "issue slots")
        for case in (without, polling)
    ]
    assert issue[1] == pytest.approx(issue[0] * 2 / 3)


def test_needs_that_are_about_as_long_are_not_said_to_differ() -> None:
    def need(ms: float) -> tuple[Use, ...]:
        return (Use(resource="issue slots", floor_ms=ms, rough=True, kind="emulated"),)

    alike = bottleneck.of_both(need(0.318), need(0.325))
    assert alike == (
        "Not timed. Both arms keep the issue slots busy for longest: about 0.318, then 0.325 ms."
    )
    assert "%" not in bottleneck.of_both(need(0.112), need(0.096))
