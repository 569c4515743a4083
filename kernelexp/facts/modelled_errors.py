"""How far modelled times were from measured ones: `kernelexp calibrate --model --validate`."""

from __future__ import annotations

import msgspec

HELD = 0.8
"""Of measured ratios, what an interval is to hold."""
OFFSET = 0.3
"""An interval is as wide as this and the modelled logarithm of a ratio together: of widths that
grow with the ratio, the one that held as many ratios of other experiments as it was to hold."""


class Error(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of variants of one run that the model puts so far apart, or farther."""

    distance: float
    """Of the modelled ratio from 1."""
    pairs: int
    right: int
    """Of them, those that are so measured, too."""


class ModelledErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Of the model on measured records."""

    device: str
    times: int
    """Of arms of runs."""
    mean: float
    """Of times, relative: the mean of its absolute value."""
    within: float
    """Eight of ten measured ratios are within this, times (0.3 and the distance of the modelled
    one), of the modelled one, all as logarithms."""
    by_distance: tuple[Error, ...]
    """The smallest distance first."""


class PublishedErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Of the model on what others published of a chip that nobody here has measured."""

    chip: str
    kernel: str
    times: int
    mean: float
    steps: int
    """Of 3% or more."""
    right: int
    """Of them, those whose sign the model has."""


ERRORS = ModelledErrors(
    device="NVIDIA H200",
    times=232,
    mean=0.083,
    within=0.333,
    by_distance=(
        Error(distance=0.0, pairs=629, right=516),
        Error(distance=0.01, pairs=563, right=476),
        Error(distance=0.03, pairs=490, right=421),
        Error(distance=0.05, pairs=459, right=402),
        Error(distance=0.1, pairs=372, right=333),
        Error(distance=0.2, pairs=268, right=248),
    ),
)

PUBLISHED = PublishedErrors(
    chip="B200", kernel="patch_embed_gemm", times=23, mean=0.175, steps=14, right=10
)
"""benchmarks/published_history.py"""
