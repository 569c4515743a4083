"""What was changed between two arms, and what likely made the time."""

from __future__ import annotations

import msgspec
import pytest
from judge_cases import PADDED, PLAIN, arm, executed_sass, gemm, profiled, transpose, with_arm

from kernelexp.judge import causes, likely
from kernelexp.judge.causes import CausedDifference
from kernelexp.judge.explanation import moved, questions, relieved
from kernelexp.judge.limits import bounds
from kernelexp.judge.limits.bounds import Use
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.changed import Cause, ChangedFigure

NOTHING = CausedDifference(causes=(), waits=(), of="the baseline's time", small=0)
H1 = "logs/runs/H1/20261121T015301Z-85251654.measured.json"


def at(case: Case, **axes: int | str) -> Case:
    return with_arm(case, axes={**case.arm.axes, **axes})


def used(**percent: float) -> tuple[Use, ...]:
    return tuple(
        Use(resource=name.replace("_", " "), percent=value, time_ms=1.0, kind="emulated")  # type: ignore[arg-type]
        for name, value in percent.items()
    )


def concluded(uses: tuple[tuple[Use, ...], tuple[Use, ...]], slower: float | None) -> str:
    before = at(gemm(), stages=6)
    after = msgspec.structs.replace(at(gemm(), stages=4), axes={"stages": "K-blocks in flight"})
    return likely.conclude(before, after, uses, NOTHING, slower)


def test_the_axis_that_changed_is_named_with_what_it_chooses() -> None:
    words = concluded((used(L1_data_pipe=50.0), used(L1_data_pipe=50.0)), None)
    assert words == "What changed: stages 6 → 4 (K-blocks in flight)."


def test_the_work_of_a_busy_unit_that_went_with_the_time_is_the_likely_cause() -> None:
    """Stores by the warps: the tensor cores are busiest, but the L1's data pipe has more to do."""
    words = concluded(
        (
            used(tensor_cores=75.1, L1_data_pipe=57.5, ALU_pipe=9.9),
            used(tensor_cores=70.8, L1_data_pipe=66.1, ALU_pipe=11.9),
        ),
        0.0602,
    )
    assert words.endswith(
        "Likely cause: 21.9% more work for the L1 data pipe (57.5% of the peak, then 66.1%)."
    )


def test_without_more_work_for_a_busy_unit_no_cause_is_claimed() -> None:
    uses = (
        used(tensor_cores=66.2, issue_slots=19.9),
        used(tensor_cores=63.4, issue_slots=22.1),
    )
    assert concluded(uses, 0.0439).endswith(
        "The counts name no cause: no unit that is busy for 40% of the time has more work."
    )


def test_a_tile_that_does_not_divide_its_extent_is_why_there_are_more_mmas() -> None:
    """24 tiles of 176 keys are 4,224 of 4,096."""
    each = gemm().flops / (2 * 64 * 96 * 32 / 4)
    emulated = executed_sass(opcodes_with_modifiers={"QGMMA.64x96x32.F32.E4M3.E4M3": 8})
    before, after = (
        with_arm(
            at(
                gemm(
                    counters={
                        "smsp__inst_executed": 1,
                        "sm__inst_executed_pipe_tensor": round(times * each),
                    },
                    extents={"b": 4, "s": 4096},
                ),
                block_n=tile,
            ),
            emulated_sass=emulated,
        )
        for tile, times in ((128, 1.0), (176, 4224 / 4096))
    )
    uses = (used(tensor_cores=66.8), used(tensor_cores=66.6))
    words = likely.conclude(before, after, uses, NOTHING, 0.0349)
    assert "Likely cause: 176 does not divide s = 4,096 (24 x 176 = 4,224): 3.2% more" in words


def test_a_figure_of_the_unit_is_named_with_it() -> None:
    """Of the transpose, bank conflicts: all else that differs is of other units."""
    cases = profiled(transpose(0), PLAIN), profiled(transpose(1), PADDED)
    uses = bounds.uses_of_both(*cases)
    words = likely.conclude(*cases, uses, causes.differing(*cases, -0.55), -0.55)
    assert "less work for shared memory" in words
    assert "bank conflicts, shared ld" in words


def test_without_counts_no_cause_is_likely() -> None:
    uses = tuple(
        (Use(resource="device memory", percent=share, kind="measured"),) for share in (70.0, 60.0)
    )
    assert "Likely" not in concluded((uses[0], uses[1]), 0.16)


def test_another_kernel_is_what_changed() -> None:
    other = with_arm(gemm(arm=arm(H1)), kernel="another")
    assert likely.changed(gemm(), other).startswith("kernel patch_embed_gemm → another")


@pytest.mark.parametrize("share", [3.0, 30.0])
def test_a_unit_that_is_seldom_busy_is_no_likely_cause(share: float) -> None:
    uses = (used(tensor_cores=70.0, ALU_pipe=share), used(tensor_cores=66.0, ALU_pipe=share * 1.2))
    assert "ALU" not in concluded(uses, 0.06)


def test_where_every_unit_is_used_less_no_limit_moved() -> None:
    before = used(tensor_cores=88.4, L2=81.0)
    after = used(tensor_cores=60.0, L2=66.2)
    assert moved(before, after) == (
        "The baseline is bound by the tensor cores (88.4% of the peak); the candidate uses it for "
        "60.0%, and no unit for more than 66.2% (L2)."
    )


def test_a_limit_that_is_as_near_is_named_too() -> None:
    words = moved(used(L2=77.1, tensor_cores=76.3), used(L2=60.2, tensor_cores=59.0))
    assert words.endswith("then 60.2% (the baseline's tensor cores: 76.3%).")


def test_a_throughput_that_is_the_largest_of_several_is_no_measure_of_work() -> None:
    name = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
    uses = tuple(
        (Use(resource="L2", percent=share, kind="profiled", time_ms=1.0, reckoned=name),)
        for share in (76.2, 83.3)
    )
    assert likely.largest((uses[0], uses[1]), 0.0188) is None


def differing(before: float, after: float) -> CausedDifference:
    """Of one count without a unit's rate, which goes with the time of a slower candidate."""
    figure = ChangedFigure(
        metric="lts__t_sectors_srcunit_tex_op_read_lookup_miss",
        label="L2 sectors read by L1, miss",
        kind="profiled",
        before=before,
        after=after,
        change=after / before - 1,
        way="with the time",
    )
    cause = Cause(name="global memory", figures=(figure,))
    return CausedDifference(causes=(cause,), waits=(), of="the baseline's time", small=0)


def test_where_the_counts_name_no_cause_the_largest_change_that_went_with_the_time_is_named() -> (
    None
):
    uses = used(tensor_cores=78.1, L2=77.1), used(tensor_cores=67.3, L2=64.0)
    case = with_arm(gemm(counters={"smsp__inst_executed": 161_061_648}))
    words = likely.conclude(case, case, uses, differing(15_810_590, 28_549_520), 0.161)
    assert words.endswith("L2 sectors read by L1, miss: 15,810,590 → 28,549,520.")


def test_a_trifle_is_not_named_as_what_went_with_the_time() -> None:
    uses = used(tensor_cores=78.1, L2=77.1), used(tensor_cores=67.3, L2=64.0)
    case = with_arm(gemm(counters={"smsp__inst_executed": 161_061_648}))
    words = likely.conclude(case, case, uses, differing(4_144, 8_288), 0.161)
    assert "went with the time" not in words


def test_memory_whose_traffic_was_not_counted_is_named() -> None:
    """Another order of tiles: just that traffic is what it changes."""
    stated = Use(resource="device memory", percent=53.0, kind="measured", time_ms=1.0)
    later, second = msgspec.structs.replace(stated, percent=51.8), Use(resource="L2")
    uses = (*used(tensor_cores=75.0), stated, second), (*used(tensor_cores=73.3), later, second)
    assert "(not counted: device memory and L2)" in concluded(uses, 0.022)


def test_text_on_other_values_of_an_axis_is_left_out() -> None:
    after = msgspec.structs.replace(at(gemm(), order="linear"), axes={"order": "forth, or back"})
    assert likely.changed(at(gemm(), order="strided"), after) == "order strided → linear"


def test_a_relief_of_the_nearest_limit_that_gains_nothing_is_said() -> None:
    """F2: 45% less work for the L1 data pipe, and 36% slower."""
    uses = used(L1_data_pipe=66.9, device_memory=44.1), used(L1_data_pipe=26.8, device_memory=32.4)
    assert relieved(*uses, 0.362) == (
        "The candidate has 45.4% less work for the L1 data pipe and is slower all the same."
    )
    assert not relieved(*uses, -0.362)
    far = used(L1_data_pipe=19.3), used(L1_data_pipe=1.0)
    assert not relieved(*far, 1.6)


def test_what_is_executed_no_longer_is_named_too() -> None:
    """A9: no bank conflict is left."""
    uses = used(tensor_cores=31.5), used(tensor_cores=11.9)
    case = with_arm(gemm(counters={"smsp__inst_executed": 161_061_648}))
    words = likely.conclude(case, case, uses, differing(1_863_680, 0), -0.497)
    assert words.endswith("1,863,680 → 0.")


def test_a_unit_of_the_sms_that_have_ctas_is_busy_where_the_grid_leaves_others_idle() -> None:
    """31.5% of the chip's peak is 65% of what 64 CTAs on 132 SMs allow."""
    case = with_arm(gemm(ctas=64))
    uses = used(L1_data_pipe=31.5), used(L1_data_pipe=11.9)
    words = likely.conclude(case, case, uses, NOTHING, -0.4972)
    assert words.endswith(
        "Likely cause: 81.0% less work for the L1 data pipe (65.0% of what the grid allows, then "
        "24.5%)."
    )


def test_more_work_for_less_than_a_quarter_of_the_change_is_no_cause() -> None:
    uses = used(XU_pipe=43.5, tensor_cores=60.0), used(XU_pipe=40.9, tensor_cores=55.0)
    assert "has more work worth a quarter of the change" in concluded(uses, 0.095)


def test_the_tail_of_a_grid_that_nearly_fills_the_chip_is_no_cause() -> None:
    """2,048 CTAs use 97% of 132 SMs; persistent ones that share their blocks do too."""
    before, after = (with_arm(gemm(ctas=ctas)) for ctas in (2048, 264))
    uses = used(tensor_cores=60.0), used(tensor_cores=61.0)
    assert "CTAs on" not in likely.conclude(before, after, uses, NOTHING, -0.02)


def figure(name: str, explains: float, before: int = 10**8, after: int = 2 * 10**8) -> Cause:
    only = ChangedFigure(
        metric=name,
        label=name,
        kind="emulated",
        before=before,
        after=after,
        change=after / before - 1,
        explains=explains,
        way="with the time",
    )
    return Cause(name=name, figures=(only,))


def test_what_explains_most_by_a_rate_is_named_before_what_changed_most() -> None:
    """A1: a fourfold count that explains 0.1%, and wavefronts that explain 6.1%."""
    uses = used(L1_data_pipe=19.3), used(L1_data_pipe=16.0)
    differ = msgspec.structs.replace(
        NOTHING, causes=(figure("loads", 0.1, 10**6, 4 * 10**6), figure("wavefronts", 6.1))
    )
    words = likely.conclude(gemm(), gemm(), uses, differ, 0.485)
    assert words.endswith("by its unit's rate: wavefronts: 100,000,000 → 200,000,000 (+6.1%).")


def test_a_unit_of_unknown_use_that_its_counts_keep_seldom_busy_is_no_cause() -> None:
    """H11: 134 million sectors are 18% of what TMA can read in that time."""
    uses = used(tensor_cores=78.6), used(tensor_cores=65.5)
    tma = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld"
    for explains, is_cause in ((9.0, False), (30.0, True)):
        differ = msgspec.structs.replace(NOTHING, causes=(figure(tma, explains),))
        words = likely.conclude(gemm(), gemm(), uses, differ, 0.2)
        assert ("Likely cause" in words) is is_cause


def test_only_what_explains_a_part_of_the_change_is_asked_for() -> None:
    arms = [with_arm(gemm(), profiled=None) for _ in range(2)]
    for explains, is_asked in ((0.2, False), (10.0, True)):
        differ = msgspec.structs.replace(NOTHING, causes=(figure("smsp__inst_executed", explains),))
        slower = with_arm(arms[1], measured=arm(H1, 1).measured)
        asked = " ".join(item.question for item in questions(arms[0], slower, "H1", differ))
        assert ("instructions to issue" in asked) is is_asked


def test_what_explains_more_than_the_busy_unit_is_named_beside_it() -> None:
    """H6: TMA reads 2.5 times as much, of a rate that no limit has."""
    uses = used(L1_data_pipe=61.4), used(L1_data_pipe=59.0)
    tma = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld"
    for explains, is_named in ((19.9, True), (5.0, False)):
        differ = msgspec.structs.replace(NOTHING, causes=(figure(tma, explains),))
        words = likely.conclude(gemm(), gemm(), uses, differ, 0.2461)
        assert words.startswith("Likely cause: 19.7% more work for the L1 data pipe")
        assert ("by its rate more, " in words) is is_named
