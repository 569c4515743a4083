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


ERRORS = ModelledErrors(
    device="NVIDIA H200",
    times=232,
    mean=0.074,
    within=0.338,
    by_distance=(
        Error(distance=0.0, pairs=629, right=489),
        Error(distance=0.01, pairs=572, right=462),
        Error(distance=0.03, pairs=523, right=432),
        Error(distance=0.05, pairs=471, right=397),
        Error(distance=0.1, pairs=394, right=352),
        Error(distance=0.2, pairs=262, right=248),
    ),
)
