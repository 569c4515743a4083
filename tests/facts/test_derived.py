"""Figures that are computed from others of a profile."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelexp.facts import derived

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
