"""Whether what a record says of itself is what its samples give."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from kernelexp.judge import plausible, verdict
from kernelexp.judge.statistics import stats
from kernelexp.model.arm import Arm
from kernelexp.model.measurement import Effect, Worker
from kernelexp.model.record import Candidate, Record, measurement_of

VERSION = 3
"""Of the rules below: what was found right by earlier ones is judged again."""
EDITED = "edited after it was written"
"""What is said of a record whose file has the digest of another content."""
PROBLEM = "problem.py"
HEADERS = "kernelexp's headers"
EDIT = f"This record is {EDITED}: what it says may not be what was found."
_FIGURE = re.compile(r"\d[\d,]*\.\d+")
_NEAR = 1e-6
"""How far apart two calculations of one figure may come out."""


def doubts(record: Record, candidate: Candidate) -> Iterator[str]:
    """Yields what a candidate's record says that its samples do not support, a few words each."""
    if record.measurement is None or record.estimate is None:
        return
    name = record.names[1 + record.candidates.index(candidate)]
    given = {effect.arm: effect for effect in stats.ratios(record.measurement)[0]}
    recorded = {effect.arm: effect for effect in record.estimate.effects}
    if not _same(given.get(name), recorded.get(name)):
        words = _change(recorded.get(name)), _change(given.get(name))
        yield f"its estimate ({words[0]}, where its samples give {words[1]})"
    stated_us = {times.arm: times.median_us for times in record.estimate.times}
    for times in stats.times(record.measurement):
        us = stated_us.get(times.arm, 0.0)
        if times.arm in (name, "baseline") and not math.isclose(us, times.median_us, rel_tol=_NEAR):
            whose = "the baseline's" if times.arm == "baseline" else "its"
            yield f"{whose} median ({us:g} us, where its samples give {times.median_us:g} us)"
    own = measurement_of(record, name) or record.measurement
    now = candidate.arm.refused or verdict.measured(own, name, record.margin)
    now = plausible.qualified(record, name, candidate, now)
    stated = candidate.verdict
    if now.status != stated.status:
        yield f"its verdict ({stated.status}, where its samples give {now.status})"
    elif (now.reason, _figures(now.sentence)) != (stated.reason, _figures(stated.sentence)):
        yield f"its verdict's words ({stated.reason}: {stated.sentence!r})"
    if now.status not in verdict.WRONG and any(_is_wrong(worker, name) for worker in own.workers):
        yield f"its verdict ({stated.status}, where a launch that was checked was wrong)"


def _figures(sentence: str) -> list[str]:
    """Versions of kernelexp word the same differently."""
    return sorted(_FIGURE.findall(sentence))


def _is_wrong(worker: Worker, arm: str) -> bool:
    return any(array.wrong for check in worker.checks if check.arm == arm for array in check.arrays)


Doubts: TypeAlias = Callable[[Record, Candidate], Iterable[str]]


def remarks(record: Record, doubts: Doubts = doubts) -> Iterator[str]:
    """Yields caveats on a record's own figures, a sentence each."""
    if record.edited:
        yield EDIT
    for name, candidate in zip(record.names[1:], record.candidates, strict=True):
        for doubt in doubts(record, candidate):
            yield f"What the record says of {name} is not what its samples give: {doubt}."
        if by_mean := _by_mean(record, candidate, name):
            yield by_mean
    for what in unrecorded(record):
        yield f"This run did not record {what}: a change since is not noticed."


def _by_mean(record: Record, candidate: Candidate, name: str) -> str:
    """Says that a verdict against the margin is another by means of pairs than by their medians;
    empty where it is not."""
    own = measurement_of(record, name)
    stated = candidate.verdict.status
    if own is None or stated not in verdict.DECIDED:
        return ""
    effect = next((effect for effect in stats.ratios(own)[0] if effect.arm == name), None)
    mean = stats.average(own, name)
    if effect is None or mean is None or abs(mean - effect.ratio) <= record.margin / 2.0:
        return ""
    if verdict.side(mean, record.margin) is stated:
        return ""
    by_mean = msgspec.structs.replace(effect, ratio=mean)
    return (
        f"Launches of {name} or of the baseline fall into groups of different times: by the mean "
        f"of its pairs, {name} is {verdict.spell_change(by_mean)}; the verdict is by their median."
    )


def unrecorded(record: Record) -> Iterator[str]:
    """Yields what a run depended on that early versions did not record."""
    built = [arm for arm in record.arms if arm.is_built]
    if record.provenance != "run" or not built:
        return
    if not record.host_files and not any(arm.program for arm in built):
        yield PROBLEM
    sources = [arm for arm in built if arm.source.endswith(".cu") and arm.headers is None]
    if any(not _project_has_headers(arm) for arm in sources):
        yield HEADERS


def _project_has_headers(arm: Arm) -> bool:
    return any(name.startswith("variants/include/") for name in arm.files)


def _same(one: Effect | None, other: Effect | None) -> bool:
    if one is None or other is None:
        return one is other
    pairs = ((one.ratio, other.ratio), (one.low, other.low), (one.high, other.high))
    return all(abs(a - b) <= _NEAR * abs(a) for a, b in pairs)


def _change(effect: Effect | None) -> str:
    return f"{100 * (effect.ratio - 1):+.2f}%" if effect else "nothing"
