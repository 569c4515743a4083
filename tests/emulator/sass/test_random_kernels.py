"""Random kernels: what ptxas makes of them does what the PTX does, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from harness import ptx, run, run_sass
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import warpsim as emulator
from warpsim import Schedule

from .random_kernels import HELPER, OUTPUTS, SHARED, THREADS, WORDS, kernels

_EDGES = [0, 1, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x7F800000]


def differing(body: str, seed: int, target: str) -> dict[str, list[int]]:
    """Indices of the outputs in which the two executions differ, with what was found."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 1 << 32, THREADS * WORDS, np.uint32)
    edges = rng.random(a.size) < 0.3
    a[edges] = rng.choice(_EDGES, int(edges.sum()))
    text = ptx(body, ["a", "out"], target=target, shared=SHARED, extra=HELPER)
    wanted, got = (np.zeros(THREADS * OUTPUTS, np.uint32) for _ in range(2))
    promised = run(text, {"a": a, "out": wanted}, threads=THREADS)
    schedule = Schedule(seed=seed % 5)
    try:
        executed = run_sass(text, target, {"a": a, "out": got}, threads=THREADS, schedule=schedule)
    except emulator.UnsupportedInstruction:
        reject()  # refused by name, as a return that has a guard
    assert not promised.findings
    assert not executed.findings
    return {
        f"output {i}": [int(wanted.reshape(THREADS, -1)[t, i]), int(got.reshape(THREADS, -1)[t, i])]
        for t, i in np.argwhere((wanted != got).reshape(THREADS, -1))[:4]
    }


_SOME = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}


_TARGETS = ["sm_80", "sm_89", "sm_90a", "sm_100a"]


def _with_targets(size: int, targets: list[str]) -> st.SearchStrategy[tuple[str, str]]:
    """(body, target)"""
    return st.sampled_from(targets).flatmap(
        lambda target: st.tuples(kernels(size, target), st.just(target))
    )


@settings(max_examples=2, derandomize=True, **_SOME)
@given(_with_targets(16, ["sm_80", "sm_90a"]), st.integers(0, 1 << 20))
def test_a_random_kernel_has_the_same_result_in_both_instruction_sets(kernel, seed):
    body, target = kernel
    assert differing(body, seed, target) == {}


@pytest.mark.slow
@settings(max_examples=80, **_SOME)
@given(_with_targets(40, _TARGETS), st.integers(0, 1 << 20))
def test_many_random_kernels_have_the_same_result_in_both_instruction_sets(kernel, seed):
    body, target = kernel
    assert differing(body, seed, target) == {}
