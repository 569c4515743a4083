"""variants/patch_embed_gemm: what problem.py says, and that the source says the same."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from kernelexp import project
from kernelexp.facts.chips import find_arch
from kernelexp.project.problem import loader
from kernelexp.project.problem.consult import Configured, configure
from warpsim.launch import TensorMap

ROOT = Path(__file__).parents[2]
DEFAULTS = {
    "stages": 4,
    "tmem_load": "x32",
    "epilogue_warps": 5,
    "epilogue_bounds": "constant",
    "store": "staged",
    "phase2_unroll": 8,
    "combined": "inline",
    "mainloop_wait": "poll",
    "cta_group": 2,
    "tile_n": 256,
}
TINY = {"m": 6, "n": 64, "k": 32, "period": 4, "ctas": 2}

PROJECT = project.load(ROOT)
problem = loader.load(ROOT, "patch_embed_gemm")
ExportsOf = Callable[[str, dict[str, object]], dict[str, int]]


def axes(**changed: object) -> dict[str, object]:
    return DEFAULTS | changed


def decode(code: int) -> float:
    """E4M3 by its definition: sign, 4 bits of exponent with bias 7, 3 bits of significand."""
    sign, exponent, fraction = code >> 7, code >> 3 & 15, code & 7
    magnitude = (8 + fraction) * 2.0 ** (exponent - 10) if exponent else fraction * 2.0**-9
    return -magnitude if sign else magnitude


# Every value of the axes that a size depends on, and what the experiments combine.
SIZED = [
    axes(),
    axes(store="direct_v8"),
    axes(store="direct_v4", stages=5, epilogue_warps=4),
    axes(store="direct_v8", stages=6, epilogue_warps=6),
    axes(store="direct_v8", stages=6, epilogue_bounds="runtime"),
    axes(store="direct_v8", combined="smem_prefetch", epilogue_warps=4),
    axes(stages=5, epilogue_warps=4),
    axes(combined="prestage"),
    axes(combined="blocked"),
    axes(tile_n=128, epilogue_warps=6, stages=6),
    axes(cta_group=1, tile_n=128, store="direct_v4", epilogue_warps=4),
    axes(cta_group=1, tile_n=128, store="direct_v4", combined="smem_prefetch", stages=5),
    axes(cta_group=1, store="direct_v8"),
]


def configured(point: dict[str, object]) -> Configured:
    variant = PROJECT.variant("patch_embed_gemm", "sm_100a", point)
    (result,) = configure(ROOT, [variant], [problem.terms["sm_100a"]])
    assert not result.failure
    return result


@pytest.mark.parametrize("point", SIZED[::8], ids=str)
def test_the_host_compiler_computes_what_nvcc_computes(
    point: dict[str, object], exports_of: ExportsOf
) -> None:
    result = configured(point)
    assert result.exports == exports_of("config.cuh", point)
    assert result.refusals == ()


@pytest.mark.parametrize("point", SIZED, ids=str)
def test_what_the_source_compiles_nothing_refuses(point: dict[str, object]) -> None:
    assert configured(point).refusals == ()
    assert not list(problem.constraints(point, "sm_100a"))
    assert problem.budget(point, "sm_100a") is None


def test_the_shared_memory_is_the_published_one() -> None:
    def smem(**changed: object) -> int:
        return configured(axes(**changed)).exports["dynamic_smem_bytes"]

    assert smem() == 4 * 32 * 1024 + 128 + 5 * 16_896 == 215_680
    assert smem(store="direct_v8") == 131_200
    assert smem(store="direct_v8", stages=6) == 196_864


def test_terms_say_how_figures_come_about() -> None:
    terms = configured(DEFAULTS).terms
    assert terms["threads"] == "(2 + 5 epilogue warps) x 32"
    assert terms["dynamic_smem_bytes"] == (
        "4 stages x 32,768 B + barriers 128 B + 5 warps x 16,896 B of staging"
    )
    assert terms["tmem_columns"] == "256 columns x 2 accumulators"
    assert "staging" not in configured(axes(store="direct_v8")).terms["dynamic_smem_bytes"]


def test_five_stages_leave_no_room_for_five_staging_buffers() -> None:
    (reason,) = configured(axes(stages=5)).refusals
    assert reason == "a CTA has at most 232,448 bytes of shared memory"
    assert configured(axes(stages=5)).exports["dynamic_smem_bytes"] == 248_448


def test_a_group_of_four_ctas_is_refused_for_its_columns_and_for_the_instruction() -> None:
    point = axes(cta_group=4)
    budget = problem.budget(point, "sm_100a")
    assert budget is not None
    assert budget.tmem_columns == 1024 > find_arch("sm_100a").tmem_columns
    assert budget.terms["tmem_columns"] == "256 columns x 4 CTAs"
    assert configured(point).refusals == ("tcgen05 has cta_group::1 and cta_group::2 only",)


REFUSED = [
    (axes(combined="prestage", store="direct_v8"), "combined=prestage fills the staging buffers"),
    (axes(epilogue_bounds="runtime"), "a vector width for each number of columns"),
]


@pytest.mark.parametrize(("point", "sentence"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_the_source_refuses_is_known_before_the_build(
    point: dict[str, object], sentence: str
) -> None:
    (reason,) = configured(point).refusals
    assert sentence in reason


@pytest.mark.parametrize("axis", DEFAULTS)
def test_a_missing_axis_is_a_sentence(axis: str) -> None:
    text = (ROOT / "variants/patch_embed_gemm/axes.cuh").read_text()
    missing = rf'#ifndef KX_{axis.upper()}\n#error "KX_{axis.upper()} is missing \(axis {axis}: '
    assert re.search(missing, text)


def test_the_same_seed_gives_the_same_inputs() -> None:
    first, again, other = (problem.inputs(TINY, seed, "cpu") for seed in (1, 1, 2))
    for name, values in first.items():
        assert torch.equal(values.float(), again[name].float())
        assert not torch.equal(values.float(), other[name].float())


def test_no_two_rows_of_the_inputs_are_alike() -> None:
    for values in problem.inputs(problem.sizes["emulated"], 0, "cpu").values():
        assert len(values.float().unique(dim=0)) == len(values)


def test_the_operands_are_finite_and_have_subnormals_and_zeros() -> None:
    inputs = problem.inputs(problem.sizes["emulated"], 0, "cpu")
    for name, bound in (("a", 2.0), ("b", 0.25)):
        magnitudes = inputs[name].float().abs()
        assert magnitudes.max() < bound
        assert {0.0, 2.0**-9, 7 * 2.0**-9} <= set(magnitudes.unique().tolist())


def test_the_reference_is_the_definition() -> None:
    inputs = problem.inputs(TINY, 3, "cpu")
    codes = (inputs[name].view(torch.uint8).tolist() for name in ("a", "b"))
    a, b = (np.array([[decode(code) for code in row] for row in rows]) for rows in codes)
    table = inputs["combined"].double().numpy()
    want = [
        [sum(a[row] * b[column]) + table[row % 4, column] for column in range(64)]
        for row in range(6)
    ]
    (chunk,) = problem.reference(inputs, TINY)
    np.testing.assert_allclose(chunk.values.numpy(), want, rtol=0, atol=1e-12)


def test_the_reference_comes_in_pieces() -> None:
    size = TINY | {"m": 16_390}
    pieces = list(problem.reference(problem.inputs(size, 3, "cpu"), size))
    assert [(piece.first, len(piece.values)) for piece in pieces] == [(0, 16_384), (16_384, 6)]


def errors(got: torch.Tensor, want: torch.Tensor) -> int:
    """Elements beyond the tolerance."""
    bound = problem.tolerance(TINY, "sm_100a", DEFAULTS)
    wrong = (got.double() - want).abs() > bound.atol + bound.rtol * want.abs()
    return int(wrong.sum())


def test_the_tolerance_lets_the_rounding_to_bf16_pass() -> None:
    size = problem.sizes["emulated"]
    (chunk,) = problem.reference(problem.inputs(size, 0, "cpu"), size)
    assert errors(chunk.values.to(torch.bfloat16), chunk.values) == 0


def test_the_tolerance_catches_a_sum_that_lacks_one_mma() -> None:
    size = problem.sizes["emulated"]
    inputs = dict(problem.inputs(size, 0, "cpu"))
    (chunk,) = problem.reference(inputs, size)
    inputs["a"] = inputs["a"].clone()
    inputs["a"].view(torch.uint8)[:, 96:128] = 0
    (lacking,) = problem.reference(inputs, size)
    assert errors(lacking.values, chunk.values) > 0.9 * chunk.values.numel()


def test_the_blocked_table_is_the_one_that_the_kernel_indexes() -> None:
    inputs = problem.inputs(problem.sizes["emulated"], 0, "cpu")
    table = inputs["combined"].float().numpy()
    blocked = problem.arrange(inputs, axes(combined="blocked"))["combined"].float().numpy()
    # load_table in epilogue.cuh; a warp's rows begin at multiples of 4.
    first, lane, column = np.ogrid[0:196:4, 0:32, 0:768]
    row = first + lane
    block = row // 32 * (768 // 32) + column // 32
    flat = block * 32 * 32 + row % 32 * 32 + column % 32
    assert blocked.shape == (7, 24, 32, 32)
    assert np.array_equal(blocked.reshape(-1)[flat], table[row % 196, column])


@pytest.mark.parametrize("combined", ["inline", "smem_prefetch", "prestage"])
def test_other_variants_take_the_inputs_as_they_are(combined: str) -> None:
    inputs = problem.inputs(TINY, 0, "cpu")
    arranged = problem.arrange(inputs, axes(combined=combined))
    assert all(arranged[name] is values for name, values in inputs.items())


def test_a_launch_takes_its_boxes_from_the_exports(exports_of: ExportsOf) -> None:
    size = problem.sizes["full"]
    launch = problem.launches(DEFAULTS, size, exports_of("config.cuh", DEFAULTS))[0]
    a, b, _, _, row_tiles = launch.arguments
    assert (launch.grid, launch.block, launch.cluster) == ((148, 1, 1), (224, 1, 1), (2, 1, 1))
    assert isinstance(a, TensorMap)
    assert isinstance(b, TensorMap)
    assert (a.shape, a.strides_bytes, a.box) == ((768, 928_256), (768,), (128, 128))
    assert (b.shape, b.box, b.swizzle) == ((768, 768), (128, 128), "128B")
    assert row_tiles.value == 3626


def tiles_per_cluster(size: dict[str, int]) -> list[int]:
    tiles, clusters = size["m"] // 256 * 3, size["ctas"] // 2
    ends = [cluster * tiles // clusters for cluster in range(clusters + 1)]
    return [end - begin for begin, end in itertools.pairwise(ends)]


def test_the_sizes_share_the_tiles_as_their_comments_say() -> None:
    assert set(tiles_per_cluster(problem.sizes["full"])) == {147}
    assert tiles_per_cluster(problem.sizes["emulated"]) == [6]
    assert tiles_per_cluster(problem.sizes["uneven"]) == [1, 2, 1, 2]


def test_the_useful_work_is_the_published_one() -> None:
    work = problem.work(problem.sizes["full"])
    assert work.flops == 1_095_015_333_888
    assert round(work.bytes / 1e9, 3) == 2.140


# torch.compile takes 15 s to import, and its modules use torch.jit.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_the_peer_multiplies_the_same_operands() -> None:
    size = problem.sizes["emulated"]
    inputs = problem.inputs(size, 0, "cpu")
    product = problem.peers(inputs, size)["torch._scaled_mm, product only"]()
    want = inputs["a"].float() @ inputs["b"].float().T
    torch.testing.assert_close(product.float(), want, rtol=2**-8, atol=2**-11)
