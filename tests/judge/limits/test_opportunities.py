"""Each rule on evidence of real kernels, and what is not repeated of ncu's advice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from judge_cases import (
    DEFAULTS,
    PADDED,
    PLAIN,
    build_of,
    emulated_of,
    executed_sass,
    gemm,
    merged,
    only,
    profiled,
    transpose,
    with_arm,
)

from kernelexp.facts.counters import EXECUTED
from kernelexp.judge.limits import bottleneck
from kernelexp.judge.limits import opportunities as rules
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.opportunity import Suppressed
from kernelexp.model.arm import Advice, EmulatedLine, ProfiledInstruction

EXCESS = "derived__memory_l1_wavefronts_shared_excessive"
SECTORS = "ptx__memory_l2_theoretical_sectors_global"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"


COUNTERS = {
    "ptx__l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld": 62,
    "ptx__sass__inst_executed_shared_loads": 2,
    "ptx__memory_l1_wavefronts_shared": 64,
    SECTORS: 64,
    f"{SECTORS}_ideal": 16,
}


def with_resources(case: Case, **changes: Any) -> Case:
    build = build_of(case)
    used = msgspec.structs.replace(build.resources, **changes)
    return with_arm(case, build=msgspec.structs.replace(build, resources=used))


def with_figures(case: Case, **changes: float) -> Case:
    result = case.arm.profiled
    assert result is not None
    return with_arm(
        case, profiled=msgspec.structs.replace(result, figures={**result.figures, **changes})
    )


def test_planted_bank_conflicts_are_found_with_their_line_and_their_cost() -> None:
    result = only(rules.bank_conflicts, transpose())
    assert result.issue == (
        "shared loads: 32.0-way bank conflicts, 94% of the shared-memory wavefronts (PTX), 97% of "
        "those of loads"
    )
    assert result.line == "variants/transpose/transpose.cu:59"
    # Device memory becomes as busy as the L1 data pipe was; T1 gained 55%.
    assert result.percent == pytest.approx(61.3, abs=0.1)
    assert "then device memory is next with 34.1%" in result.reckoning
    assert (result.kind, result.hidden) == ("emulated", "")


def test_without_a_time_the_longest_floor_falls() -> None:
    result = only(rules.bank_conflicts, with_arm(transpose(), measured=None))
    assert result.percent == pytest.approx(61.3, abs=0.1)
    assert "not measured" in result.reckoning


def test_padding_leaves_no_conflicts() -> None:
    assert list(rules.bank_conflicts(transpose(1))) == []


def test_profiled_conflicts_are_bounded_by_the_next_limit() -> None:
    """ncu's own estimates are 85% and 94%; L2 is at 41.3 of the 87.5% that L1's data pipe is."""
    result, _ = rules.find(profiled(transpose(), PLAIN))
    (conflicts,) = (item for item in result if item.rule == "SharedMemoryConflicts")
    assert conflicts.percent == pytest.approx(52.8, abs=0.1)
    assert "then L2 is next with 41.3%" in conflicts.reckoning
    assert conflicts.also == ("SharedMemoryConflicts 85.19%", "UncoalescedSharedAccess 93.53%")


def test_conflicts_that_no_layout_makes_are_not_repeated() -> None:
    case = profiled(transpose(), PLAIN, advice=())
    (result,) = rules.bank_conflicts(with_figures(case, **{EXCESS: 0.0}))
    assert isinstance(result, Suppressed)
    assert "another layout would save none" in result.why


def test_sectors_beyond_what_the_bytes_need_are_found_with_their_line() -> None:
    lines = (
        EmulatedLine(file="a.cu", line=3, counters={SECTORS: 10, f"{SECTORS}_ideal": 10}),
        EmulatedLine(file="a.cu", line=7, counters={SECTORS: 64, f"{SECTORS}_ideal": 16}),
    )
    case = transpose(counters={SECTORS: 74, f"{SECTORS}_ideal": 26})
    emulated = msgspec.structs.replace(emulated_of(case), lines=lines)
    result = only(rules.uncoalesced, with_arm(case, emulated=emulated))
    assert result.issue.startswith("65% of the sectors")
    assert (result.line, result.percent) == ("a.cu:7", None)


def test_conflicts_of_loads_that_ptxas_merges_have_no_estimate() -> None:
    result = only(rules.bank_conflicts, merged(transpose()))
    assert result.percent is None
    assert "SASS accesses shared memory in other widths" in result.reckoning


def test_what_is_emulated_is_named_as_counted_on_ptx() -> None:
    for rule in (rules.bank_conflicts, rules.uncoalesced):
        result = only(rule, transpose(counters=COUNTERS))
        assert result.figures
        assert all(name.startswith("ptx__") for name in result.figures)
        assert "(PTX)" in result.issue


def test_whole_sectors_are_no_opportunity() -> None:
    assert list(rules.uncoalesced(transpose())) == []


def test_stores_of_several_widths_are_not_repeated_as_uncoalesced() -> None:
    stores = {"ptx__sass__inst_executed_global_stores": 10, SECTORS: 128, f"{SECTORS}_ideal": 128}
    line = EmulatedLine(file="a.cu", line=3, counters=stores)
    case = transpose(
        counters={
            "ptx__l1tex__t_sectors_pipe_lsu_mem_global_op_st": 128,
            "ptx__l1tex__t_requests_pipe_lsu_mem_global_op_st": 10,
        }
    )
    emulated = msgspec.structs.replace(emulated_of(case), lines=(line,))
    (result,) = rules.mixed_stores(with_arm(case, emulated=emulated))
    assert isinstance(result, Suppressed)
    assert result.why.startswith("12.80 sectors per request are an average")
    assert list(rules.mixed_stores(transpose())) == []


def test_few_active_threads_are_found() -> None:
    """Of the full problem: the emulated size may have other tails."""
    counters = {"ptx__inst_executed": 100, "ptx__thread_inst_executed": 1600}
    result = only(rules.divergence, transpose(counters=counters))
    assert result.issue == "16.0 of 32 threads per warp are active on average"
    untimed = only(rules.divergence, with_arm(transpose(counters=counters), measured=None))
    assert untimed.percent is not None
    assert list(rules.divergence(profiled(gemm(), DEFAULTS))) == []  # 28.3 of 32


def test_a_products_flops_without_tensor_instructions_are_found() -> None:
    case = transpose(flops=64 * (8 << 27))
    result = only(rules.no_tensor_cores, case)
    assert result.issue == "64 FLOPs per byte that must move, and no tensor instruction"
    assert list(rules.no_tensor_cores(transpose())) == []
    assert list(rules.no_tensor_cores(gemm())) == []


def test_spills_are_found() -> None:
    result = only(rules.spills, with_resources(gemm(), spill_store_bytes=20, spill_load_bytes=40))
    assert result.issue.startswith("20 B of spill stores and 40 B of spill loads")
    assert list(rules.spills(gemm())) == []


def test_spills_that_are_executed_have_an_estimate() -> None:
    counters = {"smsp__inst_executed": 10**8, "sass__inst_executed_local_loads": 2 * 10**7}
    spilling = with_resources(gemm(counters=counters), spill_store_bytes=20, spill_load_bytes=40)
    result = only(rules.spills, spilling)
    assert result.kind == "emulated"
    assert result.percent is not None
    assert result.percent > 0
    assert "20,000,000 accesses of local memory are executed" in result.reckoning


def test_no_access_has_more_ways_than_banks() -> None:
    """ncu's conflicts have arbitration in them: 32.2 to a request."""
    requests = {"sass__inst_executed_shared_loads": 4_194_304.0}
    result = only(rules.bank_conflicts, with_figures(profiled(transpose(), PLAIN), **requests))
    assert result.issue.startswith("shared loads: 32.0-way bank conflicts")


def test_of_wide_loads_no_ways_are_told() -> None:
    """16 bytes of 32 lanes take four wavefronts without a conflict."""
    counters = {
        "smsp__inst_executed": 100, f"{CONFLICTS}ld": 40, "memory_l1_wavefronts_shared": 80,
        "sass__inst_executed_shared_loads": 10,
    }  # fmt: skip
    sass = executed_sass(opcodes_with_modifiers={"LDS.128": 10})
    case = with_arm(transpose(counters=counters), emulated_sass=sass)
    result = only(rules.bank_conflicts, case)
    assert result.issue == "shared loads: bank conflicts, 50% of the shared-memory wavefronts"


def test_atomics_that_meet_in_banks_are_found() -> None:
    counters = {
        "smsp__inst_executed": 100, "memory_l1_wavefronts_shared": 42,
        "memory_l1_wavefronts_shared_ideal": 29,
    }  # fmt: skip
    sass = executed_sass(opcodes={"ATOMS": 6})
    case = with_arm(transpose(counters=counters), emulated_sass=sass)
    assert only(rules.shared_atomics, case).issue == (
        "shared atomics: lanes that meet in a bank take 31% of the shared-memory wavefronts"
    )
    assert list(rules.shared_atomics(transpose())) == []


def test_global_atomics_are_named_where_no_limit_covers_them() -> None:
    """As many as loads: how many meet at an address is not counted."""
    case = transpose()
    counters = {
        EXECUTED["sass"]: 8 << 20,
        "sass__inst_executed_atomic": 1 << 20,
        "sass__inst_executed_global_loads": 1 << 20,
        "sass__inst_executed_global_stores": 0,
    }
    assert case.arm.build is not None
    build = msgspec.structs.replace(case.arm.build, opcodes={"REDG": 1, "LDG": 1})
    case = with_arm(msgspec.structs.replace(case, counters=counters), build=build, measured=None)
    result = only(rules.global_atomics, case)
    assert result.issue.startswith("global atomics: 50% of the instructions")
    sentence = "Its global atomics may take longer: those to one address wait for each other."
    assert sentence in bottleneck.conclude(case, (), gains=[result])


def test_opportunities_are_ranked_by_their_estimates() -> None:
    result, _ = rules.find(profiled(transpose(), PLAIN))
    estimates = [item.percent for item in result]
    known = [estimate for estimate in estimates if estimate is not None]
    assert known == sorted(known, reverse=True)
    assert estimates[: len(known)] == known
    assert result[0].rule == "SharedMemoryConflicts"
    assert result[0].line == "variants/transpose/transpose.cu:59"


def test_one_cause_is_listed_once() -> None:
    result, _ = rules.find(profiled(transpose(), PLAIN))
    assert [item.rule for item in result] == ["SharedMemoryConflicts"]


def test_an_estimate_of_ncus_is_bounded_by_the_nearest_limit() -> None:
    advice = Advice(
        section="S", rule="Other", kind="OPT", sentence="Do it.", speedup_percent=50.0,
        scope="global",
    )  # fmt: skip
    result, _ = rules.find(profiled(transpose(), PLAIN, advice=(advice,)))
    (bounded,) = (item for item in result if item.rule == "Other")
    assert bounded.percent == pytest.approx(100 - 87.5, abs=0.1)
    assert "bounded by L1 data pipe" in bounded.reckoning


def test_a_local_estimate_is_none_of_the_launch() -> None:
    advice = Advice(
        section="S", rule="Other", kind="OPT", sentence="Do it.", speedup_percent=84.76,
        scope="local",
    )  # fmt: skip
    result, _ = rules.find(profiled(transpose(1), PADDED, advice=(advice,)))
    (local,) = (item for item in result if item.rule == "Other")
    assert local.percent is None
    assert local.reckoning == "ncu's estimate, local: 84.76% of the part that the rule is about"


def test_waiting_warps_and_busy_pipes_are_no_causes_of_their_own() -> None:
    for case in (profiled(gemm(), DEFAULTS), profiled(transpose(), PLAIN)):
        result, suppressed = rules.find(case)
        names = ", ".join(item.rule for item in suppressed)
        assert all(rule in names for rule in ("CPIStall", "IssueSlotUtilization"))
        assert all(item.rule not in ("CPIStall", "HighPipeUtilization") for item in result)
        assert "optional metric" not in " ".join(item.issue for item in result)


def test_scattered_stores_have_an_estimate() -> None:
    """16 bytes to each of 32 rows: half of each sector, an eighth of each line."""
    counters = {
        SECTORS: 32 << 20, f"{SECTORS}_ideal": 16 << 20,
        "ptx__memory_l1_tag_requests_global": 32 << 20,
        "ptx__sass__inst_executed_global_stores": 1 << 20,
    }  # fmt: skip
    result = only(rules.uncoalesced, transpose(counters=counters))
    assert result.issue.startswith("50% of the sectors")
    assert "the lines that they touch are filled to 12%" in result.issue
    assert result.percent is not None
    assert "L1 tag stage" in result.reckoning


def test_an_estimate_by_lines_names_the_source_line_that_touches_most_of_them() -> None:
    """Line 7 has more sectors in excess, line 3 touches more lines."""
    tags = "ptx__memory_l1_tag_requests_global"
    rows = (
        EmulatedLine(file="a.cu", line=3, counters={SECTORS: 40, f"{SECTORS}_ideal": 30, tags: 40}),
        EmulatedLine(file="a.cu", line=7, counters={SECTORS: 64, f"{SECTORS}_ideal": 16, tags: 16}),
    )
    counters = {
        SECTORS: 104 << 18, f"{SECTORS}_ideal": 46 << 18, tags: 56 << 18,
        "ptx__sass__inst_executed_global_loads": 1 << 20,
    }  # fmt: skip
    case = transpose(counters=counters)
    emulated = msgspec.structs.replace(emulated_of(case), lines=rows)
    result = only(rules.uncoalesced, with_arm(case, emulated=emulated))
    assert "L1 tag stage" in result.reckoning
    assert result.line == "a.cu:3"


def test_without_a_time_scattered_accesses_are_reckoned_from_the_longest_floor() -> None:
    """A warp whose lanes load from 32 lines 4 bytes each: next is device memory."""
    counters = {
        SECTORS: 32 << 20, f"{SECTORS}_ideal": 4 << 20,
        "ptx__memory_l1_tag_requests_global": 32 << 20,
        "ptx__sass__inst_executed_global_loads": 1 << 20,
    }  # fmt: skip
    case = transpose(counters=counters, bytes=128 << 20)
    result = only(rules.uncoalesced, with_arm(case, measured=None))
    assert result.percent == pytest.approx(78.2, abs=0.1)
    assert "not measured); then device memory is next" in result.reckoning


def test_counts_that_cannot_be_scaled_give_ratios_and_say_what_tiles_would_add() -> None:
    result = only(rules.bank_conflicts, transpose(ratios_of="emulated", tiles=0))
    assert result.issue.startswith("shared loads: 32.0-way bank conflicts, 94%")
    assert result.percent is None
    assert "tiles() in problem.py would give" in result.reckoning


def test_memory_that_cannot_be_compressed_is_not_repeated() -> None:
    _, suppressed = rules.find(profiled(transpose(1), PADDED))
    assert "MemoryL2Compression" in {item.rule for item in suppressed}


@pytest.mark.parametrize(("excess", "is_false"), [(0.0, True), (1000.0, False)])
def test_uncoalesced_stores_are_not_repeated_where_no_sector_is_in_excess(
    excess: float, is_false: bool
) -> None:
    advice = Advice(
        section="SourceCounters",
        rule="UncoalescedGlobalAccess",
        kind="OPT",
        sentence="This kernel has uncoalesced global stores.",
        speedup_percent=32.93,
        scope="global",
    )
    store = ProfiledInstruction(
        offset=16,
        sass="STG.E.64 desc[UR4][R2.64], R4",
        file="a.cu",
        line=9,
        figures={"L2 Theoretical Sectors Global Excessive": excess},
    )
    case = profiled(transpose(), PLAIN, advice=(advice,), instructions=(store,))
    total = {"derived__memory_l2_theoretical_sectors_global_excessive": 44_556_288.0}
    result, suppressed = rules.find(with_figures(case, **total))
    names = {item.rule for item in suppressed}
    assert ("UncoalescedGlobalAccess" in names) == is_false
    assert any(item.line == "a.cu:9" for item in result) != is_false


def test_profiled_conflicts_are_not_the_layouts_where_the_emulator_counts_none() -> None:
    case = profiled(transpose(1), PADDED, advice=())
    name = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"
    result = {f"{name}.sum": 5_370_403.0}
    assert case.arm.profiled is not None
    kept = {key: value for key, value in case.arm.profiled.figures.items() if key != EXCESS}
    evidence = msgspec.structs.replace(case.arm.profiled, figures={**kept, **result})
    (suppressed,) = rules.bank_conflicts(with_arm(case, profiled=evidence))
    assert isinstance(suppressed, Suppressed)
    assert "(ptx__memory_l1_wavefronts_shared equals its ideal, emulated)" in suppressed.why


def test_a_conclusion_begins_with_the_largest_cause() -> None:
    gains, _ = rules.find(transpose())
    assert bottleneck.conclude(transpose(), (), gains=gains).startswith(
        "Largest cost: 32.0-way bank conflicts of shared loads at transpose.cu:59, about 61.3% of "
        "the time."
    )
    small = [msgspec.structs.replace(gain, percent=9.0) for gain in gains]
    assert "Largest cost" not in bottleneck.conclude(transpose(), (), gains=small)


def test_a_cause_comes_after_the_grid_that_leaves_sms_idle() -> None:
    case = transpose(ctas=64)
    sentence = bottleneck.conclude(case, (), gains=rules.find(case)[0])
    assert sentence.startswith("The grid comes first")
    assert "Then: 32.0-way bank conflicts" in sentence


ISSUED = {"smsp__inst_executed": 16 * 10**8, "smsp__thread_inst_executed": 32 * 16 * 10**8}


def test_instructions_are_the_cause_where_they_take_longer_than_the_bytes() -> None:
    line = EmulatedLine(file="a/b.cu", line=7, counters={"smsp__inst_executed": 60})
    counted = executed_sass(counters={"smsp__inst_executed": 100}, lines=(line,))
    case = with_arm(transpose(counters=ISSUED), emulated_sass=counted, measured=None)
    result = only(rules.instructions, case)
    assert result.percent == pytest.approx(100 * (1 - 1 / 6.85), abs=0.2)
    assert result.cause == (
        "instructions, which take 6.8 times as long to issue as the useful work needs (60% at "
        "b.cu:7)"
    )
    few = {name: count // 10 for name, count in ISSUED.items()}
    assert list(rules.instructions(transpose(counters=few))) == []


def test_instructions_that_useful_flops_need_are_no_cause() -> None:
    flops = 64 * ISSUED["smsp__inst_executed"]  # an FMA of 32 lanes is 64
    assert list(rules.instructions(transpose(counters=ISSUED, flops=flops))) == []


def test_divergence_is_the_cause_of_the_instructions_that_it_repeats() -> None:
    counters = {**ISSUED, "smsp__thread_inst_executed": 8 * ISSUED["smsp__inst_executed"]}
    case = with_arm(transpose(counters=counters), measured=None)
    assert list(rules.instructions(case)) == []
    assert only(rules.divergence, case).cause == "divergence (8.0 of 32 threads active)"


def test_spills_beyond_l1_are_bounded_by_device_memory() -> None:
    counters = {"smsp__inst_executed": 10**8, "sass__inst_executed_local_loads": 2 * 10**7}
    case = with_resources(gemm(counters=counters), spill_store_bytes=2000, spill_load_bytes=2000)
    result = only(rules.spills, case)
    assert "more than its L1 holds: 2.56 GB, 1.2 times the bytes that must move" in result.reckoning
    assert result.percent is not None
    assert result.percent < 100
