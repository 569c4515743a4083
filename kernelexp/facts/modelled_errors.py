"""Errors of modelled times against measured ones: `kernelexp calibrate --model --validate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

HELD = 0.8
"""Of measured ratios, what an interval is to hold, and in how many of the experiments."""
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
    """In eight of ten experiments, eight of ten measured ratios are within this, times (OFFSET and
    the distance of the modelled one), of the modelled one, all as logarithms."""
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


def _ranked(*, pairs: Sequence[int], right: Sequence[int]) -> tuple[RankedPairs, ...]:
    """Pairs so far apart, and those of them that are ranked right, at each of DISTANCES."""
    return tuple(
        RankedPairs(distance=distance, pairs=count, right=of_them)
        for distance, count, of_them in zip(DISTANCES, pairs, right, strict=True)
    )


ERRORS = ModelledErrors(
    device="NVIDIA H200",
    times=232,
    mean=0.061,
    apart=(
        ErrorsApart(
            apart="one axis",
            worth=Worth(within=0.225, resolution=0.01),
            pairs=269,
            inside=246,
            decided=211,
            right=190,
            by_distance=_ranked(
                pairs=(269, 215, 199, 177, 156, 136, 133, 122, 112, 102, 87, 87, 71, 36),
                right=(225, 194, 185, 172, 154, 135, 132, 122, 112, 102, 87, 87, 71, 36),
            ),
        ),
        ErrorsApart(
            apart="several axes",
            worth=Worth(within=0.281, resolution=0.01),
            pairs=360,
            inside=345,
            decided=344,
            right=320,
            by_distance=_ranked(
                pairs=(360, 344, 330, 305, 293, 272, 254, 245, 226, 211, 194, 175, 143, 84),
                right=(332, 320, 307, 290, 281, 265, 248, 240, 226, 211, 194, 175, 143, 84),
            ),
        ),
        ErrorsApart(
            apart="another source",
            worth=Worth(within=0.180, resolution=0.03),
            pairs=37,
            inside=30,
            decided=35,
            right=31,
            by_distance=_ranked(
                pairs=(37, 35, 34, 32, 31, 31, 30, 30, 30, 30, 30, 28, 28, 27),
                right=(31, 31, 30, 30, 30, 30, 30, 30, 30, 30, 30, 28, 28, 27),
            ),
        ),
    ),
)
"""The pairs of two kernels are of llm.c on an H100: benchmarks/public_times.py."""

PUBLISHED = PublishedErrors(
    chip="B200", kernel="patch_embed_gemm", times=14, mean=0.087, steps=9, right=8
)
"""benchmarks/published_commits.py"""
