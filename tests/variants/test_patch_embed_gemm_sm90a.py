"""variants/patch_embed_gemm on Hopper: problem.py and the source say the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch

from kernelexp import project
from kernelexp.facts.chips import find_arch
from kernelexp.project.problem import loader
from kernelexp.project.problem.consult import Configured, configure
from warpsim.launch import TensorMap

ROOT = Path(__file__).parents[2]
DEFAULTS: dict[str, object] = {
    "stages": 8,
    "tile_m": 64,
    "tile_n": 192,
    "operand_b": "resident",
    "schedule": "overlapping",
    "store": "tma",
    "boxes": 1,
    "combined": "blocked",
    "registers": "moved",
    "cluster": 2,
    "prefetch": 0,
    "order": "strided",
}
STREAMED = {
    "stages": 4,
    "tile_m": 128,
    "tile_n": 256,
    "operand_b": "streamed",
    "schedule": "cooperative",
    "order": "snake",
}

IN_REGISTERS = {"operand_b": "registers", "combined": "resident", "stages": 15}

problem = loader.load(ROOT, "patch_embed_gemm")
ExportsOf = Callable[[str, dict[str, object]], dict[str, int]]


def axes(**changed: object) -> dict[str, object]:
    return DEFAULTS | changed


SIZED = [
    axes(),
    axes(cluster=1),
    axes(store="direct"),
    axes(stages=6, boxes=2),
    axes(order="period", combined="registers"),
    axes(tile_m=128, schedule="cooperative", stages=4),
    axes(**STREAMED),
    axes(**STREAMED | {"tile_n": 192, "schedule": "pingpong", "cluster": 1}),
    axes(**STREAMED | {"tile_m": 256, "tile_n": 128}),
    axes(**IN_REGISTERS),
    axes(**IN_REGISTERS | {"tile_m": 128, "tile_n": 128, "stages": 8, "boxes": 2}),
]


def configured(point: dict[str, object]) -> Configured:
    defines = project.load(ROOT).variant("patch_embed_gemm", "sm_90a")
    variant = msgspec.structs.replace(defines, axes=point)  # values too that no axis has
    (result,) = configure(ROOT, [variant], [problem.terms["sm_90a"]])
    assert not result.failure
    return result


@pytest.mark.parametrize("point", SIZED[::5], ids=str)
def test_the_host_compiler_computes_what_nvcc_computes(
    point: dict[str, object], exports_of: ExportsOf
) -> None:
    assert configured(point).exports == exports_of("config_sm90a.cuh", point)


@pytest.mark.parametrize("point", SIZED, ids=str)
def test_what_the_source_compiles_nothing_refuses(point: dict[str, object]) -> None:
    assert configured(point).refusals == ()
    assert problem.budget(point, "sm_90a") is None


def test_the_terms_add_up_to_the_shared_memory() -> None:
    result = configured(DEFAULTS)
    assert result.terms["dynamic_smem_bytes"] == (
        "B 147,456 B + 8 stages x 8,192 B + 8 x 2,048 B of staging + barriers 152 B"
    )
    assert result.exports["dynamic_smem_bytes"] == 147_456 + 8 * 8_192 + 152 + 8 * 2_048


def test_a_ninth_stage_does_not_fit() -> None:
    result = configured(axes(stages=9))
    assert result.refusals == ("a CTA has at most 232,448 bytes of shared memory",)
    assert result.exports["dynamic_smem_bytes"] > find_arch("sm_90a").smem_per_cta_bytes


REFUSED = [
    (axes(schedule="cooperative"), "a warpgroup multiplies 64 rows at a time"),
    (axes(**STREAMED | {"schedule": "pingpong"}), "192 accumulators at most"),
    (axes(boxes=3, tile_n=128), "a warp has buffers for its tile's boxes"),
    (axes(order="snake"), "order=snake turns in a row of tiles"),
    (axes(**STREAMED | {"order": "period"}), "order=period goes down a strip"),
    (axes(**STREAMED | {"prefetch": 1}), "prefetch is of A"),
    (axes(combined="registers"), "combined=registers reads the table anew"),
    (axes(combined="resident"), "operand_b=registers frees the shared memory"),
    (axes(**IN_REGISTERS | {"combined": "blocked"}), "operand_b=registers frees"),
    (axes(**IN_REGISTERS | {"tile_m": 128}), "operand_b=registers takes 96 registers"),
    (axes(**IN_REGISTERS | {"tile_n": 256}), "of which there are 3 at most"),
    (axes(**IN_REGISTERS | {"store": "staged"}), "stores together, by TMA"),
    (axes(**IN_REGISTERS | {"order": "snake"}), "order=snake"),
    (axes(**IN_REGISTERS | {"order": "period"}), "order=period"),
]


@pytest.mark.parametrize(("point", "sentence"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_the_source_refuses_is_known_before_the_build(
    point: dict[str, object], sentence: str
) -> None:
    assert sentence in " ".join(configured(point).refusals)


def test_the_table_is_laid_out_in_the_order_of_the_fragments() -> None:
    table = torch.arange(2 * 64, dtype=torch.bfloat16).reshape(2, 64)
    arranged = problem.arrange({"combined": table}, DEFAULTS)["combined"]
    for lane, group, column in ((0, 0, 0), (1, 0, 1), (2, 3, 0), (3, 1, 1)):
        got = arranged[1, 32 + 8 * lane + 2 * group + column]
        assert got == table[1, 32 + 8 * group + 2 * lane + column]


def test_the_output_is_stored_through_a_map_of_its_own(exports_of: ExportsOf) -> None:
    exports = exports_of("config_sm90a.cuh", DEFAULTS)
    launch = problem.launches(DEFAULTS, problem.sizes["full"], exports)[0]
    assert launch.grid == (132, 1, 1)
    out = launch.arguments[2]
    assert isinstance(out, TensorMap)
    assert (out.array, out.box, out.strides_bytes) == ("out", (64, 16), (1536,))


@pytest.mark.parametrize(
    ("changed", "size", "ctas"),
    [({}, "emulated", 4), ({"tile_n": 128, "stages": 12}, "emulated", 6), ({}, "full", 132)],
    ids=str,
)
def test_every_strip_has_a_cluster(
    changed: dict[str, object], size: str, ctas: int, exports_of: ExportsOf
) -> None:
    point = axes(**changed)
    (launch,) = problem.launches(point, problem.sizes[size], exports_of("config_sm90a.cuh", point))
    assert launch.grid == (ctas, 1, 1)


def test_tiles_that_load_the_table_into_registers_are_those_that_ncu_counted() -> None:
    """On an H200 a launch of the defaults had 276,096 global loads, 48 for each such tile."""
    point = axes(order="period", combined="registers", stages=6, boxes=2, prefetch=1)
    exports = configured(point).exports
    sizes = problem.sizes
    assert problem.loads(point, sizes["full"], exports) == 276_096 // 48
    for size in (sizes["emulated"], sizes["uneven"]):
        assert problem.loads(point, size, exports) == problem.tiles(point, size, exports)
    assert problem.loads(axes(), sizes["full"], exports) is None


def test_tiles_in_sequence_load_the_table_each() -> None:
    point = axes(order="linear", combined="registers")
    exports = configured(point).exports
    full = problem.sizes["full"]
    assert problem.loads(point, full, exports) == problem.tiles(point, full, exports)
