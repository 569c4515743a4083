"""What differs between two arms, by cause, ranked by the time that it can explain."""

from __future__ import annotations

import msgspec
import pytest
from judge_cases import (
    DEFAULTS,
    FOUR_STAGES,
    H1,
    PADDED,
    PLAIN,
    arm,
    cause_of,
    counted,
    counting,
    executed_sass,
    gemm,
    profiled,
    published,
    transpose,
    with_arm,
)

from kernelexp.facts.metrics import Kind
from kernelexp.judge import causes
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.changed import WARPS, ChangedFigure, is_code
from kernelexp.judge.limits.floors import SECTORS

FASTER = -0.55
TAGS = "ptx__memory_l1_tag_requests_global"


def test_what_can_explain_most_of_the_time_comes_first() -> None:
    """The transposes differ in 130 million wavefronts, 76% of the time, of which device memory
    needs 34%; all else is below 1%."""
    result = causes.differing(transpose(0), transpose(1), FASTER)
    first = result.causes[0]
    assert first.name == "shared memory"
    assert first.leader.explains == pytest.approx(34.1 - 100, abs=0.1)
    assert first.leader.way == "with the time"
    assert all(abs(cause.leader.explains or 0.0) < 3 for cause in result.causes[1:])


def test_consequences_of_a_cause_are_told_with_it() -> None:
    result = causes.differing(profiled(transpose(0), PLAIN), profiled(transpose(1), PADDED), FASTER)
    names = [item.metric for item in cause_of(result, "shared memory").figures]
    assert any("bank_conflicts" in name for name in names)
    assert any("wavefronts" in name for name in names)
    assert [cause.name for cause in result.causes].count("shared memory") == 1


def test_a_figure_is_told_once_whoever_counted_it() -> None:
    result = causes.differing(profiled(transpose(0), PLAIN), profiled(transpose(1), PADDED), FASTER)
    for cause in result.causes:
        labels = [item.label for item in cause.figures]
        assert len(labels) == len({*labels})


def test_conflicts_that_no_address_needs_are_arbitration() -> None:
    before, after = profiled(gemm(), DEFAULTS), profiled(gemm(), FOUR_STAGES)
    result = causes.differing(before, after, 0.0395)
    shared = [cause for cause in result.causes if cause.name == "shared memory"]
    assert all("arbitration" in cause.noise for cause in shared)


def test_shares_that_the_limits_have_are_no_differences() -> None:
    result = causes.differing(published("cefc59d"), published("c32ab7a"), -0.096)
    names = [item.metric for cause in result.causes for item in cause.figures]
    assert names
    assert not any("pct_of_peak" in name or "throughput" in name for name in names)


def test_two_equal_arms_differ_in_nothing() -> None:
    result = causes.differing(transpose(0), transpose(0), None)
    assert (result.causes, result.waits, result.small) == ((), (), 0)


def test_resources_that_leave_an_sm_as_many_warps_have_no_effect_of_their_own() -> None:
    """Four stages take less shared memory than six, for one CTA all the same."""
    cases = [gemm(arm=arm(H1, place)) for place in (0, 1)]
    cause = cause_of(causes.differing(*cases, 0.0395), "resources")
    assert "as many CTAs and warps" in cause.noise


def test_warps_on_an_sm_come_before_the_resources_that_limit_them() -> None:
    one = transpose(ctas=64)
    build = one.arm.build
    assert build
    half = msgspec.structs.replace(
        build, resources=msgspec.structs.replace(build.resources, threads=128, registers=217)
    )
    result = causes.differing(one, with_arm(one, build=half), 1.6)
    assert cause_of(result, "resources").leader.label == "warps on an SM, at most"
    assert cause_of(result, "resources").leader.way == "with the time"


def test_warps_that_load_among_them_are_no_cause() -> None:
    """Two CTAs of one warpgroup that multiplies have 16 warps, one CTA of two has 12: each CTA has
    a warpgroup that loads, and 8 warps multiply in both."""
    one = gemm(ctas=264)
    build = one.arm.build
    assert build
    fewer = msgspec.structs.replace(
        build, resources=msgspec.structs.replace(build.resources, threads=256, registers=128)
    )
    result = causes.differing(one, with_arm(one, build=fewer), -0.07)
    assert not any(item.metric == WARPS for cause in result.causes for item in cause.figures)


def test_what_explains_next_to_nothing_of_a_change_comes_after_what_has_no_rate() -> None:
    """0.2% of the time is no reason for 160%."""
    one = gemm(ctas=64, counters={TAGS: 10**6})
    build = one.arm.build
    assert build
    half = msgspec.structs.replace(
        build, resources=msgspec.structs.replace(build.resources, threads=192)
    )
    more = {TAGS: 2 * 10**6}
    other = msgspec.structs.replace(with_arm(one, build=half), counters=more)
    cases = [with_arm(case, emulated=counting(0, case.counters)) for case in (one, other)]
    names = [cause.name for cause in causes.differing(*cases, 1.6).causes]
    assert names.index("resources") < names.index("global memory")


def test_a_pipe_that_is_relieved_by_what_others_execute_is_a_cause_of_its_own() -> None:
    """Exponentials as polynomials: 68 million instructions more, 8 million of the XU pipe fewer."""
    executed, pipe = "smsp__inst_executed", "sm__inst_executed_pipe_xu"
    counted = (
        {executed: 228_343_808, pipe: 34_691_072},
        {executed: 295_976_960, pipe: 26_302_464},
    )
    cases = [
        with_arm(gemm(arm=arm(H1, place), counters=own), emulated=counting(place, own))
        for place, own in enumerate(counted)
    ]
    result = causes.differing(*cases, 0.038)
    apart = cause_of(result, "xu pipe, instructions").leader
    assert apart.way == "against it"
    assert apart.explains == pytest.approx(
        -(cause_of(result, "instructions").leader.explains or 0), rel=0.02
    )


def test_what_is_equal_at_the_small_size_only_is_a_difference() -> None:
    """A table in registers is loaded for each tile of a small size, and seldom later."""
    result = causes.differing(*counted({TAGS: 22_278_144}, {TAGS: 2_208_768}), None)
    figure = cause_of(result, "global memory").leader
    assert (figure.before, figure.after) == (22_278_144, 2_208_768)


def test_a_count_that_one_arm_alone_has_solved_is_not_compared() -> None:
    """A18: 88 million ALU instructions in proportion beside 19 million solved, of more code."""
    one, other = counted({TAGS: 88_000_000}, {TAGS: 19_000_000})
    rough = msgspec.structs.replace(one, unsolved=frozenset({TAGS}), least={TAGS: 18_000_000})
    result = causes.differing(rough, other, None)
    assert result.uneven == 1
    assert not any(item.metric == TAGS for cause in result.causes for item in cause.figures)
    both = [
        msgspec.structs.replace(case, unsolved=frozenset({TAGS}), least={TAGS: count})
        for case, count in ((one, 18_000_000), (other, 9_000_000))
    ]
    figure = cause_of(causes.differing(*both, None), "global memory").leader
    assert (figure.before, figure.after) == (18_000_000, 9_000_000)


def test_of_what_changed_alike_what_is_executed_goes_before_the_code() -> None:
    def figure(metric: str, kind: Kind) -> ChangedFigure:
        return ChangedFigure(
            metric=metric, label=metric, kind=kind, before=1600, after=3200, change=1, way=""
        )

    code, pipe, loads = (
        figure("sass_instructions_tmem", "built"),
        figure("sm__inst_executed_pipe_tmem", "emulated"),
        figure("smsp__sass_inst_executed_op_tmem_ldt", "emulated"),
    )
    assert causes._once([code, pipe, loads]) == (loads, code)


def test_mmas_of_another_shape_for_the_same_flops_are_one_figure_without_a_way() -> None:
    pipe = "sm__inst_executed_pipe_tensor"
    names = (pipe, f"{pipe}_op_gmma", f"{pipe}_op_hmma")
    cases = [
        with_arm(
            gemm(
                arm=arm(H1, place),
                counters={"smsp__inst_executed": 10**8, **dict.fromkeys(names, count)},
            ),
            emulated_sass=executed_sass(
                counters={"smsp__inst_executed": 10**8, **dict.fromkeys(names, count)},
                opcodes_with_modifiers={f"QGMMA.64x{wide}x32.F32.E4M3.E4M3": 8},
            ),
        )
        for place, (count, wide) in enumerate(((4_177_152, 256), (5_569_536, 192)))
    ]
    figures = [
        item
        for cause in causes.differing(*cases, -0.0567).causes
        for item in cause.figures
        if item.metric.startswith(pipe)
    ]
    assert [item.label for item in figures] == ["MMAs, for as many FLOPs"]
    assert figures[0].way == ""


def test_what_64_ctas_execute_takes_the_time_of_64_sms() -> None:
    """A9: 1,863,680 conflicts on 64 of 132 SMs are 14.7 us of 28.0, and half was measured."""
    conflicts = "ptx__memory_l1_wavefronts_shared"
    measured = arm(H1).measured
    assert measured
    small = {"ctas": 64, "clock_hz": 1.98e9, "flops": 0, "bytes": 0}
    cases = [
        with_arm(case, measured=msgspec.structs.replace(measured, time_us=28.0))
        for case in counted({conflicts: 2_863_680}, {conflicts: 1_000_000}, **small)
    ]
    figure = cause_of(causes.differing(*cases, -0.497), "shared memory").leader
    assert figure.explains == pytest.approx(-52.5, abs=0.1)


def test_fewer_operands_that_mmas_read_are_no_arbitration() -> None:
    """9557e0b: an MMA of 256 columns reads A once for twice as many."""
    operands = "l1tex__data_pipe_tc_wavefronts_mem_shared"
    cases = counted(
        {"smsp__inst_executed": 10**8, operands: 50_125_824},
        {"smsp__inst_executed": 10**8, operands: 33_417_216},
    )
    cause = cause_of(causes.differing(*cases, -0.17), "operands of MMAs")
    assert not cause.noise
    assert cause.leader.way == "with the time"


def test_the_pipe_of_accesses_that_are_told_is_no_second_cause() -> None:
    """S2: 8,354,304 loads fewer, which LSU has not to execute either."""
    loads, pipe = "sass__inst_executed_global_loads", "sm__inst_executed_pipe_lsu"
    cases = counted(
        {"smsp__inst_executed": 10**8, loads: 11_139_072, pipe: 15_330_084},
        {"smsp__inst_executed": 10**8, loads: 2_784_768, pipe: 6_975_780},
    )
    result = causes.differing(*cases, -0.1)
    assert cause_of(result, "global memory").leader.metric == loads
    assert not any(item.metric == pipe for cause in result.causes for item in cause.figures)


def test_a_handful_of_instructions_without_a_rate_is_no_difference() -> None:
    """F4: 592 barriers more of 71 million instructions."""
    executed, barriers = "smsp__inst_executed", "sass__inst_executed_barrier"
    cases = counted({executed: 71_000_000, barriers: 592}, {executed: 71_000_000, barriers: 1_184})
    result = causes.differing(*cases, 0.01)
    assert not any(item.metric == barriers for cause in result.causes for item in cause.figures)


def test_without_a_time_more_work_costs_what_the_longest_need_of_a_unit_grows_by() -> None:
    """Instructions that take a third longer, and device memory twice as long as they."""
    executed = "smsp__inst_executed"
    cases = [
        with_arm(case, measured=None)
        for case in counted({executed: 10**8}, {executed: 4 * 10**8 // 3}, flops=0, bytes=2 * 10**9)
    ]
    assert cause_of(causes.differing(*cases, None), "instructions").leader.explains == 0.0
    cases = [msgspec.structs.replace(case, bytes=10**6) for case in cases]
    figure = cause_of(causes.differing(*cases, None), "instructions").leader
    assert figure.explains == pytest.approx(100 / 3, abs=0.1)


def test_a_multicast_is_read_from_l2_once() -> None:
    """S3: B for two CTAs."""
    reads = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld"
    executed = {"smsp__inst_executed": 10**8, reads: 200_000}
    cases = counted(executed, {**executed, f"{reads}_dest_multicast": 100_000})
    build = cases[1].arm.build
    assert build
    pair = msgspec.structs.replace(
        build, resources=msgspec.structs.replace(build.resources, cluster=2)
    )
    result = causes.differing(cases[0], with_arm(cases[1], build=pair), -0.0092)
    figure = cause_of(result, "multicast").leader
    assert (figure.before, figure.after, figure.way) == (200_000, 150_000, "with the time")


def test_fewer_instructions_of_a_pipe_relieve_no_other_unit() -> None:
    """Wavefronts take as long as before, and longest."""
    pipe, wavefronts = "sm__inst_executed_pipe_alu", "memory_l1_wavefronts_shared"
    executed = {"smsp__inst_executed": 10**8, wavefronts: 10**8}
    cases = [
        with_arm(case, measured=None)
        for case in counted(
            {**executed, pipe: 10**8}, {**executed, pipe: 5 * 10**7}, flops=0, bytes=0
        )
    ]
    figure = cause_of(causes.differing(*cases, None), "instructions").leader
    assert figure.metric == pipe
    assert figure.explains == pytest.approx(0.0)


def test_without_a_time_no_change_saves_more_than_the_longest_need_falls_by() -> None:
    """Of fewer instructions, a pipe's share is larger than that of the issue slots, which limit."""
    executed, pipe = "smsp__inst_executed", "sm__inst_executed_pipe_alu"
    cases = [
        with_arm(case, measured=None)
        for case in counted(
            {executed: 100_000_000, pipe: 45_000_000},
            {executed: 95_000_000, pipe: 30_000_000},
            flops=0,
            bytes=10**6,
        )
    ]
    figure = cause_of(causes.differing(*cases, None), "instructions").leader
    assert figure.explains == pytest.approx(-5, abs=0.1)


def test_what_is_executed_has_a_way_and_code_has_none() -> None:
    """`sass__inst_executed...` are counts; `sass_bytes` is the size of the code."""
    assert is_code("sass_bytes")
    assert not is_code("sass__inst_executed_global_loads")
    barriers = "sass__inst_executed_barrier"
    executed = {"smsp__inst_executed": 10**8}
    cases = counted({**executed, barriers: 10**6}, {**executed, barriers: 2 * 10**6})
    (figure,) = cause_of(causes.differing(*cases, 0.05), "barriers").figures
    assert figure.way == "with the time"


def test_a_count_that_both_profiles_have_takes_the_place_of_the_emulated_one() -> None:
    """Emulated, 161.1 million, of which each tile's table loads are 7.7 million too many."""
    plain = [transpose(0), transpose(1)]
    pair = [profiled(plain[0], PLAIN), profiled(plain[1], PADDED)]

    def emulated(cases: list[Case]) -> set[str]:
        result = causes.differing(cases[0], cases[1], FASTER)
        figures = (item for cause in result.causes for item in cause.figures)
        return {item.metric.removeprefix("ptx__") for item in figures if item.kind == "emulated"}

    assert pair[0].arm.profiled
    counted = {name.removesuffix(".sum") for name in pair[0].arm.profiled.figures}
    assert emulated(plain) & counted
    assert not emulated(pair) & counted


def test_ctas_on_more_sms_are_no_fewer_warps() -> None:
    """As many warps in 16 CTAs of 8, then in 128 of 1: more SMs have work."""
    few, many = transpose(ctas=16), transpose(ctas=128)
    resources = cause_of(causes.differing(few, many, FASTER), "resources")
    assert (resources.leader.before, resources.leader.after) == (16, 128)
    assert resources.leader.label == "SMs with work, of 132"
    assert WARPS not in [item.metric for item in resources.figures]


def test_what_tma_reads_more_is_not_said_of_what_loads_read_more() -> None:
    """H6: both grow, and each explains its own."""
    loads, reads = SECTORS[0], SECTORS[2]
    executed = {"smsp__inst_executed": 10**8, loads: 10**6, reads: 10**7}
    cases = counted(executed, {**executed, loads: 2 * 10**6, reads: 3 * 10**7})
    figures = {
        item.metric: item
        for item in cause_of(causes.differing(*cases, 0.25), "global memory").figures
    }
    shares = figures[reads].explains, figures[loads].explains
    assert shares[0]
    assert shares[0] == pytest.approx(20 * (shares[1] or 0.0))


def test_counts_that_are_about_so_large_do_not_differ_by_a_few_percent() -> None:
    """A border that is a smaller part of the full problem in one arm than in the other."""
    executed = "smsp__inst_executed"
    for more, differs in ((1.02, False), (1.2, True)):
        few, many = 10**8, round(more * 10**8)
        cases = [
            msgspec.structs.replace(case, unsolved=frozenset({executed}), least={executed: count})
            for case, count in zip(
                counted({executed: few}, {executed: many}), (few, many), strict=True
            )
        ]
        figures = [
            item for cause in causes.differing(*cases, 0.05).causes for item in cause.figures
        ]
        assert (executed in [item.metric for item in figures]) is differs


def test_counts_that_are_about_so_large_are_told_apart_from_equal_ones() -> None:
    executed = "smsp__inst_executed"
    cases = [
        msgspec.structs.replace(case, unsolved=frozenset({executed}), least={executed: count})
        for case, count in zip(
            counted({executed: 10**8}, {executed: 102 * 10**6}), (10**8, 102 * 10**6), strict=True
        )
    ]
    assert causes.differing(*cases, 0.05).alike == 1
    assert causes.differing(cases[0], cases[0], 0.05).alike == 0


def test_a_part_of_the_wavefronts_explains_no_more_than_their_sum() -> None:
    """H11:2: MMAs read 22 million less, and ldmatrix 11 million more."""
    part, whole = (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma",
        "memory_l1_wavefronts_shared",
    )
    executed = {"smsp__inst_executed": 10**8}
    cases = counted(
        {**executed, part: 89 * 10**6, whole: 100 * 10**6},
        {**executed, part: 67 * 10**6, whole: 89 * 10**6},
    )
    figures = {
        item.metric: item
        for item in cause_of(causes.differing(*cases, 0.05), "shared memory").figures
    }
    assert figures[part].explains == pytest.approx(figures[whole].explains)
