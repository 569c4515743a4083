"""Floating-point instructions whose number of operands varies."""

from __future__ import annotations

import numpy as np
import pytest
from harness import apply

from kernelexp.emulator import UnsupportedInstruction

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
