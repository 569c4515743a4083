"""The published profiles on disk: figures of their documents, of steps of the history."""

from __future__ import annotations

from pathlib import Path

import pytest
from project.sections.published import FIGURES

from kernelexp import project
from kernelexp.logs import profiles
from kernelexp.model.record import Profile
from kernelexp.project.sections import builtin
from kernelexp.project.sections.evaluate import evaluate

ROOT = Path(__file__).parents[3]
STEPS = ("cefc59d", "c32ab7a", "9bf658a")

# stephendliang/siglip, "Performance Audit — 2026-02-27": st.global.v8, then SMEM staging.
AUDIT: dict[str, tuple[float, float]] = {
    "smsp__warps_issue_stalled_selected.avg.pct_of_peak_sustained_active": (14.1, 19.1),
    "smsp__warps_issue_stalled_long_scoreboard.avg.pct_of_peak_sustained_active": (6.4, 4.4),
    "smsp__warps_issue_stalled_short_scoreboard.avg.pct_of_peak_sustained_active": (0.1, 1.1),
    "smsp__warps_issue_stalled_sleeping.avg.pct_of_peak_sustained_active": (1.3, 1.1),
    "smsp__warps_issue_stalled_wait.avg.pct_of_peak_sustained_active": (0.9, 1.2),
    "smsp__warps_issue_stalled_barrier.avg.pct_of_peak_sustained_active": (0.8, 0.8),
    "smsp__warps_issue_stalled_mio_throttle.avg.pct_of_peak_sustained_active": (0.0, 0.03),
    "l1tex__throughput.avg.pct_of_peak_sustained_elapsed": (82, 85),
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": (60, 54),
    "dram__cycles_active.avg.pct_of_peak_sustained_elapsed": (24, 27),
    "derived__memory_l2_theoretical_sectors_global_excessive": (44.56e6, 44.56e6),
    "excessive_l2_sectors_percent": (50, 33),
    "sass__inst_executed_global_stores": (1_392_384, 3_480_960),
    "sm__inst_executed.sum.per_cycle_active": (82.9, 112.3),
    "sass__inst_executed_shared_loads": (666, 3_481_626),
    "sass__inst_executed_shared_stores": (148, 2_784_916),
    "memory_l1_wavefronts_shared": (1_554, 22_279_698),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed": (0.1, 20.6),
    "l1tex__t_sector_hit_rate.pct": (61.7, 33.6),
    "gcc__cache_requests_type_instruction.sum": (849e3, 3510e3),
    "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed": (36.3, 41.8),
}


def _profile(step: str) -> Profile:
    profile = profiles.read_file(ROOT / f"logs/profiles/published-{step}.json")
    assert isinstance(profile, Profile)
    return profile


@pytest.mark.parametrize(
    ("step", "figures"),
    [
        ("cefc59d", {name: pair[0] for name, pair in AUDIT.items()}),
        ("c32ab7a", {name: pair[1] for name, pair in AUDIT.items()}),
        ("9bf658a", FIGURES),
    ],
)
def test_the_figures_are_those_of_the_document(step: str, figures: dict[str, float]) -> None:
    profiled = _profile(step).arm.profiled

    assert profiled is not None
    assert profiled.figures == figures


@pytest.mark.parametrize("step", STEPS)
def test_a_profile_is_of_the_step_that_it_names(step: str) -> None:
    loaded = project.load(ROOT, sources=False)
    experiment = loaded.experiments[step]
    variant = loaded.variant(
        experiment.kernel, experiment.arch, experiment.baseline, experiment.candidates[0]
    )
    profile = _profile(step)

    assert (profile.step, profile.provenance) == (step, "published")
    assert profile.source
    named = profiles.of_variant(ROOT, variant.kernel, variant.arch, variant.axes)
    assert profile.run in [item.run for item in named]


def test_each_profile_is_of_another_variant() -> None:
    axes = [_profile(step).arm.axes for step in STEPS]

    assert all(one != other for one in axes for other in axes if one is not other)


@pytest.mark.parametrize("step", STEPS[:2])
def test_stalls_without_the_view_by_cycles_come_with_the_caveat(step: str) -> None:
    profiled = _profile(step).arm.profiled
    assert profiled is not None

    assert "warp-specialised" in evaluate(builtin("stalls"), profiled).caveats[0]
