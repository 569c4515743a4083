"""ncu's metric names: their counter, group, unit, and which of a counter's metrics is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp import counters

PEAK = "pct_of_peak_sustained_elapsed"


@pytest.mark.parametrize(
    ("name", "label", "group"),
    [
        ("launch__registers_per_thread", "registers per thread", "build"),
        ("launch__shared_mem_per_block_dynamic", "dynamic shared memory", "build"),
        (f"lts__throughput.avg.{PEAK}", "L2 throughput", "memory throughput"),
        ("l1tex__t_sector_hit_rate.pct", "L1 hit rate", "cache"),
        ("smsp__sass_inst_executed_op_shared_ld.sum", "shared load instructions", "instructions"),
        ("sass__inst_executed_shared_loads", "shared load instructions", "instructions"),
        ("stall_long_scoreboard_percent", "long scoreboard", "stalls"),
        ("smsp__warps_issue_stalled_long_scoreboard.avg.pct_of_peak_sustained_active",
         "long scoreboard", "stalls"),
        ("smsp__pcsamp_warps_issue_stalled_no_instructions", "no instruction", "stalls"),
    ],
)  # fmt: skip
def test_a_known_name_has_a_label_and_a_group(name: str, label: str, group: str) -> None:
    found = counters.describe(name)
    assert (found.label, found.group) == (label, group)


def test_an_unknown_counter_is_labelled_by_its_own_name() -> None:
    found = counters.describe("l1tex__data_bank_reads.max.per_second")
    assert (found.label, found.group) == ("l1tex__data_bank_reads", counters.OTHER)


def test_two_views_of_a_counter_that_mean_different_things_have_two_labels() -> None:
    assert counters.describe("smsp__cycles_elapsed.avg.per_second").label == "SM clock"
    assert counters.describe("smsp__cycles_elapsed.avg").label == "elapsed cycles"


def test_a_view_that_the_table_does_not_name_belongs_to_its_counter() -> None:
    assert counters.describe(f"lts__throughput.min.{PEAK}").label == "L2 throughput"


def test_a_metric_of_an_internal_unit_is_not_one_counter_with_all_others_of_that_unit() -> None:
    one = counters.describe("SM_A.TriageCompute.sm__warps_active.avg")
    other = counters.describe("SM_A.TriageCompute.l1tex__throughput.avg")
    assert one.label != other.label


def test_ncu_s_unit_of_excessive_sectors_is_corrected() -> None:
    name = "derived__memory_l2_theoretical_sectors_global_excessive"
    assert counters.describe(name).unit == "sectors"


def first(*names: str) -> str:
    return min(names, key=counters.preference)


def test_a_count_is_read_as_its_sum() -> None:
    views = ("max", "sum", "avg", f"sum.{PEAK}", "sum.per_second")
    assert first(*(f"lts__x_sectors.{view}" for view in views)) == "lts__x_sectors.sum"


def test_activity_is_read_as_a_share_of_its_peak() -> None:
    views = ("sum", "avg", f"max.{PEAK}", f"avg.{PEAK}")
    assert first(*(f"x__pipe_cycles_active.{v}" for v in views)).endswith(f"active.avg.{PEAK}")


def test_what_the_hardware_counted_goes_before_what_was_sampled() -> None:
    counted = "smsp__warps_issue_stalled_wait.avg.pct_of_peak_sustained_active"
    sampled = "smsp__pcsamp_warps_issue_stalled_wait"
    assert first(sampled, "stall_wait_percent", counted) == counted
    assert first(sampled, "stall_wait_percent") == "stall_wait_percent"


@given(st.lists(st.sampled_from(["sum", "avg", "max", f"avg.{PEAK}", "pct", ""]), min_size=1))
def test_the_metric_that_is_read_does_not_depend_on_their_order(views: list[str]) -> None:
    names = [f"unit__counter.{view}".rstrip(".") for view in views]
    assert first(*names) == first(*reversed(names))


@given(st.text(max_size=80))
def test_any_text_has_a_label_and_a_known_group(name: str) -> None:
    assert counters.describe(name).group in (*counters.GROUPS, counters.OTHER)


# ---- derived figures -----------------------------------------------------------------------------

SAMPLES = "smsp__pcsamp_warps_issue_stalled_"


def test_excessive_sectors_are_a_share_of_all_sectors() -> None:
    figures: dict[str, float | str] = {
        "derived__memory_l2_theoretical_sectors_global_excessive": 50.0,
        "memory_l2_theoretical_sectors_global": 200.0,
    }
    assert dict(counters.derive(figures)) == {"excessive_l2_sectors_percent": 25.0}


def test_nothing_is_derived_of_no_sectors_at_all() -> None:
    figures: dict[str, float | str] = {
        "derived__memory_l2_theoretical_sectors_global_excessive": 0.0,
        "memory_l2_theoretical_sectors_global": 0.0,
    }
    assert dict(counters.derive(figures)) == {}


def test_sampled_stalls_share_the_active_warps() -> None:
    figures: dict[str, float | str] = {
        f"{SAMPLES}wait": 30.0,
        f"{SAMPLES}wait_not_issued": 29.0,
        f"{SAMPLES}barrier": 60.0,
        f"{SAMPLES}selected": 10.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 50.0,
    }
    found = dict(counters.derive(figures))
    assert found == {"stall_wait_percent": 15.0, "stall_barrier_percent": 30.0}


def test_counted_stalls_go_before_samples() -> None:
    figures: dict[str, float | str] = {
        f"{SAMPLES}wait": 30.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 50.0,
        "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": 4.0,
        "sm__inst_issued.avg.per_cycle_active": 2.0,
        "device__attribute_num_schedulers_per_multiprocessor": 4.0,
        "device__attribute_max_warps_per_scheduler": 16.0,
    }
    found = dict(counters.derive(figures))
    # 4 warps stalled per issued instruction, one issued every second cycle, 16 slots.
    assert found == {"issue_slots_busy_percent": 50.0, "stall_wait_percent": 12.5}


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
    found = dict(counters.derive(figures))
    assert found["stall_warpgroup_arrive_percent"] == 5.0
    assert found["stall_no_instruction_percent"] == 12.5


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
    assert sum(dict(counters.derive(figures)).values()) <= active * (1 + 1e-9)
