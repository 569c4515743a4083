"""Sets of rows or columns in words: all, a range, every fourth, eight of every sixteen."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def describe_set(indices: Sequence[int], extent: int, name: str) -> str:
    """Ascending `indices` of range(extent), such as "rows 96 to 127"; empty where it is all."""
    if len(indices) == extent:
        return ""
    if len(indices) == 1:
        return f"{name} {indices[0]}"
    runs = list(_runs(indices))
    first = runs[0][0]
    if len(runs) == 1:
        return f"{name}s {first} to {indices[-1]}"
    if len(indices) > _NEARLY_ALL * extent:
        missing = sorted(set(range(extent)) - set(indices))
        return f"all {name}s but {describe_set(missing, extent, name)}"
    lengths = {end - begin for begin, end in runs[:-1]}
    steps = {later[0] - run[0] for run, later in itertools.pairwise(runs)}
    if len(lengths) == len(steps) == 1 and runs[-1][1] - runs[-1][0] <= min(lengths):
        (length,), (step,) = lengths, steps
        if length == 1:
            return f"every {ordinal(step)} {name} from {first} to {indices[-1]}"
        return f"{length} of every {step} {name}s from {first} to {indices[-1]}"
    return f"{len(indices):,} {name}s between {first} and {indices[-1]}"


_NEARLY_ALL = 0.95


def _runs(indices: Sequence[int]) -> list[tuple[int, int]]:
    """Maximal ranges [begin, end) of successive indices."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and runs[-1][1] == index:
            runs[-1] = (runs[-1][0], index + 1)
        else:
            runs.append((index, index + 1))
    return runs


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
