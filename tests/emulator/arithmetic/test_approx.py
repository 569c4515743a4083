from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_bounds import BOUNDS

from warpsim.arithmetic import approx

INF = math.inf
TRUE = {
    "ex2": lambda x: 2.0**x, "lg2": math.log2, "rcp": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / math.sqrt(x), "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos,
    "tanh": math.tanh,
}  # fmt: skip
DOMAIN = {
    "ex2": (-120.0, 120.0), "lg2": (0.5, 2.0), "rcp": (1e-30, 1e30), "rsqrt": (1e-30, 1e30),
    "sqrt": (1e-30, 1e30), "sin": (-6.28, 6.28), "cos": (-6.28, 6.28), "tanh": (-9.0, 9.0),
}  # fmt: skip


def pattern(x: float) -> np.ndarray:
    return np.array([x], np.float32).view(np.uint32)


def allowed(name: str, true: float) -> float:
    bound = BOUNDS[name]
    if bound.kind == "absolute":
        return bound.size
    if bound.kind == "relative":
        return bound.size * abs(true)
    return bound.size * float(np.spacing(np.float32(abs(true))))


@pytest.mark.parametrize("name", TRUE)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_result_lies_within_ptxs_bound(name: str, data) -> None:  # type: ignore[no-untyped-def]
    low, high = (float(np.float32(limit)) for limit in DOMAIN[name])
    x = data.draw(st.floats(low, high, width=32).filter(lambda x: x != 0))
    got = float(getattr(approx, name)(pattern(x)).view(np.float32)[0])
    assert abs(got - TRUE[name](x)) <= allowed(name, TRUE[name](x))


@given(st.floats(2.0**-60, 2.0**60, width=32), st.floats(2.0**-60, 2.0**60, width=32))
def test_a_quotient_lies_within_ptxs_bound(a: float, b: float) -> None:
    got = float(approx.div(pattern(a), pattern(b)).view(np.float32)[0])
    assert abs(got - a / b) <= allowed("div", a / b)


@pytest.mark.parametrize(
    ("name", "x", "wanted"),
    [
        ("ex2", -INF, 0.0), ("ex2", INF, INF), ("ex2", -0.0, 1.0), ("lg2", 0.0, -INF),
        ("lg2", -0.0, -INF), ("lg2", INF, INF), ("lg2", -1.0, math.nan), ("rcp", -0.0, -INF),
        ("rcp", -INF, -0.0), ("rsqrt", -0.0, -INF), ("rsqrt", INF, 0.0), ("rsqrt", -2.0, math.nan),
        ("sqrt", -0.0, -0.0), ("sqrt", -1.0, math.nan), ("sqrt", INF, INF), ("sin", -0.0, -0.0),
        ("sin", INF, math.nan), ("cos", 0.0, 1.0), ("cos", -INF, math.nan), ("tanh", -INF, -1.0),
        ("tanh", -0.0, -0.0), ("tanh", math.nan, math.nan),
    ],
)  # fmt: skip
def test_special_arguments_give_ptxs_special_results(name: str, x: float, wanted: float) -> None:
    got = int(getattr(approx, name)(pattern(x))[0])
    assert got == (0x7FFFFFFF if math.isnan(wanted) else int(pattern(wanted)[0]))


@pytest.mark.parametrize(("a", "full", "wanted"), [(1.0, False, 0.0), (INF, False, math.nan),
                                                   (2.0**127, True, 1.0)])  # fmt: skip
def test_a_huge_divisor_gives_zero_unless_the_full_range_is_asked(
    a: float, full: bool, wanted: float
) -> None:
    got = approx.div(pattern(a), pattern(2.0**127), full=full).view(np.float32)[0]
    assert got == wanted or (math.isnan(wanted) and math.isnan(got))
