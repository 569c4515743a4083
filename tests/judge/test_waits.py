"""Where warps wait, and how often they poll, as differences of two arms."""

from __future__ import annotations

import pytest
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

from kernelexp.judge import causes, stalls
from kernelexp.judge.limits.case import Case


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
