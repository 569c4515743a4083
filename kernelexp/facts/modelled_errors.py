"""How far modelled times were from measured ones: printed by benchmarks/modelled_times.py."""

from __future__ import annotations

import msgspec


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
    variants: int
    mean: float
    """Of times, relative: the mean of its absolute value."""
    within: float
    """Nine of ten measured ratios are within this of the modelled one, as logarithms."""
    by_distance: tuple[Error, ...]
    """The smallest distance first."""


ERRORS = ModelledErrors(
    device="NVIDIA H200",
    variants=116,
    mean=0.12,
    within=0.14,
    by_distance=(Error(distance=0.0, pairs=633, right=1),),
)
