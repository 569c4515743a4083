"""The B200 kernel, emulated: right under every schedule, and counted as ncu counted it."""

from __future__ import annotations

import patch_embed
import pytest

from warpsim import Schedule

pytestmark = pytest.mark.xdist_group("patch_embed")

SCHEDULES = [
    Schedule(seed=0, asynchrony="late"),
    Schedule(seed=1, asynchrony="late"),
    Schedule(seed=2, asynchrony="early"),
]

# Per tile. ncu on a B200 over T = 10,878 tiles: metric / T, with what ptxas adds per launch (the
# tcgen05.alloc's bookkeeping) taken off, as warpsim/docs/counters.md derives.
PER_TILE = {
    "ptx__sass__inst_executed_global_loads": (256, 256),
    "ptx__sass__inst_executed_global_stores": (128, 320),
    "ptx__sass__inst_executed_shared_loads": (0, 320),
    "ptx__sass__inst_executed_shared_stores": (0, 256),
    "ptx__smsp__sass_inst_executed_op_tmem_ldt": (64, 64),
    "ptx__smsp__sass_inst_executed_op_utcmma": (24, 24),
    "ptx__smsp__inst_executed_op_tma_ld": (24, 24),
    "ptx__memory_l1_wavefronts_shared": (0, 2048),
    "ptx__memory_l1_wavefronts_shared_ideal": (0, 2048),
    "ptx__memory_l2_theoretical_sectors_global": (12_288, 12_288),
    "ptx__memory_l2_theoretical_sectors_global_ideal": (8_192, 8_192),
    "ptx__memory_l1_tag_requests_global": (12_288, 9_216),
    "ptx__l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld": (12_288, 12_288),
    "ptx__l1tex__data_pipe_tc_wavefronts_mem_shared": (3_072, 3_072),
}


@pytest.mark.parametrize("store", ["direct_v8", "staged"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_the_result_is_right_and_nothing_is_found(store, schedule):
    outcome = patch_embed.run(patch_embed.ptx(store), schedule=schedule)
    assert outcome.found == set()
    assert outcome.right


@pytest.mark.slow
def test_several_clusters_with_uneven_tiles_finish_too():
    outcome = patch_embed.run(patch_embed.ptx("staged"), m=512, ctas=8)
    assert outcome.found == set()
    assert outcome.right


@pytest.mark.parametrize(
    ("store", "column"), [("direct_v8", 0), pytest.param("staged", 1, marks=pytest.mark.slow)]
)
def test_what_grows_with_tiles_equals_ncu(store, column):
    few = patch_embed.run(patch_embed.ptx(store), m=256).result.counters.kernel
    many = patch_embed.run(patch_embed.ptx(store), m=512).result.counters.kernel
    tiles = patch_embed.COLUMN_TILES
    per_tile = {name: (many[name] - few[name]) / tiles for name in PER_TILE}
    assert per_tile == {name: values[column] for name, values in PER_TILE.items()}


def test_what_a_launch_adds_is_a_load_of_the_tmem_address_by_each_warp():
    counters = patch_embed.run(patch_embed.ptx("direct_v8"), m=256).result.counters.kernel
    assert counters["ptx__sass__inst_executed_shared_loads"] == 2 * 7


def test_global_loads_are_counted_at_the_line_of_the_table():
    counters = patch_embed.run(patch_embed.ptx("staged"), m=256).result.counters
    lines = {
        str(line.source): line.counters["ptx__sass__inst_executed_global_loads"]
        for line in counters.lines
        if line.counters["ptx__sass__inst_executed_global_loads"]
    }
    assert list(lines.values()) == [3 * 256]
    assert next(iter(lines)).startswith("epilogue.cuh:")


@pytest.mark.parametrize(
    "axes",
    [
        {"store": "direct_v4", "tmem_load": "x16", "cta_group": 1, "epilogue_warps": 4},
        {"store": "direct_v8", "tmem_load": "split", "epilogue_bounds": "runtime", "stages": 6},
        pytest.param(
            {
                "store": "staged",
                "combined": "smem_prefetch",
                "tile_n": 128,
                "mainloop_wait": "broadcast",
            },
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"store": "staged", "combined": "prestage", "epilogue_warps": 4, "phase2_unroll": 8},
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda axes: "-".join(map(str, axes.values())),
)
def test_other_variants_are_right_too(axes):
    axes = dict(axes)
    group = axes.get("cta_group", 2)
    outcome = patch_embed.run(patch_embed.ptx(axes.pop("store"), **axes), ctas=group)
    assert outcome.found == set()
    assert outcome.right
