"""The table of figures: one entry per figure, read the same way everywhere."""

from __future__ import annotations

import json

import msgspec
import pytest
from support import ROOT, Kx

from kernelexp.facts import metrics
from kernelexp.judge import ranking
from kernelexp.logs import records
from kernelexp.model.arm import Arm, EmulatedEvidence, ProfiledEvidence
from kernelexp.model.measurement import ArrayResult
from kernelexp.model.record import Record
from kernelexp.report import export

T3 = ROOT / "logs/runs/T3/20261121T000044Z-485c4d1d.measured.json"


@pytest.fixture
def record() -> Record:
    return records.read_file(T3)


def emulated(**counters: int) -> Arm:
    array = ArrayResult(name="y", elements=4, wrong=0, worst=0.0)
    return Arm(emulated=EmulatedEvidence(size="emulated", arrays=(array,), counters=counters))


def test_figures_are_those_of_the_record_s_evidence(record: Record) -> None:
    arm = record.arms[1]
    assert arm.build is not None
    assert metrics.read("launch__registers_per_thread", arm) == arm.build.resources.registers == 32
    assert metrics.read("sass_instructions_lsu", arm) == arm.build.pipes["LSU"]
    change = metrics.read("change_percent", arm)
    assert change == -2.3582
    baseline = metrics.read("time_ms", record.baseline)
    assert metrics.read("time_ms", arm) == pytest.approx(baseline * (1 + change / 100), abs=5e-7)


def test_an_arm_without_evidence_has_no_figures() -> None:
    assert metrics.figures(Arm()) == {}
    assert metrics.read("time_ms", Arm()) is None
    assert metrics.read("no_such_figure", Arm()) is None


def test_figures_of_a_kind_are_of_that_kind_only(record: Record) -> None:
    for kind in ("built", "emulated", "measured"):
        figures = metrics.figures(record.arms[1], kind)  # type: ignore[arg-type]
        assert figures
        assert {figure.metric.kind for figure in figures.values()} == {kind}


def test_counters_of_a_launch_that_ended_early_are_no_figures() -> None:
    whole = emulated(ptx__inst_executed=10)
    assert whole.emulated
    hanging = msgspec.structs.replace(
        whole, emulated=msgspec.structs.replace(whole.emulated, hang=("warp 0 waits",))
    )
    assert metrics.read("ptx__inst_executed", whole) == 10
    assert metrics.read("ptx__inst_executed", hanging) is None
    assert ranking.between(emulated(ptx__inst_executed=20), hanging, "emulated") == ()


def test_a_difference_has_both_values_and_the_relative_change(record: Record) -> None:
    result = {
        item.metric.name: item for item in ranking.between(record.baseline, record.arms[1], "built")
    }
    registers = result["launch__registers_per_thread"]
    assert (registers.before, registers.after) == (24, 32)
    assert registers.change == pytest.approx(1 / 3)
    assert "stack_bytes" not in result


def test_a_counter_that_one_side_lacks_is_zero_there() -> None:
    (result,) = ranking.between(emulated(), emulated(ptx__conflicts=3))
    assert (result.before, result.after, result.change) == (0, 3, None)


def test_evidence_that_one_side_lacks_is_no_difference(record: Record) -> None:
    bare = msgspec.structs.replace(record.baseline, build=None, emulated=None, measured=None)
    assert ranking.between(record.baseline, bare) == ()


def test_every_figure_is_a_column_of_the_csv_and_a_key_of_the_json(kx: Kx) -> None:
    assert set(metrics.METRICS) <= set(export.COLUMNS)
    arms = [
        arm
        for log in json.loads(kx("log", "--json").stdout)
        for section in ("history", "experiments")
        for entry in log[section]
        for arm in entry["arms"]
    ]
    seen = {key for arm in arms for key in arm}
    assert set(metrics.METRICS) <= seen


def test_the_figures_of_a_build_in_short_are_sums_of_the_table_s(record: Record) -> None:
    assert metrics.summarize(record.baseline) == {
        "registers": 24,
        "spill_bytes": 0,
        "stack_bytes": 0,
        "smem_bytes": 4224,
        "sass_bytes": 1408,
    }


def counted(**counters: int) -> Arm:
    """An arm whose SASS was executed beside its PTX."""
    ptx = emulated(ptx__memory_l1_wavefronts_shared=128)
    assert ptx.emulated
    sass = msgspec.structs.replace(ptx.emulated, isa="sass", counters=counters)
    return msgspec.structs.replace(ptx, emulated_sass=sass)


def test_counts_of_sass_have_ncu_s_names_and_those_of_ptx_their_own() -> None:
    arm = counted(memory_l1_wavefronts_shared=32)
    assert metrics.read("memory_l1_wavefronts_shared", arm) == 32
    assert metrics.read("ptx__memory_l1_wavefronts_shared", arm) == 128
    assert metrics.figures(arm, "emulated").keys() >= {
        "memory_l1_wavefronts_shared",
        "ptx__memory_l1_wavefronts_shared",
    }


def test_counts_of_ptx_differ_only_where_sass_was_not_counted() -> None:
    arm = counted(memory_l1_wavefronts_shared=32)
    more = emulated(ptx__memory_l1_wavefronts_shared=256)
    (difference,) = ranking.between(arm, more, "emulated")
    assert (difference.before, difference.after) == (128, 256)
    both = msgspec.structs.replace(more, emulated_sass=arm.emulated_sass)
    assert ranking.between(arm, both, "emulated") == ()


def test_counts_of_sass_that_did_wrong_are_no_figures() -> None:
    arm = counted(memory_l1_wavefronts_shared=32)
    wrong = ArrayResult(name="y", elements=4, wrong=1, worst=9.0)
    sass = msgspec.structs.replace(arm.emulated_sass, arrays=(wrong,))  # type: ignore[type-var]
    assert (
        metrics.read(
            "memory_l1_wavefronts_shared", msgspec.structs.replace(arm, emulated_sass=sass)
        )
        is None
    )


def test_what_a_profile_has_is_not_compared_with_a_count_of_the_same_name() -> None:
    name = "memory_l1_wavefronts_shared"
    one = msgspec.structs.replace(
        counted(memory_l1_wavefronts_shared=32),
        profiled=ProfiledEvidence(entry="kernel", figures={name: 4096.0}),
    )
    assert metrics.read(name, one) == 4096.0
    assert metrics.read(name, one, "emulated") == 32
    other = counted(memory_l1_wavefronts_shared=16)
    assert ranking.between(one, other, "profiled") == ()
    (both,) = ranking.between(one, other, "emulated")
    assert both.metric.name == name
    assert (both.before, both.after) == (32, 16)
