"""Figures that are computed from others of a profile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_cases import (
    DEFAULTS,
    H1,
    PLAIN,
    arm,
    cause_of,
    counted,
    counting,
    gemm,
    profiled,
    published,
    transpose,
    with_arm,
)

from kernelexp.facts import derived
from kernelexp.judge import causes
from kernelexp.judge.limits.case import Case

SAMPLES = "smsp__pcsamp_warps_issue_stalled_"


def test_excessive_sectors_are_a_share_of_all_sectors() -> None:
    figures: dict[str, float | str] = {
        "derived__memory_l2_theoretical_sectors_global_excessive": 50.0,
        "memory_l2_theoretical_sectors_global": 200.0,
    }
    assert dict(derived.derive(figures)) == {"excessive_l2_sectors_percent": 25.0}


def test_nothing_is_derived_of_no_sectors_at_all() -> None:
    figures: dict[str, float | str] = {
        "derived__memory_l2_theoretical_sectors_global_excessive": 0.0,
        "memory_l2_theoretical_sectors_global": 0.0,
    }
    assert dict(derived.derive(figures)) == {}


def test_sampled_stalls_share_the_active_warps() -> None:
    figures: dict[str, float | str] = {
        f"{SAMPLES}wait": 30.0,
        f"{SAMPLES}wait_not_issued": 29.0,
        f"{SAMPLES}barrier": 60.0,
        f"{SAMPLES}selected": 10.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 50.0,
    }
    result = dict(derived.derive(figures))
    assert result == {"stall_wait_percent": 15.0, "stall_barrier_percent": 30.0}


def test_counted_stalls_go_before_samples() -> None:
    figures: dict[str, float | str] = {
        f"{SAMPLES}wait": 30.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 50.0,
        "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": 4.0,
        "sm__inst_issued.avg.per_cycle_active": 2.0,
        "device__attribute_num_schedulers_per_multiprocessor": 4.0,
        "device__attribute_max_warps_per_scheduler": 16.0,
    }
    result = dict(derived.derive(figures))
    # 4 warps stalled per issued instruction, one issued every second cycle, 16 slots.
    assert result == {"issue_slots_busy_percent": 50.0, "stall_wait_percent": 12.5}


def test_a_reason_that_was_only_sampled_is_derived_next_to_those_that_were_counted() -> None:
    figures: dict[str, float | str] = {
        f"{SAMPLES}warpgroup_arrive": 10.0,
        f"{SAMPLES}no_instructions": 90.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 50.0,
        "smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio": 4.0,
        "sm__inst_issued.avg.per_cycle_active": 2.0,
        "device__attribute_num_schedulers_per_multiprocessor": 4.0,
        "device__attribute_max_warps_per_scheduler": 16.0,
    }
    result = dict(derived.derive(figures))
    assert result["stall_warpgroup_arrive_percent"] == 5.0
    assert result["stall_no_instruction_percent"] == 12.5


@given(
    st.dictionaries(
        st.sampled_from(["barrier", "wait", "sleeping", "selected"]),
        st.integers(min_value=0, max_value=10**6),
    ),
    st.floats(min_value=0, max_value=100),
)
def test_derived_stalls_never_add_up_to_more_than_the_active_warps(
    samples: dict[str, int], active: float
) -> None:
    figures: dict[str, float | str] = {f"{SAMPLES}{k}": float(v) for k, v in samples.items()}
    figures["sm__warps_active.avg.pct_of_peak_sustained_active"] = active
    assert sum(dict(derived.derive(figures)).values()) <= active * (1 + 1e-9)


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
    shares = derived.stalls(case.arm)
    for state, value in cycles.items():
        assert shares[state] == pytest.approx(100 * value / sum(cycles.values()), abs=0.5)


def test_what_polls_count_comes_last_without_a_way() -> None:
    counted = {"ptx__inst_executed_mbarrier_wait": 4_468_948, "ptx__inst_executed": 161_061_648}
    more = {"ptx__inst_executed_mbarrier_wait": 5_687_152, "ptx__inst_executed": 186_587_236}
    cases = [
        with_arm(gemm(arm=arm(H1, place), counters=own), emulated=counting(place, own))
        for place, own in enumerate((counted, more))
    ]
    result = causes.differing(*cases, 0.0395)
    assert [cause.name for cause in result.causes][-2:] == ["waits at mbarriers", "resources"]
    assert "depends on timing too" in cause_of(result, "waits at mbarriers").noise
    assert cause_of(result, "instructions").leader.way == "with the time"


def test_waits_that_change_as_the_operations_do_are_code() -> None:
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
    assert cause_of(result, "waits at mbarriers").noise == ""
    assert cause_of(result, "mbarriers").noise == ""


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
        figure = next(
            item for item in cause_of(result, "instructions").figures if item.metric == executed
        )
        grown.append(figure.explains or 0.0)
    assert grown[1] == pytest.approx(grown[0] * 19 / 20)


def test_branches_that_no_poll_brings_along_are_no_waits() -> None:
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
    assert cause_of(causes.differing(*cases, 0.06), "branches").noise == ""


def test_what_polls_take_of_the_instructions_is_said_with_what_these_explain() -> None:
    executed, waits = "smsp__inst_executed", "sass__inst_executed_mbarrier_wait"
    operations = "sass__inst_executed_mbarrier"
    cases = counted(
        {executed: 10**8, operations: 10**6, waits: 4 * 10**6},
        {executed: 11 * 10**7, operations: 10**6, waits: 6 * 10**6},
    )
    result = causes.differing(*cases, 0.05)
    assert result.polled == 2 * 10**6
    explains = cause_of(result, "instructions").leader.explains or 0.0
    alone = causes.differing(*counted({executed: 10**8}, {executed: 108 * 10**6}), 0.05)
    assert explains == pytest.approx(cause_of(alone, "instructions").leader.explains)
