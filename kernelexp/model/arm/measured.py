"""Evidence of kind `measured`: what the samples of one measurement say of an arm."""

from __future__ import annotations

from typing import Literal

import msgspec

from kernelexp.model.measurement import Effect


class PrintedResult(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that a program printed in each of its runs."""

    value: float
    """The median."""
    unit: str
    better: Literal["less", "more"]


class MeasuredEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one measurement for an arm, computed from samples that the record keeps."""

    device: str
    size: str
    time_us: float | None
    """Of the baseline the median over all samples, of another arm that median times the ratio of
    their pairs; None where a program was judged by a figure that is not a time."""
    low_us: float | None
    """5th percentile of the arm's samples, scaled as its time is."""
    high_us: float | None
    """95th percentile, scaled alike."""
    flops: int = 0
    """Useful FLOPs of a launch; 0 where the problem does not say."""
    effect: Effect | None = None
    """Against the baseline; None for the baseline itself."""
    printed: dict[str, PrintedResult] = {}
    """What a program printed besides the time that it was judged by, if it was by a time."""
    judged: str = ""
    """The name in `printed` that the effect is of; empty where that is the time."""
