"""ncu's metric names: their counter, group, unit, and which of a counter's metrics is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.facts import counters

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
        ("ptx__memory_l1_wavefronts_shared", "shared memory wavefronts (PTX)", "access efficiency"),
        ("ptx__inst_executed_barrier", "CTA and named barriers (PTX)", "instructions"),
        ("sm__inst_executed_pipe_alu", "alu pipe, instructions", "instructions"),
        ("sass__inst_executed_mbarrier_wait", "mbarrier waits", "instructions"),
        ("stall_long_scoreboard_percent", "long scoreboard", "stalls"),
        ("smsp__warps_issue_stalled_long_scoreboard.avg.pct_of_peak_sustained_active",
         "long scoreboard", "stalls"),
        ("smsp__pcsamp_warps_issue_stalled_no_instructions", "no instruction", "stalls"),
        ("smsp__average_warp_latency_issue_stalled_barrier.ratio", "barrier, per warp", "stalls"),
        ("smsp__average_warps_issue_stalled_selected_per_issue_active.ratio",
         "selected per issue", "stalls"),
        ("lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum", "L2 sectors read by L1, miss",
         "cache"),
    ],
)  # fmt: skip
def test_a_known_name_has_a_label_and_a_group(name: str, label: str, group: str) -> None:
    result = counters.describe(name)
    assert (result.label, result.group) == (label, group)


def test_a_stall_that_ncu_counts_and_samples_under_two_names_has_one_label() -> None:
    sampled = counters.describe("stall_warpgroup_arrive_percent")
    counted = counters.describe("smsp__warps_issue_stalled_gmma.avg.pct_of_peak_sustained_active")
    assert sampled.label == counted.label == "gmma"


def test_a_smaller_share_of_one_stall_is_not_better() -> None:
    share = "smsp__warps_issue_stalled_wait.avg.pct_of_peak_sustained_active"
    assert counters.describe(share).better == ""


def test_an_unknown_counter_is_labelled_by_its_own_name() -> None:
    result = counters.describe("l1tex__data_bank_reads.max.per_second")
    assert (result.label, result.group) == ("l1tex__data_bank_reads", counters.OTHER)


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
