"""Slow drift: steps in a variant's times over its records, by change-point detection.

A change of 0.3% is within any margin, and ten of them are not. The segments are those of PELT
(Killick, Fearnhead and Eckley 2012, "Optimal detection of changepoints with a linear computational
cost"), as `ruptures` has it, on the logarithms of the times; the noise is estimated from successive
differences, which steps hardly change.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import msgspec

RECORDS_MIN = 6
"""Fewer times make no segments."""
NOISE_MIN = 0.001
"""Times of one GPU differ by this from run to run, however quiet it is."""
PENALTY = 3.0
"""Of a further segment, times log(n), in units of the squared noise; 2 is that of the BIC."""
_TO_SIGMA = 1.4826 / math.sqrt(2)
"""From the median absolute difference of neighbours to a standard deviation."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """A variant's time in one record."""

    run: str
    commit: str
    time_us: float


class DriftStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step from which on times are others than before."""

    since: Timing
    ratio: float
    """Median time of this segment over that of the one before."""


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """The course of times over records."""

    records: int
    ratio: float
    """Median time of the last segment over that of the fastest."""
    steps: tuple[DriftStep, ...]
    """After the fastest segment, oldest first; none where it is the last one."""


def find(times: Sequence[Timing]) -> Drift | None:
    """The drift of times of one GPU, oldest first; None where there are fewer than RECORDS_MIN."""
    if len(times) < RECORDS_MIN:
        return None
    bounds = [0, *_change_points([math.log(time_.time_us) for time_ in times])]
    segments = [times[low:high] for low, high in itertools.pairwise(bounds)]
    medians = [statistics.median(timing.time_us for timing in segment) for segment in segments]
    # Of two that are equally fast the later one, so that a time that came back is no drift.
    best = min(range(len(medians)), key=lambda place: (medians[place], -place))
    return Drift(
        records=len(times),
        ratio=medians[-1] / medians[best],
        steps=tuple(
            DriftStep(since=segments[place][0], ratio=medians[place] / medians[place - 1])
            for place in range(best + 1, len(segments))
        ),
    )


def _change_points(values: Sequence[float]) -> list[int]:
    """Returns where segments end, the end of the last one included."""
    import numpy as np
    import ruptures

    steps = [abs(after - before) for before, after in itertools.pairwise(values)]
    noise = max(NOISE_MIN, _TO_SIGMA * statistics.median(steps))
    signal = (np.array(values) / noise).reshape(-1, 1)
    pelt = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(signal)
    return [int(end) for end in pelt.predict(pen=PENALTY * math.log(len(values)))]
