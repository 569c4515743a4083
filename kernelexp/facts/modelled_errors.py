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
LEAST = 0.01
"""Ratios nearer to 1 are never decided by a resolution: what is less than a run's margin matters to
nobody."""
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
    mean=0.060,
    apart=(
        ErrorsApart(
            apart="one axis",
            worth=Worth(within=0.156, resolution=0.01),
            pairs=269,
            inside=217,
            decided=214,
            right=195,
            by_distance=(
                RankedPairs(distance=0.0, pairs=269, right=228),
                RankedPairs(distance=0.01, pairs=214, right=195),
                RankedPairs(distance=0.02, pairs=194, right=180),
                RankedPairs(distance=0.03, pairs=173, right=164),
                RankedPairs(distance=0.04, pairs=151, right=147),
                RankedPairs(distance=0.05, pairs=141, right=138),
                RankedPairs(distance=0.06, pairs=134, right=131),
                RankedPairs(distance=0.07, pairs=129, right=129),
                RankedPairs(distance=0.08, pairs=122, right=122),
                RankedPairs(distance=0.1, pairs=112, right=112),
                RankedPairs(distance=0.12, pairs=97, right=97),
                RankedPairs(distance=0.15, pairs=87, right=87),
                RankedPairs(distance=0.2, pairs=73, right=73),
                RankedPairs(distance=0.3, pairs=36, right=36),
            ),
        ),
        ErrorsApart(
            apart="several axes",
            worth=Worth(within=0.163, resolution=0.01),
            pairs=360,
            inside=290,
            decided=341,
            right=308,
            by_distance=(
                RankedPairs(distance=0.0, pairs=360, right=322),
                RankedPairs(distance=0.01, pairs=345, right=311),
                RankedPairs(distance=0.02, pairs=326, right=298),
                RankedPairs(distance=0.03, pairs=313, right=290),
                RankedPairs(distance=0.04, pairs=301, right=283),
                RankedPairs(distance=0.05, pairs=273, right=260),
                RankedPairs(distance=0.06, pairs=268, right=255),
                RankedPairs(distance=0.07, pairs=248, right=241),
                RankedPairs(distance=0.08, pairs=240, right=233),
                RankedPairs(distance=0.1, pairs=216, right=214),
                RankedPairs(distance=0.12, pairs=199, right=199),
                RankedPairs(distance=0.15, pairs=183, right=183),
                RankedPairs(distance=0.2, pairs=129, right=129),
                RankedPairs(distance=0.3, pairs=82, right=82),
            ),
        ),
        ErrorsApart(
            apart="another source",
            worth=Worth(within=0.180, resolution=0.03),
            pairs=37,
            inside=30,
            decided=35,
            right=31,
            by_distance=(
                RankedPairs(distance=0.0, pairs=37, right=31),
                RankedPairs(distance=0.01, pairs=35, right=31),
                RankedPairs(distance=0.02, pairs=34, right=30),
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
    chip="B200", kernel="patch_embed_gemm", times=20, mean=0.159, steps=14, right=9
)
"""benchmarks/published_history.py"""
