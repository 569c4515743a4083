"""Each rule on evidence of real kernels, and what is not repeated of ncu's advice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from judge_cases import (
    DEFAULTS,
    PADDED,
    PLAIN,
    TILES,
    build_of,
    emulated_of,
    gemm,
    merged,
    profile,
    profiled,
    transpose,
    with_arm,
)

from kernelexp.judge import opportunities as rules
from kernelexp.judge.case import Case
from kernelexp.judge.opportunity import Opportunity, Suppressed
from kernelexp.model.arm import Advice, EmulatedLine, ProfiledInstruction

EXCESS = "derived__memory_l1_wavefronts_shared_excessive"
SECTORS = "ptx__memory_l2_theoretical_sectors_global"


COUNTERS = {
    "ptx__l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld": 62,
    "ptx__sass__inst_executed_shared_loads": 2,
    "ptx__memory_l1_wavefronts_shared": 64,
    SECTORS: 64,
    f"{SECTORS}_ideal": 16,
}


def only(rule: rules.Rule, case: Case) -> Opportunity:
    (found,) = rule(case)
    assert isinstance(found, Opportunity)
    return found


def with_resources(case: Case, **changes: Any) -> Case:
    build = build_of(case)
    used = msgspec.structs.replace(build.resources, **changes)
    return with_arm(case, build=msgspec.structs.replace(build, resources=used))


def with_figures(case: Case, **changes: float) -> Case:
    found = case.arm.profiled
    assert found is not None
    return with_arm(
        case, profiled=msgspec.structs.replace(found, figures={**found.figures, **changes})
    )


def test_planted_bank_conflicts_are_found_with_their_line_and_their_cost() -> None:
    found = only(rules.bank_conflicts, transpose())
    assert found.issue == (
        "shared loads: 32.0-way bank conflicts, 94% of the shared-memory wavefronts (PTX)"
    )
    assert found.line == "variants/transpose/transpose.cu:59"
    # What the shared memory no longer takes, down to what device memory needs; T1 gained 55%.
    assert found.percent == pytest.approx(65.9, abs=0.1)
    assert "device memory needs 0.2237 ms" in found.reckoning
    assert (found.kind, found.hidden) == ("emulated", "")


def test_without_a_time_the_longest_floor_falls() -> None:
    found = only(rules.bank_conflicts, with_arm(transpose(), measured=None))
    assert found.percent == pytest.approx(57.8, abs=0.1)
    assert "not measured" in found.reckoning


def test_padding_leaves_no_conflicts() -> None:
    assert list(rules.bank_conflicts(transpose(1))) == []


def test_profiled_conflicts_are_reckoned_as_ncu_does() -> None:
    (ncu,) = (each for each in profile(PLAIN).advice if each.rule == "SharedMemoryConflicts")
    found = only(rules.bank_conflicts, profiled(transpose(), PLAIN, advice=()))
    assert found.kind == "profiled"
    # ncu takes its share of the loads' wavefronts alone.
    assert found.percent == pytest.approx(ncu.speedup_percent, abs=4)


def test_conflicts_that_no_layout_makes_are_not_repeated() -> None:
    case = profiled(transpose(), PLAIN, advice=())
    (found,) = rules.bank_conflicts(with_figures(case, **{EXCESS: 0.0}))
    assert isinstance(found, Suppressed)
    assert "another layout would save none" in found.why


def test_sectors_beyond_what_the_bytes_need_are_found_with_their_line() -> None:
    lines = (
        EmulatedLine(file="a.cu", line=3, counters={SECTORS: 10, f"{SECTORS}_ideal": 10}),
        EmulatedLine(file="a.cu", line=7, counters={SECTORS: 64, f"{SECTORS}_ideal": 16}),
    )
    case = transpose(counters={SECTORS: 74, f"{SECTORS}_ideal": 26})
    emulated = msgspec.structs.replace(emulated_of(case), lines=lines)
    found = only(rules.uncoalesced, with_arm(case, emulated=emulated))
    assert found.issue.startswith("65% of the sectors")
    assert (found.line, found.percent) == ("a.cu:7", None)


def test_conflicts_of_loads_that_ptxas_merges_have_no_estimate() -> None:
    found = only(rules.bank_conflicts, merged(transpose()))
    assert found.percent is None
    assert "SASS accesses shared memory in other widths" in found.reckoning


def test_what_is_emulated_is_named_as_counted_on_ptx() -> None:
    for rule in (rules.bank_conflicts, rules.uncoalesced):
        found = only(rule, transpose(counters=COUNTERS))
        assert found.figures
        assert all(name.startswith("ptx__") for name in found.figures)
        assert "(PTX)" in found.issue


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
    (found,) = rules.mixed_stores(with_arm(case, emulated=emulated))
    assert isinstance(found, Suppressed)
    assert found.why.startswith("12.80 sectors per request are an average")
    assert list(rules.mixed_stores(transpose())) == []


def test_occupancy_names_its_limiter_and_is_bounded_by_the_nearest_limit() -> None:
    found = only(rules.occupancy, gemm())
    assert found.issue == (
        "12 of 64 warps per SM, limited by registers and shared memory: 168 registers per thread, "
        "229,496 B of shared memory, 384 threads"
    )
    assert found.percent == pytest.approx(100 - 70.2, abs=0.1)  # of the tensor cores' 70.2%
    assert found.hidden
    assert list(rules.occupancy(transpose())) == []


def test_a_profiled_occupancy_is_estimated_as_ncu_does() -> None:
    (ncu,) = (each for each in profile(DEFAULTS).advice if each.rule == "TheoreticalOccupancy")
    found = only(rules.occupancy, profiled(gemm(), DEFAULTS))
    assert found.percent == pytest.approx(ncu.speedup_percent, abs=0.01)


def test_a_grid_that_leaves_sms_idle_is_found() -> None:
    found = only(rules.grid, transpose(ctas=66))
    assert found.issue == "66 CTAs leave 66 of 132 SMs without work"
    assert found.percent == pytest.approx(50)


def test_a_last_wave_that_is_not_full_is_found_where_it_matters() -> None:
    found = only(rules.grid, transpose(ctas=132 * 8 + 1))
    assert found.issue.startswith("1.00 waves of 1056 CTAs")
    assert found.percent == pytest.approx(50, abs=0.1)
    assert list(rules.grid(transpose(ctas=TILES))) == []  # 124.12 waves: 0.7%
    assert list(rules.grid(gemm(ctas=132))) == []  # persistent: one wave


def test_few_active_threads_are_found() -> None:
    case = transpose()
    counters = {"ptx__inst_executed": 100, "ptx__thread_inst_executed": 1600}
    emulated = msgspec.structs.replace(emulated_of(case), counters=counters)
    found = only(rules.divergence, with_arm(case, emulated=emulated))
    assert found.issue == "16.0 of 32 threads per warp are active on average"
    assert list(rules.divergence(profiled(gemm(), DEFAULTS))) == []  # 28.3 of 32


def test_barriers_matter_with_one_cta_per_sm() -> None:
    found = only(rules.barriers, gemm(counters={"ptx__inst_executed_barrier": 58_016 * 24}))
    assert found.issue.startswith("2 CTA barriers per tile and warp with one CTA per SM")
    assert found.percent is None
    assert list(rules.barriers(transpose(counters={"ptx__inst_executed_barrier": 48}))) == []


def test_a_products_flops_without_tensor_instructions_are_found() -> None:
    case = transpose(flops=64 * (8 << 27))
    found = only(rules.no_tensor_cores, case)
    assert found.issue == "64 FLOPs per byte that must move, and no tensor instruction"
    assert list(rules.no_tensor_cores(transpose())) == []
    assert list(rules.no_tensor_cores(gemm())) == []


def test_spills_are_found() -> None:
    found = only(rules.spills, with_resources(gemm(), spill_store_bytes=20, spill_load_bytes=40))
    assert found.issue.startswith("20 B of spill stores and 40 B of spill loads")
    assert list(rules.spills(gemm())) == []


def test_opportunities_are_ranked_by_their_estimates() -> None:
    found, _ = rules.find(profiled(transpose(), PLAIN))
    estimates = [each.percent for each in found]
    known = [each for each in estimates if each is not None]
    assert known == sorted(known, reverse=True)
    assert estimates[: len(known)] == known
    assert found[0].rule == "UncoalescedSharedAccess"
    assert found[0].line == "variants/transpose/transpose.cu:59"


def test_where_ncu_advised_its_rules_are_not_applied_twice() -> None:
    found, _ = rules.find(profiled(gemm(), DEFAULTS))
    names = [each.rule for each in found]
    assert names.count("TheoreticalOccupancy") == 1
    assert next(each for each in found if each.rule == "TheoreticalOccupancy").kind == "profiled"


def test_a_local_estimate_is_none_of_the_launch() -> None:
    found, _ = rules.find(profiled(transpose(1), PADDED))
    (local,) = (each for each in found if each.rule == "HighPipeUtilization")
    assert local.percent is None
    assert local.reckoning == "ncu's estimate, local: 84.76% of the part that the rule is about"


def test_stalls_of_all_warps_alike_are_not_repeated_of_warps_with_roles() -> None:
    _, suppressed = rules.find(profiled(gemm(), DEFAULTS))
    assert {"CPIStall", "IssueSlotUtilization"} <= {each.rule for each in suppressed}
    found, suppressed = rules.find(profiled(transpose(), PLAIN))
    assert "CPIStall" in {each.rule for each in found}
    assert "CPIStall" not in {each.rule for each in suppressed}


def test_memory_that_cannot_be_compressed_is_not_repeated() -> None:
    _, suppressed = rules.find(profiled(transpose(1), PADDED))
    assert "MemoryL2Compression" in {each.rule for each in suppressed}


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
    found, suppressed = rules.find(with_figures(case, **total))
    names = {each.rule for each in suppressed}
    assert ("UncoalescedGlobalAccess" in names) == is_false
    assert any(each.line == "a.cu:9" for each in found) != is_false


def test_profiled_conflicts_are_not_the_layouts_where_the_emulator_counts_none() -> None:
    case = profiled(transpose(1), PADDED, advice=())
    name = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"
    found = {f"{name}.sum": 5_370_403.0}
    assert case.arm.profiled is not None
    kept = {key: value for key, value in case.arm.profiled.figures.items() if key != EXCESS}
    evidence = msgspec.structs.replace(case.arm.profiled, figures={**kept, **found})
    (suppressed,) = rules.bank_conflicts(with_arm(case, profiled=evidence))
    assert isinstance(suppressed, Suppressed)
    assert "(ptx__memory_l1_wavefronts_shared equals its ideal, emulated)" in suppressed.why
