"""Floating-point instructions whose number of operands varies."""

from __future__ import annotations

import numpy as np
import pytest
from harness import apply

from warpsim import UnsupportedInstruction

VALUES = [np.array(values, np.float32) for values in ([1, -2, 3], [2, -7, np.nan], [0, -1, 4])]


@pytest.mark.parametrize(("name", "want"), [("max", [2, -1, 4]), ("min", [0, -7, 3])])
def test_an_extreme_may_be_of_three_values(name, want):
    bits = [values.view(np.uint32) for values in VALUES]
    assert apply(f"{name}.f32", *bits, result=32).view(np.float32).tolist() == want
    two = apply(f"{name}.f32", *bits[:2], result=32).view(np.float32)
    assert two.tolist() == (getattr(np, f"f{name}")(*VALUES[:2])).tolist()


def test_an_extreme_of_one_value_is_refused():
    with pytest.raises(UnsupportedInstruction, match="has 2 operands where 3 are expected"):
        apply("max.f32", VALUES[0].view(np.uint32), result=32)


def test_tanh_of_halves_and_their_flushed_comparison():
    one, tiny = np.array([0x3C00_0000], np.uint32), np.array([0x0000_0001], np.uint32)
    assert apply("tanh.approx.f16x2", one, result=32)[0] == 0x3A18_0000
    assert apply("set.lt.f16x2.f16x2", np.zeros_like(tiny), tiny, result=32)[0] == 0x3C00
    assert apply("set.lt.ftz.f16x2.f16x2", np.zeros_like(tiny), tiny, result=32)[0] == 0


@pytest.mark.parametrize(("ftz", "picked"), [("", 2), (".ftz", 1)])
def test_a_selection_by_a_subnormal(ftz: str, picked: int) -> None:
    one, two, negative = (np.array([bits], np.uint32) for bits in (1, 2, 0x80000001))
    assert apply(f"slct{ftz}.u32.f32", one, two, negative, result=32).tolist() == [picked]
