"""The kernels of tests/emulator/correct: what a GPU makes of them is what they must give."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from correct.page import SOURCES, kernels

from .case import Area, Case, case, words

AREAS = ("divergence", "synchronisation", "memory", "arithmetic", "hopper")
"""Those of sm_90a, without a cooperative launch."""
WORDS = 4096


def cases(area: str) -> Iterator[Case]:
    for _, kernel in (pair for pair in kernels() if pair[0] == area):
        arrays = {"out": words("", WORDS) * 0, "in": words(f"correct/{kernel.name}", WORDS)}
        arrays["scratch"] = words("", WORDS) * 0
        yield case(
            kernel.name,
            kernel.name,
            kernel.ctas,
            kernel.threads,
            arrays,
            "out",
            *kernel.maps,
            cluster=kernel.cluster,
        )


def areas() -> Iterator[Area]:
    for area in AREAS:
        yield Area(
            name=f"correct_{area}",
            cases=functools.partial(cases, area),
            source=SOURCES / f"{area}.cu",
        )
