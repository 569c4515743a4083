"""variants/flash_attention, flash_attention_hopper, fa_4x4: problem.py and sources, unexecuted."""

from __future__ import annotations

import math

import msgspec
import pytest
import torch
from support import ROOT

from kernelexp import project
from kernelexp.evidence.measure import results
from kernelexp.facts.chips import find_arch
from kernelexp.model.experiment import Point
from kernelexp.project.problem import loader
from kernelexp.project.problem.consult import Configured, configure
from warpsim.launch import TensorMap

PROJECT = project.load(ROOT)
phases = loader.load(ROOT, "flash_attention")
hopper = loader.load(ROOT, "flash_attention_hopper")
register_tiles = loader.load(ROOT, "fa_4x4")


def configured(kernel: str, **changed: object) -> Configured:
    variant = PROJECT.variant(kernel, "sm_90a")
    variant = msgspec.structs.replace(variant, axes=variant.axes | changed)
    (result,) = configure(ROOT, [variant], [hopper.terms if "hopper" in kernel else {}])
    assert not result.failure
    return result


def refusals(kernel: str, **changed: object) -> str:
    return " ".join(configured(kernel, **changed).refusals)


@pytest.mark.parametrize("phase", ["minimal", 1, 3, 5, 6, 7])
def test_every_phase_has_a_variant(phase: str | int) -> None:
    assert not refusals("flash_attention", phase=phase, block_m=64 if phase not in (1, 3) else 32)


def test_64_rows_of_queries_do_not_fit_into_static_shared_memory() -> None:
    assert "49,152 bytes that static shared memory" in refusals(
        "flash_attention", phase=3, block_m=64
    )


def test_a_warp_has_16_rows_where_tensor_cores_multiply() -> None:
    assert "block_m = 16 x num_warps" in refusals("flash_attention", phase=6, num_warps=8)
    assert not refusals("flash_attention", phase=6, num_warps=8, block_m=128)


@pytest.mark.parametrize(
    "point",
    [
        {"block_m": 192, "block_n": 176},
        {"block_m": 192, "head_dim": 128},
    ],
    ids=str,
)
def test_what_registers_do_not_hold_is_refused(point: Point) -> None:
    assert "do not fit into a thread's registers" in refusals("flash_attention_hopper", **point)


def test_the_terms_add_up_to_the_shared_memory() -> None:
    result = configured("flash_attention_hopper")
    assert result.terms["dynamic_smem_bytes"] == (
        "1 x Q 16,384 B + 2 stages x 2 x 16,384 B of K and V + barriers 80 B"
    )
    assert result.exports["dynamic_smem_bytes"] == 16_384 + 4 * 16_384 + 80


def test_two_ctas_of_one_warpgroup_share_an_sm() -> None:
    used = configured("flash_attention_hopper", block_m=64).exports["dynamic_smem_bytes"]
    arch = find_arch("sm_90a")
    assert 2 * (used + arch.smem_reserved_bytes) <= arch.smem_per_sm_bytes


def test_a_box_of_keys_ends_with_its_head() -> None:
    exports = configured("flash_attention_hopper").exports
    launch = hopper.launches({}, hopper.sizes["emulated128"] | {"d": 64}, exports)[0]
    assert launch.grid == (6, 1, 1)
    keys = launch.arguments[1]
    assert isinstance(keys, TensorMap)
    assert (keys.shape, keys.box) == ((64, 320, 2), (64, 128, 1))


def test_persistent_ctas_are_as_many_as_run_at_once() -> None:
    exports = configured("flash_attention_hopper", ctas="persistent", block_m=64).exports
    assert hopper.launches({}, hopper.sizes["full"], exports)[0].grid == (2 * 132, 1, 1)


def test_a_head_with_too_many_columns_is_refused() -> None:
    exports = configured("flash_attention_hopper").exports
    with pytest.raises(Exception, match="head_dim=64 has no room for 128 columns"):
        hopper.launches({}, hopper.sizes["long128"], exports)


def test_a_tile_that_does_not_divide_the_keys_is_refused() -> None:
    exports = configured("flash_attention").exports
    with pytest.raises(Exception, match="block_m=64 does not divide 96"):
        phases.launches({"phase": 7}, {"b": 1, "h": 1, "s": 96, "d": 64}, exports)


def test_both_kernels_solve_the_same_problem() -> None:
    one, other = (problem.folder / "attention.py" for problem in (phases, hopper))
    assert one.read_text() == other.read_text()
    size = hopper.sizes["short"]
    assert {name: size[name] for name in "bhsd"} == phases.sizes["full"]


@pytest.mark.parametrize(
    "problem",
    [phases, pytest.param(register_tiles, marks=pytest.mark.slow)],
    ids=lambda item: item.name,
)
def test_the_reference_is_that_of_torch(problem: loader.Problem) -> None:
    size = problem.sizes["emulated_more"]
    inputs = problem.inputs(size, 0, "cpu")
    q, k, v = (input_.double() for input_ in inputs.values())
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v).flatten(0, -2)
    for chunk in problem.reference(inputs, size):
        rows = want[chunk.first : chunk.first + len(chunk.values)]
        torch.testing.assert_close(chunk.values, rows, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("problem", [phases, register_tiles], ids=lambda item: item.name)
def test_a_lost_key_is_out_of_tolerance(problem: loader.Problem) -> None:
    size = problem.sizes["emulated_more"]
    inputs = problem.inputs(size, 0, "cpu")
    shorter = {name: item[..., :-1, :] for name, item in inputs.items() if name != "q"}
    (name, array), *_ = problem.outputs(size).items()
    wrong = torch.nn.functional.scaled_dot_product_attention(inputs["q"], **_named(shorter))
    kind = torch.float16 if array.dtype == "f16" else torch.float32
    outputs = {name: wrong.reshape(array.shape).to(kind)}
    (result,) = results.compare(
        outputs, problem.reference(inputs, size), problem.tolerance(size, "sm_90a", {})
    )
    assert result.wrong > 0.3 * math.prod(array.shape)


def _named(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"key": inputs["k"], "value": inputs["v"]}
