"""What differs between two arms, by cause, ranked by the time that it can explain."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from judge_cases import (
    DEFAULTS,
    FOUR_STAGES,
    PADDED,
    PLAIN,
    arm,
    gemm,
    profiled,
    transpose,
    with_arm,
)
from support import ROOT

from kernelexp.facts import chips
from kernelexp.judge import causes, stalls
from kernelexp.judge.causes import Cause, CausedDifference
from kernelexp.judge.limits.case import Case
from kernelexp.model.arm import EmulatedEvidence
from kernelexp.model.record import Profile

FASTER = -0.55
TAGS = "ptx__memory_l1_tag_requests_global"
H1 = "logs/runs/H1/20261121T015301Z-85251654.measured.json"


def of(differing: CausedDifference, name: str) -> Cause:
    return next(cause for cause in differing.causes if cause.name == name)


def published(run: str) -> Case:
    path = ROOT / Path("logs/profiles") / f"published-{run}.json"
    profile = msgspec.json.decode(path.read_bytes(), type=Profile)
    return Case(label=run, arm=profile.arm, chip=chips.CHIPS["B200"])


def counting(place: int, counters: dict[str, int]) -> EmulatedEvidence:
    emulated = arm(H1, place).emulated
    assert emulated is not None
    return msgspec.structs.replace(emulated, counters=counters)


def test_what_can_explain_most_of_the_time_comes_first() -> None:
    """The transposes differ in 130 million wavefronts, 76% of the time, of which device memory
    needs 34%; all else is below 1%."""
    result = causes.differing(transpose(0), transpose(1), FASTER)
    first = result.causes[0]
    assert first.name == "shared memory"
    assert first.leader.explains == pytest.approx(34.1 - 100, abs=0.1)
    assert first.leader.way == "with the time"
    assert all(abs(cause.leader.explains or 0.0) < 3 for cause in result.causes[1:])


def test_consequences_of_a_cause_are_told_with_it() -> None:
    result = causes.differing(profiled(transpose(0), PLAIN), profiled(transpose(1), PADDED), FASTER)
    names = [item.metric for item in of(result, "shared memory").told]
    assert any("bank_conflicts" in name for name in names)
    assert any("wavefronts" in name for name in names)
    assert [cause.name for cause in result.causes].count("shared memory") == 1


def test_a_figure_is_told_once_whoever_counted_it() -> None:
    result = causes.differing(profiled(transpose(0), PLAIN), profiled(transpose(1), PADDED), FASTER)
    for cause in result.causes:
        labels = [item.label for item in cause.told]
        assert len(labels) == len({*labels})


def test_stalls_are_ranked_by_points_and_not_by_ratio() -> None:
    """Short scoreboard grew elevenfold, by a point; long scoreboard fell by a third, by two."""
    result = causes.differing(published("cefc59d"), published("c32ab7a"), -0.096)
    waits = {wait.label: wait.points for wait in result.waits}
    assert [*waits][:2] == ["long scoreboard", "short scoreboard"]
    assert waits["long scoreboard"] == pytest.approx(100 * (4.4 / 9.82 - 6.4 / 10.38), abs=2)
    assert waits["selected"] == pytest.approx(100 * (1.19 / 9.82 - 0.88 / 10.38), abs=2)


@pytest.mark.parametrize("case", [profiled(transpose(0), PLAIN), profiled(gemm(), DEFAULTS)])
def test_shares_of_the_warps_time_are_those_of_an_average_warps_cycles(case: Case) -> None:
    """`selected` too, of which ncu gives the share of a scheduler's issue slot."""
    assert case.arm.profiled
    prefix, suffix = "smsp__average_warp_latency_issue_stalled_", ".ratio"
    cycles = {
        name.removeprefix(prefix).removesuffix(suffix).replace("_", " "): float(value)
        for name, value in case.arm.profiled.figures.items()
        if name.startswith(prefix)
    }
    shares = stalls.stalls(case.arm)
    for state, value in cycles.items():
        assert shares[state] == pytest.approx(100 * value / sum(cycles.values()), abs=0.5)


def test_what_polling_counts_is_noise_and_comes_last() -> None:
    counted = {"ptx__inst_executed_mbarrier_wait": 4_468_948, "ptx__inst_executed": 161_061_648}
    more = {"ptx__inst_executed_mbarrier_wait": 5_687_152, "ptx__inst_executed": 186_587_236}
    cases = [
        with_arm(gemm(arm=arm(H1, place), counters=own), emulated=counting(place, own))
        for place, own in enumerate((counted, more))
    ]
    result = causes.differing(*cases, 0.0395)
    assert [cause.name for cause in result.causes][-2:] == ["polling", "resources"]
    assert "how often a wait looks again" in of(result, "polling").noise
    assert of(result, "instructions").leader.way == "with the time"


def test_waits_that_change_as_the_operations_do_are_code_and_no_polling() -> None:
    """24 tiles of keys and not 32: 18 operations and 30 waits a tile."""
    operations, waits = "ptx__inst_executed_mbarrier", "ptx__inst_executed_mbarrier_wait"
    counted = (
        {operations: 1_218_560, waits: 2_041_856, "ptx__inst_executed": 256_497_664},
        {operations: 923_648, waits: 1_550_336, "ptx__inst_executed": 242_475_008},
    )
    cases = [
        with_arm(gemm(arm=arm(H1, place), counters=own), emulated=counting(place, own))
        for place, own in enumerate(counted)
    ]
    result = causes.differing(*cases, 0.0349)
    assert of(result, "waits at mbarriers").noise == ""
    assert of(result, "mbarriers").noise == ""


def test_instructions_explain_nothing_of_what_polls_execute() -> None:
    waits, executed = "ptx__inst_executed_mbarrier_wait", "smsp__inst_executed"
    grown = []
    for polls in (0, 1_000_000):
        counted = (
            {waits: 4_000_000, executed: 160_000_000},
            {waits: 4_000_000 + polls, executed: 180_000_000},
        )
        cases = [
            with_arm(gemm(arm=arm(H1, place), counters=own), emulated=counting(place, own))
            for place, own in enumerate(counted)
        ]
        result = causes.differing(*cases, 0.0395)
        told = next(item for item in of(result, "instructions").told if item.metric == executed)
        grown.append(told.explains or 0.0)
    assert grown[1] == pytest.approx(grown[0] * 19 / 20)


def test_conflicts_that_no_address_needs_are_arbitration() -> None:
    before, after = profiled(gemm(), DEFAULTS), profiled(gemm(), FOUR_STAGES)
    result = causes.differing(before, after, 0.0395)
    shared = [cause for cause in result.causes if cause.name == "shared memory"]
    assert all("arbitration" in cause.noise for cause in shared)


def test_shares_that_the_limits_have_are_no_differences() -> None:
    result = causes.differing(published("cefc59d"), published("c32ab7a"), -0.096)
    names = [item.metric for cause in result.causes for item in cause.told]
    assert names
    assert not any("pct_of_peak" in name or "throughput" in name for name in names)


def test_two_equal_arms_differ_in_nothing() -> None:
    result = causes.differing(transpose(0), transpose(0), None)
    assert (result.causes, result.waits, result.small) == ((), (), 0)


def test_branches_that_no_poll_brings_along_are_no_polling() -> None:
    """A warp that stores by itself waits as often, and branches five million times less."""
    counted = {
        "ptx__inst_executed_mbarrier_wait": 4_468_948,
        "ptx__inst_executed_branch": 11_853_876,
    }
    less = {"ptx__inst_executed_mbarrier_wait": 4_468_420, "ptx__inst_executed_branch": 6_279_588}
    cases = [
        with_arm(gemm(arm=arm(H1, place), counters=own), emulated=counting(place, own))
        for place, own in enumerate((counted, less))
    ]
    assert of(causes.differing(*cases, 0.06), "branches").noise == ""


def test_resources_that_leave_an_sm_as_many_warps_have_no_effect_of_their_own() -> None:
    """Four stages take less shared memory than six, for one CTA all the same."""
    cases = [gemm(arm=arm(H1, place)) for place in (0, 1)]
    cause = of(causes.differing(*cases, 0.0395), "resources")
    assert "as many CTAs and warps" in cause.noise


def test_warps_on_an_sm_come_before_the_resources_that_limit_them() -> None:
    one = transpose(ctas=64)
    build = one.arm.build
    assert build
    half = msgspec.structs.replace(
        build, resources=msgspec.structs.replace(build.resources, threads=128, registers=217)
    )
    result = causes.differing(one, with_arm(one, build=half), 1.6)
    assert of(result, "resources").leader.label == "warps on an SM, at most"
    assert of(result, "resources").leader.way == "with the time"


def test_warps_that_load_among_them_are_no_cause() -> None:
    """Two CTAs of one warpgroup that multiplies have 16 warps, one CTA of two has 12: each CTA has
    a warpgroup that loads, and 8 warps multiply in both."""
    one = gemm(ctas=264)
    build = one.arm.build
    assert build
    fewer = msgspec.structs.replace(
        build, resources=msgspec.structs.replace(build.resources, threads=256, registers=128)
    )
    result = causes.differing(one, with_arm(one, build=fewer), -0.07)
    assert not any(item.metric == causes.WARPS for cause in result.causes for item in cause.told)


def test_what_explains_next_to_nothing_of_a_change_comes_after_what_has_no_rate() -> None:
    """0.2% of the time is no reason for 160%."""
    one = gemm(ctas=64, counters={TAGS: 10**6})
    build = one.arm.build
    assert build
    half = msgspec.structs.replace(
        build, resources=msgspec.structs.replace(build.resources, threads=192)
    )
    more = {TAGS: 2 * 10**6}
    other = msgspec.structs.replace(with_arm(one, build=half), counters=more)
    cases = [with_arm(case, emulated=counting(0, case.counters)) for case in (one, other)]
    names = [cause.name for cause in causes.differing(*cases, 1.6).causes]
    assert names.index("resources") < names.index("global memory")


def test_a_pipe_that_is_relieved_by_what_others_execute_is_a_cause_of_its_own() -> None:
    """Exponentials as polynomials: 68 million instructions more, 8 million of the XU pipe fewer."""
    executed, pipe = "smsp__inst_executed", "sm__inst_executed_pipe_xu"
    counted = (
        {executed: 228_343_808, pipe: 34_691_072},
        {executed: 295_976_960, pipe: 26_302_464},
    )
    cases = [
        with_arm(gemm(arm=arm(H1, place), counters=own), emulated=counting(place, own))
        for place, own in enumerate(counted)
    ]
    result = causes.differing(*cases, 0.038)
    apart = of(result, "xu pipe, instructions").leader
    assert apart.way == "against it"
    assert apart.explains == pytest.approx(
        -(of(result, "instructions").leader.explains or 0), rel=0.02
    )
