"""From which sizes a problem's counters are extrapolated to the full one."""

from __future__ import annotations

import pytest

from kernelexp.dossier.emulations import second_size
from kernelexp.evidence.emulate.scaling import Extent


def job(tiles: int, ctas: int) -> tuple[Extent, ...]:
    return (Extent(tiles=tiles, ctas=ctas),)


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        ({"long": job(8192, 8192), "more": job(16, 16)}, "more"),
        ({"much": job(64, 64), "more": job(16, 16)}, "more"),
        ({"long": job(8192, 8192)}, None),
        ({"another job": (*job(16, 16), *job(1, 1))}, None),
    ],
)
def test_the_second_size_is_the_smallest_that_will_do(
    others: dict[str, tuple[Extent, ...]], chosen: str | None
) -> None:
    assert second_size(job(4, 4), others, job(128, 128)) == chosen
