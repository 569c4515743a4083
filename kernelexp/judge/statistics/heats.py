"""Heats and a final: which arms of several measurements, each on one card, meet on one card.

Ratios to the baseline of the same card compare across cards, times do not. A ratio may still differ
a little from card to card, so only what is slower by more than the margin besides is sent away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from kernelexp.judge.statistics import racing
from kernelexp.judge.statistics.stats import ratios
from kernelexp.model.measurement import Effect, Measurement

FINALISTS_MAX = 24
"""A final of more arms would take longer than all heats."""
SMALLEST = 2
"""Candidates of a heat: fewer are not worth a measurement of their own."""

SLOW = 4.0
"""A baseline that takes longer than so many times the best of the heats is not in the final: of 34
s in a final of kernels that took 3.6 ms, nearly all went to a baseline of 275 ms (two H200)."""

Item = TypeVar("Item")


def count(candidates: int, cards: int) -> int:
    """Returns how many heats so many candidates make on so many cards; 1 is an ordinary race."""
    return max(1, min(cards, candidates // SMALLEST))


def deal(items: Sequence[Item], heats: int) -> list[list[Item]]:
    """The items of each heat: neighbours, which are much alike, go to different heats."""
    return [list(items[first::heats]) for first in range(heats)]


def finalists(heats: Sequence[Measurement], margin: float) -> list[str]:
    """The candidates that may be the fastest of all, the most promising first; at least one where
    any was timed."""
    ranked = _ranked(heats, margin)
    if not ranked:
        return []
    limit = min(ranked[0].high, 1.0) * (1.0 + margin)  # the baseline is in the final too
    kept = [effect.arm for effect in ranked if effect.low <= limit]
    return (kept or [ranked[0].arm])[:FINALISTS_MAX]


def among_themselves(heats: Sequence[Measurement], margin: float) -> list[str]:
    """The finalists, two at least, where the baseline is so slow that they meet without it, and are
    compared with the first of them; else empty."""
    ranked = _ranked(heats, margin)
    if len(ranked) < 2 or ranked[0].ratio * SLOW >= 1.0:
        return []
    names = finalists(heats, margin)
    return names if len(names) > 1 else [effect.arm for effect in ranked[:2]]


def _ranked(heats: Sequence[Measurement], margin: float) -> list[Effect]:
    effects = {effect.arm: effect for heat in heats for effect in _contenders(heat, margin)}
    return sorted(effects.values(), key=lambda effect: effect.ratio)


def _contenders(heat: Measurement, margin: float) -> list[Effect]:
    """The candidates of a heat that none of it was proved to be faster than, and its best one."""
    failed = {failure.arm for failure in heat.failures}
    if heat.invalid or "" in failed:
        return []
    effects = [ratio for ratio in ratios(heat)[0] if ratio.arm not in failed]
    race = racing.result(heat, margin)
    best = min(effects, key=lambda effect: effect.ratio, default=None)
    kept = set(race.contenders) if race else {effect.arm for effect in effects}
    return [effect for effect in effects if effect.arm in kept or effect is best]
