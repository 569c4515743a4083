"""From which sizes a problem's counters are extrapolated to the full one."""

from __future__ import annotations

import math

import pytest
from judge_cases import executed_sass, gemm, with_arm

from kernelexp.dossier.examine import misses_work
from kernelexp.dossier.extents import is_as_full, second_size, solving, unlike
from kernelexp.evidence.emulate.scaling import (
    Extent,
    least,
    not_by_tiles,
    scale,
    solve_blocks,
    unsound,
)
from kernelexp.model.arm import EmulatedLaunch
from kernelexp.model.problem import Work
from kernelexp.project.problem.consult import Consulted, Facts


def job(tiles: int, ctas: int) -> tuple[Extent, ...]:
    return (Extent(tiles=tiles, ctas=ctas),)


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        ({"long": job(8192, 8192), "more": job(16, 16)}, "more"),
        ({"much": job(64, 64), "more": job(16, 16)}, "more"),
        ({"long": job(8192, 8192)}, None),
        ({"another job": (*job(16, 16), *job(1, 1))}, None),
    ],
)
def test_the_second_size_is_the_smallest_that_will_do(
    others: dict[str, tuple[Extent, ...]], chosen: str | None
) -> None:
    assert second_size(job(4, 4), others, job(128, 128)) == chosen


@pytest.mark.parametrize(
    ("others", "pair"),
    [
        ({"more": job(16, 16)}, ("emulated", "more")),
        ({"more": job(64, 16), "even": job(8, 4)}, ("even", "more")),
        ({"long": job(8192, 8192)}, None),
    ],
)
def test_sizes_made_for_scaling_are_solved_without_the_one_that_checks_edges(
    others: dict[str, tuple[Extent, ...]], pair: tuple[str, str] | None
) -> None:
    assert solving("emulated", job(15, 5), others, job(4096, 128)) == pair


def test_a_total_is_not_solved_where_a_pipe_of_it_is_not() -> None:
    assert "smsp__inst_executed" in unsound({"sm__inst_executed_pipe_alu"})
    assert not unsound({"sass__inst_executed_branch"})


def test_instructions_around_loads_of_a_table_that_is_kept_are_not_solved() -> None:
    """H3: 161.1 M instructions by all tiles, 153.3 M by ncu."""
    kept = Extent(tiles=58_016, ctas=132, loads=5_752)
    names = ["smsp__inst_executed", "sm__inst_executed_pipe_alu", "sm__inst_executed_pipe_lsu"]
    assert list(not_by_tiles([*names, "ptx__inst_executed"], (kept,))) == [
        "smsp__inst_executed",
        "sm__inst_executed_pipe_alu",
        "ptx__inst_executed",
    ]
    assert not list(not_by_tiles(names, (Extent(tiles=58_016, ctas=132),)))
    assert list(not_by_tiles(names, (Extent(tiles=58_016, ctas=132, blocks=1_184),)))


def test_of_the_lsu_s_instructions_the_loads_grow_with_the_tiles_that_load() -> None:
    lsu, loads = "sm__inst_executed_pipe_lsu", "sass__inst_executed_global_loads"
    extents = [Extent(tiles=n, ctas=4, loads=n) for n in (8, 16)]
    launches = [
        executed_sass(counters={lsu: 77 * x.tiles + 3 * x.ctas, loads: 48 * x.tiles})
        for x in extents
    ]
    full = Extent(tiles=58_016, ctas=132, loads=5_752)
    (first, second), (one, other) = launches, extents
    counted = {item.counter: item.full for item in scale(first, one, second, other, full)}
    assert counted[lsu] == 29 * 58_016 + 48 * 5_752 + 3 * 132


def test_counts_of_which_the_mmas_are_too_few_are_not_the_full_problems() -> None:
    """15 of 16 CTAs of the small size return at once, and tiles() counts them."""
    evidence = executed_sass(opcodes_with_modifiers={"HMMA.16816.F16": 8, "HFMA2.MMA": 1})
    for times, misses in ((1.0, False), (1 / 16, True)):
        executed = round(times * gemm().flops / 4096)
        counters = {"smsp__inst_executed": 10**9, "sm__inst_executed_pipe_tensor": executed}
        case = with_arm(gemm(counters=counters), emulated_sass=evidence)
        assert misses_work(case) is misses


def test_persistent_ctas_are_solved_from_three_sizes() -> None:
    """A17: 7 for a tile, 30 for a block of queries, 100 for a CTA; two sizes put what a block does
    into its tiles."""
    extents = [
        Extent(tiles=tiles, blocks=blocks, ctas=ctas)
        for tiles, blocks, ctas in ((8, 4, 2), (12, 6, 1), (32, 8, 2))
    ]
    full = Extent(tiles=65_536, blocks=2_048, ctas=132)

    def count(extent: Extent) -> int:
        return 7 * extent.tiles + 30 * extent.blocks + 100 * extent.ctas

    launches = [executed_sass(counters={"alu": count(extent)}) for extent in extents]
    assert dict(solve_blocks(launches, extents, full)) == {"alu": count(full)}
    launches[0] = executed_sass(counters={"alu": count(extents[0]) + 1})
    assert not dict(solve_blocks(launches, extents, full))


def counted(instructions: int) -> EmulatedLaunch:
    counters = {"sm__inst_executed_pipe_alu": instructions}
    return EmulatedLaunch(entry="scan", ctas=1056, thread_instructions=0, counters=counters)


def test_a_fraction_a_tile_is_a_solution_where_a_third_size_has_just_that_count() -> None:
    """A loop over rows in strides of the grid: what a row adds is divided among its tiles."""
    of = [(counted(101_376 + 5 * tiles // 2), *job(tiles, 1000)) for tiles in (8, 32, 64)]
    full = Extent(tiles=65_536, ctas=1000)
    (solved,) = scale(*of[1], *of[2], full, of[0])
    assert solved.full == 101_376 + 5 * 65_536 // 2
    assert not list(scale(*of[1], *of[2], full))
    assert not list(scale(*of[1], *of[2], full, (counted(1), *job(8, 1000))))


def test_a_tile_whose_ctas_mostly_have_nothing_to_do_is_not_a_tile_of_the_full_problem() -> None:
    """A grid of 16 CTAs for 2,048 columns, executed with 128: 15 of them return at once."""
    flops = {"small": 4_194_304, "alike": 67_108_864, "full": 549_755_813_888}
    tiles = {"small": 16, "alike": 16, "full": 131_072}
    answer = Consulted(
        kernel="product",
        peers=(),
        sizes={name: {"n": 1} for name in flops},
        work={name: Work(flops=count, bytes=0) for name, count in flops.items()},
        points=(Facts(tiles=tiles),),
    )
    assert "has 262,144 FLOPs, one of 'full' 4,194,304" in unlike(answer, "small", "full")
    assert not unlike(answer, "alike", "full")


def test_tiles_that_an_edge_cuts_at_a_small_size_solve_no_counts() -> None:
    """A stencil's tiles of 30 columns, 2.8 to a row of 84; those of 14 are whole."""
    bytes_ = {"small": 84 * 84, "more": 168 * 168, "full": 4096 * 4096}
    for tile, is_full in ((14, True), (30, False)):
        tiles = {name: math.ceil(math.isqrt(n) / tile) ** 2 for name, n in bytes_.items()}
        for flops in (0, 1):
            answer = Consulted(
                kernel="stencil",
                peers=(),
                sizes={},
                work={name: Work(flops=flops * n, bytes=n) for name, n in bytes_.items()},
                points=(Facts(tiles=tiles),),
            )
            assert is_as_full(answer, ("small", "more"), "full") is (is_full or bool(flops))
    of_pairs = {
        name: (n // 64) ** 2 for name, n in {"small": 128, "more": 256, "full": 4096}.items()
    }
    answer = Consulted(
        kernel="attention",
        peers=(),
        sizes={},
        work={name: Work(flops=0, bytes=64 * n) for name, n in of_pairs.items()},
        points=(Facts(tiles={name: n**2 for name, n in of_pairs.items()}),),
    )
    assert is_as_full(answer, ("small", "more"), "full")


def test_a_count_that_does_not_solve_is_about_what_a_tile_adds_for_each_tile() -> None:
    """The lines of a stencil: a border grows with n, the tiles with its square."""
    first, second = counted(3_780), counted(15_748)
    own = (first, *job(64, 64)), (second, *job(256, 256))
    pipe = "sm__inst_executed_pipe_alu"
    assert least(pipe, *own, Extent(tiles=262_144, ctas=262_144)) == 11_968 * 262_144 // 192
