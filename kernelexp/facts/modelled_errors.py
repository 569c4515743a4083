"""How far modelled times were from measured ones: `kernelexp calibrate --model --validate`."""

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
DISTANCES = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
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
    """What a modelled ratio of two variants is worth."""

    within: float
    """Eight of ten measured ratios are within this, times (OFFSET and the distance of the modelled
    one), of the modelled one, all as logarithms."""
    resolution: float
    """Of ratios that are so far from 1, or farther, nine of ten are ranked right."""


class ErrorsApart(msgspec.Struct, frozen=True, kw_only=True):
    """Of the model on measured pairs that are equally far apart."""

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
    """Of the model on measured records."""

    device: str
    times: int
    """Of arms of runs."""
    mean: float
    """Of times, relative: the mean of its absolute value."""
    apart: tuple[ErrorsApart, ...]

    def of(self, apart: Apart) -> ErrorsApart:
        """Of two variants that are so far apart."""
        return next(errors for errors in self.apart if errors.apart == apart)


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
    apart=tuple(
        ErrorsApart(
            apart=apart,
            worth=Worth(within=0.333, resolution=0.2),
            pairs=629,
            inside=510,
            decided=315,
            right=283,
            by_distance=(RankedPairs(distance=0.0, pairs=629, right=516),),
        )
        for apart in ("one axis", "several axes", "another source")
    ),
)

PUBLISHED = PublishedErrors(
    chip="B200", kernel="patch_embed_gemm", times=23, mean=0.175, steps=14, right=10
)
"""benchmarks/published_history.py"""
