"""The arithmetic package against what an H200 computed, without the emulator around it."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_bounds import Bound

from . import elementwise, golden, matrices, sparse, wavefronts
from .cases import AREAS


@pytest.mark.parametrize("area", golden.recorded())
def test_golden_data_belongs_to_the_programs_and_inputs_of_today(area: str) -> None:
    assert golden.is_current(AREAS[area], golden.load(area))


@pytest.mark.parametrize("area", [a for a in elementwise.AREAS if a in golden.recorded()])
def test_instructions_compute_what_the_gpu_computes(area: str) -> None:
    outputs = golden.load(area).outputs
    for op, case in zip(elementwise.ops(area), golden.cases(area), strict=True):
        if op.reference is None:
            continue
        inputs = [case.arrays[letter] for letter in "abc"[: len(op.inputs)]]
        with np.errstate(all="ignore"):
            got = np.asarray(op.reference(*inputs)).astype(case.arrays["d"].dtype)
        gpu = outputs[op.name, "d"]
        wrong = differing(got, gpu, case.bound)
        assert not wrong.any(), (op.name, [hex(int(x[wrong][0])) for x in (*inputs, gpu, got)])


def differing(got: np.ndarray, gpu: np.ndarray, bound: Bound | None) -> np.ndarray:
    """Where two results differ: in any bit, or by more than the bound PTX states and a rounding."""
    if bound is None:
        return got != gpu
    with np.errstate(all="ignore"):
        x, y = (bits.view(np.float32).astype(np.float64) for bits in (got, gpu))
        step = np.spacing(np.abs(got.view(np.float32))).astype(np.float64)
        allowed = {"ulp": bound.size * step, "relative": bound.size * np.abs(x)}
        near = np.abs(x - y) <= allowed.get(bound.kind, bound.size) + step / 2
    if bound.domain != (-np.inf, np.inf):
        near |= np.isfinite(x) == np.isfinite(y)  # elsewhere only the class is promised
    # One step past the largest finite value is infinity.
    edge = np.abs(got.astype(np.int64) - gpu.astype(np.int64)) <= 2
    return (got != gpu) & ~near & ~edge


@pytest.mark.parametrize("product", [*matrices.MMA, *matrices.WGMMA], ids=lambda p: p.entry)
def test_tensor_instructions_compute_what_the_gpu_computes(product: matrices.Product) -> None:
    area = product.entry.split("_")[0]
    case = next(case for case in golden.cases(area) if case.name == product.entry)
    a, b, c = (case.arrays[name] for name in "abc")
    gpu = golden.load(area).outputs[product.entry, "d"].reshape(c.shape)
    assert np.array_equal(matrices.expected(product, a, b, c), gpu)


@pytest.mark.slow
@pytest.mark.parametrize("product", [*sparse.MMA, *sparse.WGMMA], ids=lambda p: p.entry)
def test_sparse_products_are_what_the_gpu_computes(product: sparse.Sparse) -> None:
    case = next(case for case in golden.cases("sparse") if case.name == product.entry)
    arrays = [case.arrays[name] for name in ("a", "b", "c", "meta")]
    gpu = golden.load("sparse").outputs[product.entry, "d"].reshape(arrays[2].shape)
    assert np.array_equal(sparse.expected(product, *arrays), gpu)


def test_shared_memory_wavefronts_follow_the_rule_in_every_pattern() -> None:
    counted = golden.wavefronts()
    for pattern in wavefronts.patterns():
        metrics = counted.pop((pattern.entry, pattern.name))
        assert wavefronts.by_rule(pattern) == metrics["memory_l1_wavefronts_shared"]
        assert wavefronts.ideal(pattern) == metrics["memory_l1_wavefronts_shared_ideal"]
    assert not counted
