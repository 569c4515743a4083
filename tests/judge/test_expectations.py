"""Expectations judged by real records: met, missed by how much, or which command would tell."""

from __future__ import annotations

import msgspec
import pytest
from judge_cases import as_written
from support import ROOT

from kernelexp import project
from kernelexp.dossier import standing
from kernelexp.dossier.standing import judged_expectations, written_later
from kernelexp.dossier.tree import Tree
from kernelexp.judge import expectations
from kernelexp.judge.expectations import InstructionCounts, Judged, instruction_expectations, judge
from kernelexp.model.arm import Arm, EmulatedEvidence, ProfiledEvidence
from kernelexp.model.measurement import ArrayResult
from kernelexp.model.record import SizeResult

T1 = "logs/runs/T1/20261121T000003Z-045af7a9.measured.json"
H1 = "logs/runs/H1/20261121T015301Z-85251654.measured.json"
F3 = "logs/runs/F3/published.json"
WAVEFRONTS = "memory_l1_wavefronts_shared"


def one(path: str, name: str, text: str) -> Judged:
    record = as_written(path)
    arms = record.baseline, record.candidates[0].arm
    (judged,) = judge({name: text}, *arms, record.margin, record.experiment)
    return judged


def test_a_time_is_met_by_the_verdicts_own_change() -> None:
    judged = one(T1, "time_ms", "-55.1%")
    assert judged.result == "met"
    assert judged.change == pytest.approx(
        -0.5511, abs=1e-4
    )  # of the arms' own medians it is -0.5510
    assert (judged.before, judged.after, judged.kind) == (0.655936, 0.294476, "measured")


def test_what_is_expected_of_the_time_is_judged_at_every_size() -> None:
    record = as_written(T1)
    timed = record.candidates[0].arm.measured
    assert timed
    assert timed.effect
    own = timed.effect
    slower = msgspec.structs.replace(own, ratio=1.2)
    sizes = tuple(
        SizeResult(
            run="", size=size, parameters={}, weight=1.0, baseline_us=9.0, effects=(effect,),
            verdicts={},
        )
        for size, effect in (("small", slower), ("full", own))
    )  # fmt: skip
    record = msgspec.structs.replace(record, expect=({"time_ms": "< 0%"},), sizes=sizes)
    ((judged,),) = expectations.of_record(record).values()
    assert (judged.result, judged.sentence) == (
        "missed",
        "at small of 2 sizes: by 20.00 percentage points",
    )
    alike = tuple(msgspec.structs.replace(size, effects=(own,)) for size in sizes)
    ((judged,),) = expectations.of_record(msgspec.structs.replace(record, sizes=alike)).values()
    assert (judged.result, judged.sentence) == ("met", "at each of 2 sizes")


def test_a_missed_change_says_by_how_much() -> None:
    judged = one(H1, "time_ms", "~+8%")
    assert (judged.result, judged.sentence) == (
        "missed",
        "by 2.05 percentage points: ~+8% allows +6% to +10%",
    )


def test_a_missed_value_says_by_how_much_in_its_unit() -> None:
    judged = one(T1, "launch__shared_mem_per_block_static", "< 4096")
    assert (judged.result, judged.sentence) == ("missed", "by 128 B")


def test_an_excluded_end_that_is_hit_is_missed() -> None:
    judged = one(T1, "launch__shared_mem_per_block_static", "< 4224")
    assert (judged.result, judged.sentence) == ("missed", "it hits what is excluded")


def test_a_counter_that_was_left_out_as_zero_is_zero() -> None:
    name = "ptx__l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st"
    array = ArrayResult(name="y", elements=1, wrong=0, worst=0.0)
    counted = EmulatedEvidence(size="any", arrays=(array,), counters={"ptx__inst_executed": 1})
    expected = {name: "== 0", "ptx__memory_no_such_counter": "== 0"}
    zero, unknown = judge(expected, Arm(emulated=counted), Arm(emulated=counted), 0.01, "X1")
    assert (zero.result, unknown.result) == ("met", "not measured")


def test_a_counter_that_an_early_emulator_did_not_have_is_not_zero() -> None:
    assert one(T1, "ptx__inst_executed", "unchanged").result == "not measured"
    assert one(T1, "ptx__inst_executed", "== 0").result == "not measured"


def test_unchanged_is_exact_for_counts_and_within_the_margin_for_times() -> None:
    assert one(T1, "launch__registers_per_thread", "unchanged").result == "met"
    assert one(T1, "ptx__smsp__inst_executed", "unchanged").result == "missed"
    record = as_written(T1)
    arms = record.baseline, record.baseline
    (same,) = judge({"time_ms": "unchanged"}, *arms, 0.01, "T1")
    assert same.result == "met"
    (slower,) = judge({"time_ms": "unchanged"}, *reversed(record.arms), 0.01, "T1")
    assert slower.result == "missed"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("time_ms", "kernelexp run F3, on a machine with one B200"),
        ("launch__registers_per_thread", "kernelexp run F3"),
        ("ptx__memory_l1_wavefronts_shared", "kernelexp run F3"),
        ("memory_l1_wavefronts_shared", "kernelexp run F3"),
        (
            "sm__throughput.avg.pct_of_peak_sustained_elapsed",
            "kernelexp profile F3, on a machine with one B200",
        ),
    ],
)
def test_what_is_not_measured_names_the_command_that_supplies_it(name: str, command: str) -> None:
    judged = one(F3, name, "< 1")
    assert judged.result == "not measured"
    assert judged.sentence == f"the candidate has no such figure: {command}"


def test_a_name_of_ncus_is_never_judged_by_what_an_emulation_counted_on_ptx() -> None:
    counted, profiled = one(T1, f"ptx__{WAVEFRONTS}", "~-94%"), one(T1, WAVEFRONTS, "~-94%")
    assert (counted.result, counted.kind) == ("met", "emulated")
    assert (profiled.result, profiled.kind, profiled.before) == ("not measured", "profiled", None)
    assert profiled.sentence.endswith(f". The emulation's count, of PTX, is ptx__{WAVEFRONTS}")


def test_a_profile_decides_what_was_expected_under_ncus_name() -> None:
    before, after = (
        Arm(profiled=ProfiledEvidence(entry="scale", figures={WAVEFRONTS: count}))
        for count in (100.0, 60.0)
    )
    (judged,) = judge({WAVEFRONTS: "-30%"}, before, after, 0.01, "X1")
    assert (judged.result, judged.kind) == ("met", "profiled")


def test_published_figures_are_judged_under_their_own_name_only() -> None:
    assert one(F3, "published_time_ms", "+3%").result == "met"
    assert one(F3, "time_ms", "+3%").result == "not measured"


def test_a_share_of_nothing_is_not_judged() -> None:
    judged = one(T1, "spill_store_bytes", "-10%")
    assert judged.result == "not measured"
    assert "expect a difference instead" in judged.sentence


def test_words_can_only_be_unchanged() -> None:
    assert one(T1, "occupancy_limit", "unchanged").result == "met"
    assert one(T1, "occupancy_limit", "== 0").result == "not measured"


def test_counters_of_another_emulator_do_not_compare() -> None:
    record = as_written(T1)
    evidence = record.baseline.emulated
    assert evidence is not None
    other = msgspec.structs.replace(evidence, emulator="another")
    before = msgspec.structs.replace(record.baseline, emulated=other)
    after = record.candidates[0].arm
    change, value = judge(
        {f"ptx__{WAVEFRONTS}": "-90%", f"ptx__{WAVEFRONTS}_ideal": "> 0"},
        before, after, 0.01, "T1",
    )  # fmt: skip
    assert change.result == "not measured"
    assert value.result == "met"


def test_a_record_judges_what_it_expected_when_it_ran() -> None:
    record = as_written(T1)
    assert expectations.of_record(record) == {}
    kept = msgspec.structs.replace(record, expect=({"time_ms": "-30%"},))
    (judged,) = expectations.of_record(kept)["candidate"]
    assert judged.result == "met"


def test_this_repositorys_expectations_come_out_as_their_texts_say() -> None:
    loaded = project.load(ROOT)
    tree = Tree(ROOT)

    def results(name: str) -> list[str]:
        standings = standing.of_experiment(loaded, name, tree)
        assert written_later(standings) == (name in ("H2", "S5"))
        values = judged_expectations(name, standings).values()
        return [item.result for judged in values for item in judged]

    assert results("T1") == ["met", "met"]
    assert results("T2") == ["met"]
    assert results("H1") == ["missed"]
    assert results("H2") == ["met", "missed"]
    assert results("S5") == ["met"]


def test_an_arm_of_which_nothing_is_known_meets_nothing() -> None:
    (judged,) = judge({"time_ms": "-30%"}, Arm(arch="sm_90a"), Arm(arch="sm_90a"), 0.01, "X1")
    assert (judged.result, judged.change) == ("not measured", None)


BEFORE = InstructionCounts(
    every={"BAR.SYNC.DEFER_BLOCKING": 6, "LDG.E": 8}, in_loops={"BAR.SYNC.DEFER_BLOCKING": 5}
)
AFTER = InstructionCounts(
    every={"BAR.SYNC.DEFER_BLOCKING": 3, "LDG.E.128": 2}, in_loops={"BAR.SYNC.DEFER_BLOCKING": 2}
)


def results(*texts: str, before: InstructionCounts | None = None) -> list[tuple[str, int, str]]:
    judged = instruction_expectations(AFTER, texts, before)
    assert [item.condition for item in judged] == list(texts)
    return [(item.result, item.actual, item.sentence) for item in judged]


def test_a_number_is_met_or_missed_by_so_many() -> None:
    assert results("LDG.128 >= 1", "BAR.SYNC <= 2", "STL == 0", "LDG != 2") == [
        ("met", 2, ""),
        ("missed", 3, "by 1"),
        ("met", 0, ""),
        ("missed", 2, "it hits what is excluded"),
    ]


def test_in_loops_counts_only_those() -> None:
    assert results("BAR.SYNC in loops <= 2", "BAR.SYNC in loops == 3") == [
        ("met", 2, ""),
        ("missed", 2, "by 1"),
    ]


def test_a_change_is_from_the_baseline() -> None:
    assert results(
        "BAR.SYNC in loops -60%", "BAR.SYNC -60%", "LDG -6", "BAR unchanged", before=BEFORE
    ) == [
        ("met", 2, ""),
        ("missed", 3, "by 10.00 percentage points"),
        ("met", 2, ""),
        ("missed", 3, "by 3"),
    ]


def test_there_is_no_percentage_of_nothing() -> None:
    ((result, _, sentence),) = results("LDG.128 +10%", before=BEFORE)
    assert result == "missed"
    assert "of which there is no percentage" in sentence


def test_a_change_without_a_baseline_is_refused() -> None:
    with pytest.raises(ValueError, match="name a baseline before it"):
        results("LDG -50%")
