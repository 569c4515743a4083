"""One verdict over several sizes, where the best arm changes, and which arm is best at each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

from kernelexp.judge import verdict
from kernelexp.model.arm import Status, Verdict
from kernelexp.model.measurement import BASELINE, Effect
from kernelexp.model.record import SizeResult


class Crossover(msgspec.Struct, frozen=True, kw_only=True):
    """Two neighbouring sizes between which another arm becomes the best."""

    after: str
    before: str
    was: str
    """The best arm at size `after`."""
    now: str
    at: float | None = None
    """Of the one parameter in which the sizes differ, where straight lines through the logarithms
    of both times meet; None where the sizes do not differ in one, or the lines do not meet."""
    parameter: str = ""


def weighted(results: Sequence[SizeResult], name: str) -> Effect | None:
    """The weighted geometric mean of an arm's ratios, which are of separate processes: the
    half-widths of their intervals add as squares. None where it was not timed at every size."""
    effects = [result.effect(name) for result in results]
    own = [effect for effect in effects if effect is not None]
    total = sum(result.weight for result in results)
    if len(own) < len(results) or not own:
        return None
    shares = [result.weight / total for result in results]
    center = math.fsum(share * math.log(e.ratio) for share, e in zip(shares, own, strict=True))
    down = _half(shares, own, lambda effect: effect.low)
    up = _half(shares, own, lambda effect: effect.high)
    return msgspec.structs.replace(
        own[0],
        ratio=math.exp(center),
        low=math.exp(center - down) if math.isfinite(down) else 0.0,
        high=math.exp(min(center + up, 700.0)),
        level=min(effect.level for effect in own),
        spread=max(effect.spread for effect in own),
        within=max(effect.within for effect in own),
        detectable=max(effect.detectable for effect in own),
        pairs=sum(effect.pairs for effect in own),
        dropped=sum(effect.dropped for effect in own),
        processes=min(effect.processes for effect in own),
    )


def _half(
    shares: Sequence[float], effects: Sequence[Effect], end: Callable[[Effect], float]
) -> float:
    widths = (
        share * abs(math.log(end(effect) / effect.ratio)) if end(effect) > 0.0 else math.inf
        for share, effect in zip(shares, effects, strict=True)
    )
    return math.hypot(*widths)


def overall(results: Sequence[SizeResult], name: str, margin: float) -> Verdict:
    """Returns a candidate's verdict over all sizes: what is wrong at one size is wrong, what can't
    be trusted at one can't be trusted."""
    for result in results:
        own = result.verdicts[name]
        if own.status not in verdict.TIMED or own.reason in _DOUBTED:
            sentence = f"Size {result.size}: {own.sentence}"
            return Verdict(status=own.status, reason=own.reason, sentence=sentence)
    effect = weighted(results, name)
    if effect is None:
        sentence = "It was not timed at every size."
        return Verdict(status=Status.INCONCLUSIVE, reason="no_samples", sentence=sentence)
    decided = verdict.decided(effect, None, margin)
    sentence = f"Over {len(results)} sizes {decided.sentence}{_exceptions(results, name, decided)}"
    return msgspec.structs.replace(decided, sentence=sentence)


_DOUBTED = ("no_samples", "one_process", "placebo_differs", "placebo_wide")


def _exceptions(results: Sequence[SizeResult], name: str, decided: Verdict) -> str:
    """The sizes at which a candidate does the opposite of what it does over all."""
    words = {Status.IMPROVED: "faster", Status.REJECTED: "slower"}
    sentences = []
    for status, word in words.items():
        own = [result.size for result in results if result.verdicts[name].status is status]
        if own and status is not decided.status:
            sentences.append(f" It is {word} at {', '.join(own)}.")
    return "".join(sentences)


def best(result: SizeResult) -> str | None:
    """The arm with the lowest time of those that are proved faster, else the baseline; None where
    that was not timed, or is wrong."""
    if result.baseline_us is None:
        return None
    improved = [
        effect for effect in result.effects if result.verdicts[effect.arm].status is Status.IMPROVED
    ]
    return min(improved, key=lambda effect: effect.ratio).arm if improved else BASELINE


def crossovers(results: Sequence[SizeResult]) -> Iterator[Crossover]:
    """Yields crossovers between neighbours: sizes that differ in one parameter and have no other
    between them; where there are none, those next to each other in the list."""
    for one, other, parameter in list(_neighbours(results)) or [
        (one, other, "") for one, other in itertools.pairwise(results)
    ]:
        was, now = best(one), best(other)
        if was and now and was != now:
            at = _meeting(one, other, parameter, was, now) if parameter else None
            yield Crossover(
                after=one.size, before=other.size, was=was, now=now, at=at, parameter=parameter
            )


def _neighbours(results: Sequence[SizeResult]) -> Iterator[tuple[SizeResult, SizeResult, str]]:
    names = results[0].parameters if results else {}
    for name in names:
        lines: dict[tuple[int, ...], list[SizeResult]] = {}
        for result in results:
            others = tuple(own for key, own in result.parameters.items() if key != name)
            lines.setdefault(others, []).append(result)
        for line in lines.values():
            for one, other in itertools.pairwise(sorted(line, key=lambda r: r.parameters[name])):
                if 0 < one.parameters[name] < other.parameters[name]:
                    yield one, other, name


def varied(results: Sequence[SizeResult]) -> str:
    """The one parameter in which the sizes differ; empty where there is no such."""
    names = [
        name
        for name in results[0].parameters
        if len({result.parameters.get(name) for result in results}) > 1
    ]
    values = {result.parameters[names[0]] for result in results} if len(names) == 1 else set()
    return names[0] if len(values) == len(results) > 1 and min(values) > 0 else ""


def ordered(results: Sequence[SizeResult]) -> list[SizeResult]:
    """The sizes by the one parameter in which they differ, else as they were listed."""
    parameter = varied(results) if results else ""
    if not parameter:
        return list(results)
    return sorted(results, key=lambda result: result.parameters[parameter])


def _meeting(
    one: SizeResult, other: SizeResult, parameter: str, was: str, now: str
) -> float | None:
    """Returns the parameter's value at which the two arms take equally long."""
    gaps = []
    for result in (one, other):
        ratios = [1.0 if name == BASELINE else _ratio(result, name) for name in (was, now)]
        if not all(ratios):
            return None
        gaps.append(math.log(ratios[0] / ratios[1]))
    if gaps[0] * gaps[1] >= 0.0:
        return None
    low, high = (math.log(result.parameters[parameter]) for result in (one, other))
    return math.exp(low + (high - low) * gaps[0] / (gaps[0] - gaps[1]))


def _ratio(result: SizeResult, name: str) -> float:
    effect = result.effect(name)
    return effect.ratio if effect else 0.0
