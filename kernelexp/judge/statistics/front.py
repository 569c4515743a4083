"""The variants that no other beats in time, registers and shared memory at once (Pareto)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a variant; less of each is better."""

    time: float | None
    """Of any unit; None where nothing was timed: then resources decide alone."""
    resources: tuple[int, ...]


def front(costs: Mapping[str, Cost], margin: float) -> tuple[str, ...]:
    """The names that are not dominated, in their order.

    A time counts as shorter only beyond the margin, so that noise neither wins nor loses a place.
    """
    return tuple(
        name
        for name, own in costs.items()
        if not any(_dominates(other, own, margin) for other in costs.values())
    )


def _dominates(one: Cost, other: Cost, margin: float) -> bool:
    """Whether `one` is no worse in anything and better in something."""
    pairs = list(zip(one.resources, other.resources, strict=True))
    if any(mine > others for mine, others in pairs):
        return False
    cheaper = any(mine < others for mine, others in pairs)
    if one.time is None or other.time is None:
        return cheaper and one.time is other.time
    is_faster = one.time * (1.0 + margin) < other.time
    is_slower = one.time > other.time * (1.0 + margin)
    return not is_slower and (cheaper or is_faster)
