"""The fifth-generation tensor core in SASS: tests of PTX, by what ptxas makes of their kernels."""

from __future__ import annotations

import pytest
import test_block_scaled as block_scaled
from harness import EARLY, LATE, run_sass


@pytest.fixture(autouse=True)
def in_sass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        block_scaled, "run", lambda text, arrays, **how: run_sass(text, "sm_100a", arrays, **how)
    )


def test_pairs_of_e2m1_with_a_scale_of_e4m3_per_16() -> None:
    block_scaled.block_scaled("mxf4nvf4", scale="ue4m3", size=".scale_vec::4X", n=96)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", [LATE, EARLY], ids=str)
@pytest.mark.parametrize(
    ("kind", "types", "scale", "size"),
    [
        ("mxf8f6f4", ("e4m3", "e4m3"), "ue8m0", ""),
        ("mxf8f6f4", ("e5m2", "e2m3"), "ue8m0", ".scale_vec::1X"),
        ("mxf4", ("e2m1", "e2m1"), "ue8m0", ".scale_vec::2X"),
        ("mxf4nvf4", ("e2m1", "e2m1"), "ue8m0", ".block16"),
    ],
)
def test_block_scaled_products(kind, types, scale, size, schedule) -> None:
    block_scaled.block_scaled(kind, types, scale, size, schedule=schedule)


@pytest.mark.slow
@pytest.mark.parametrize("m", [128, 256])
def test_scales_of_a_pair_of_ctas(m: int) -> None:
    block_scaled.test_a_pair_of_ctas_takes_the_scales_of_b_as_its_layout_has_them(m, 64)


@pytest.mark.slow
@pytest.mark.parametrize("m", [32, 64, 128])
def test_weight_stationary_products(m: int) -> None:
    block_scaled.test_a_weight_stationary_product_splits_n_over_the_lanes_that_m_leaves(m)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "bits"), [("b4x16_p64", 4), ("b6x16_p32", 6)])
def test_copies_that_widen_codes(form: str, bits: int) -> None:
    block_scaled.test_a_copy_widens_codes_of_4_and_6_bits_to_bytes(form, bits)


@pytest.mark.slow
def test_shifts_and_copies_of_four_rows() -> None:
    block_scaled.test_a_shift_moves_each_row_to_the_one_before_but_the_last_of_32()
    block_scaled.test_four_rows_reach_one_lane_of_each_quarter()
