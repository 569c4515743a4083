"""Errors of modelled times against measured ones: `kernelexp calibrate --model --validate`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

HELD = 0.8
"""Of measured ratios, what an interval is to hold."""
SURE = 0.9
"""Of modelled ratios that are decided, what is to be ranked right."""
OFFSET = 0.3
"""An interval is as wide as this and the modelled logarithm of a ratio together: of widths that
grow with the ratio, the one that held as many ratios of other experiments as it was to hold."""
DISTANCES = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3)
LEAST = 0.02
"""Ratios nearer to 1 are never decided by a resolution."""
NEVER = 1e9
Apart: TypeAlias = Literal["one axis", "several axes", "another source"]
"""How far apart two variants are: in one axis of a kernel, in several, or they are two kernels that
solve one problem."""


class RankedPairs(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of variants of one run that the model puts so far apart, or farther."""

    distance: float
    """Of the modelled ratio from 1."""
    pairs: int
    right: int
    """Of them, those that are so measured, too."""


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """The reliability of a modelled ratio of two variants."""

    within: float
    """Eight of ten measured ratios are within this, times (OFFSET and the distance of the modelled
    one), of the modelled one, all as logarithms."""
    resolution: float
    """Of ratios that are so far from 1, or farther, nine of ten are ranked right."""


class ErrorsApart(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of the model on measured pairs that are equally far apart."""

    apart: Apart
    worth: Worth
    pairs: int
    inside: int
    """Whose measured ratio is inside the interval that other experiments give."""
    decided: int
    """By other experiments."""
    right: int
    """Of those decided."""
    by_distance: tuple[RankedPairs, ...]
    """The smallest distance first."""


class ModelledErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of the model on measured records."""

    device: str
    times: int
    """Of arms of runs."""
    mean: float
    """Of times, relative: the mean of its absolute value."""
    apart: tuple[ErrorsApart, ...]

    def of(self, apart: Apart) -> ErrorsApart:
        """Returns the errors for two variants that are so far apart."""
        return next(errors for errors in self.apart if errors.apart == apart)


class PublishedErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of the model on published times of a chip that nobody here has measured."""

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
    mean=0.071,
    apart=(
        ErrorsApart(
            apart="one axis",
            worth=Worth(within=0.274, resolution=0.02),
            pairs=269,
            inside=218,
            decided=202,
            right=175,
            by_distance=(
                RankedPairs(distance=0.0, pairs=269, right=206),
                RankedPairs(distance=0.01, pairs=217, right=181),
                RankedPairs(distance=0.02, pairs=202, right=175),
                RankedPairs(distance=0.03, pairs=188, right=164),
                RankedPairs(distance=0.04, pairs=161, right=143),
                RankedPairs(distance=0.05, pairs=157, right=139),
                RankedPairs(distance=0.06, pairs=150, right=134),
                RankedPairs(distance=0.07, pairs=141, right=127),
                RankedPairs(distance=0.08, pairs=132, right=123),
                RankedPairs(distance=0.1, pairs=120, right=111),
                RankedPairs(distance=0.12, pairs=105, right=97),
                RankedPairs(distance=0.15, pairs=93, right=85),
                RankedPairs(distance=0.2, pairs=68, right=64),
                RankedPairs(distance=0.3, pairs=38, right=38),
            ),
        ),
        ErrorsApart(
            apart="several axes",
            worth=Worth(within=0.364, resolution=0.07),
            pairs=360,
            inside=297,
            decided=273,
            right=238,
            by_distance=(
                RankedPairs(distance=0.0, pairs=360, right=292),
                RankedPairs(distance=0.01, pairs=337, right=283),
                RankedPairs(distance=0.02, pairs=332, right=283),
                RankedPairs(distance=0.03, pairs=320, right=273),
                RankedPairs(distance=0.04, pairs=313, right=267),
                RankedPairs(distance=0.05, pairs=303, right=259),
                RankedPairs(distance=0.06, pairs=292, right=251),
                RankedPairs(distance=0.07, pairs=273, right=238),
                RankedPairs(distance=0.08, pairs=262, right=233),
                RankedPairs(distance=0.1, pairs=244, right=220),
                RankedPairs(distance=0.12, pairs=222, right=200),
                RankedPairs(distance=0.15, pairs=204, right=188),
                RankedPairs(distance=0.2, pairs=178, right=170),
                RankedPairs(distance=0.3, pairs=115, right=115),
            ),
        ),
        ErrorsApart(
            apart="another source",
            worth=Worth(within=0.210, resolution=0.02),
            pairs=37,
            inside=32,
            decided=33,
            right=30,
            by_distance=(
                RankedPairs(distance=0.0, pairs=37, right=32),
                RankedPairs(distance=0.01, pairs=35, right=31),
                RankedPairs(distance=0.02, pairs=33, right=30),
                RankedPairs(distance=0.03, pairs=32, right=30),
                RankedPairs(distance=0.04, pairs=31, right=30),
                RankedPairs(distance=0.05, pairs=31, right=30),
                RankedPairs(distance=0.06, pairs=30, right=30),
                RankedPairs(distance=0.07, pairs=30, right=30),
                RankedPairs(distance=0.08, pairs=30, right=30),
                RankedPairs(distance=0.1, pairs=30, right=30),
                RankedPairs(distance=0.12, pairs=30, right=30),
                RankedPairs(distance=0.15, pairs=28, right=28),
                RankedPairs(distance=0.2, pairs=28, right=28),
                RankedPairs(distance=0.3, pairs=27, right=27),
            ),
        ),
    ),
)
"""The pairs of two kernels are of llm.c on an H100: benchmarks/public_times.py."""

PUBLISHED = PublishedErrors(
    chip="B200", kernel="patch_embed_gemm", times=20, mean=0.160, steps=14, right=9
)
"""benchmarks/published_history.py"""
