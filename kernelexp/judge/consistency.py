"""Whether a record is what its samples give, and a profile of the build that it is taken for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from kernelexp.facts import chips
from kernelexp.facts.chips import Chip
from kernelexp.judge import executed, verdict
from kernelexp.judge.statistics import stats
from kernelexp.judge.statistics.stats import estimate, ratios
from kernelexp.judge.verdict import TIMED, spell_change, spell_interval
from kernelexp.model.arm import Arm, BuildEvidence, ProfiledEvidence, Status, Verdict
from kernelexp.model.measurement import Effect, Measurement, Worker
from kernelexp.model.record import Candidate, Record, measurement_of
from kernelexp.model.text import si

_CLOCKS = 0.85
"""Of a floor at the datasheet's figures, the share that a card's higher clocks may reach."""
COUNTED = 0.95
"""Of a floor by counted work, at the card's highest clock, the share that is still believed."""


def qualified(record: Record, name: str, candidate: Candidate, decided: Verdict) -> Verdict:
    """The verdict on a candidate of the record with what belongs to it."""
    if decided.status in TIMED and (why := _impossible(record, name)):
        return Verdict(status=Status.INVALID, reason="faster_than_possible", sentence=why)
    if candidate.same_code:
        decided = _of_same_code(record, name, decided)
    return decided


def plausibility_remarks(baseline: Arm, candidate: Arm) -> Iterator[str]:
    """Yields reasons why being right says little of these arms, a sentence each."""
    for arm in (baseline, candidate):
        for doubt in arm.emulated.doubts if arm.emulated else ():
            yield f"{doubt[0].upper()}{doubt[1:]}."
    one, other = (arm.emulated.tolerance if arm.emulated else {} for arm in (baseline, candidate))
    if one and other and one != other:
        yield f"The arms are held to different tolerances: {_spell(one)}, and {_spell(other)}."


def _spell(tolerance: dict[str, float]) -> str:
    return " ".join(f"{name}={value:g}" for name, value in tolerance.items() if value) or "exact"


def _of_same_code(record: Record, name: str, decided: Verdict) -> Verdict:
    """A placebo: what was timed is what this machine shows between equal kernels."""
    first = "The same instructions as the baseline, launched alike"
    if decided.status not in (Status.IMPROVED, Status.REJECTED):
        return msgspec.structs.replace(decided, sentence=f"{first}. {decided.sentence}")
    given = ratios(record.measurement)[0] if record.measurement else ()
    effect = next(item for item in given if item.arm == name)
    sentence = (
        f"{first}: {spell_change(effect)}, {spell_interval(effect)}, is what this machine shows "
        "between equal kernels, as a placebo does."
    )
    return Verdict(status=Status.INCONCLUSIVE, reason="same_code", sentence=sentence)


def _impossible(record: Record, name: str) -> str:
    """Says why an arm's time can't be that of the work, with the arithmetic; empty where it can."""
    chip = chips.find(record.device)
    if record.measurement is None or chip is None:
        return ""
    given = estimate(record.measurement)
    shown = (given.shown(time.arm) for time in given.times)
    times = {item.arm: item.median_us / 1e6 for item in shown if item}
    for arm in ("baseline", name):
        least, seconds, words, doubt = max(_floors(record, arm, chip))
        if 0 < times.get(arm, least) < least:
            return (
                f"The {arm} took {1e3 * times[arm]:.4g} ms, and the {chip.name} needs "
                f"{1e3 * seconds:.4g} ms for {words}: {doubt}."
            )
    return ""


def _floors(record: Record, arm: str, chip: Chip) -> Iterator[tuple[float, float, str, str]]:
    """Seconds that no launch of an arm is below, those that it needs by the figures, of what, and
    what a shorter time comes to."""
    assert record.measurement
    peak = max(limit.value for limit in chip.tensor.values())
    stated = "it did not do the work that problem.py's work() states, or work() is wrong"
    # What was written last may still lie in L2.
    held = chip.l2_size.value if record.measurement.options.l2 == "cold" else float("inf")
    beyond = f"beyond L2 at {chip.dram.value / 1e12:.3g} TB/s"
    flops = f"{si(record.flops, 'FLOP')} at {peak / 1e12:,.4g} TFLOPS"
    seconds = record.flops / peak
    yield _CLOCKS * seconds, seconds, flops, stated
    moved = max(0.0, record.bytes - held)
    seconds = moved / chip.dram.value
    yield _CLOCKS * seconds, seconds, f"{si(moved, 'B')} {beyond}", stated
    written = max(0.0, _elements(record.measurement, arm) - held)
    elements = f"{written:,.0f} of the elements that were checked, a byte each, {beyond}"
    seconds = written / chip.dram.value
    yield _CLOCKS * seconds, seconds, elements, "what was timed is not what was checked"
    if counts := record.launched.get(arm):
        emulated = f"what was timed is not what was emulated ({counts.how})"
        clock_hz = highest_clock(record.measurement, chip)
        for seconds, words in executed.least(counts, chip, clock_hz):
            yield COUNTED * seconds, seconds, words, emulated


def highest_clock(measurement: Measurement, chip: Chip) -> float:
    """Returns the highest clock in Hz: the measured card's, if that is above its datasheet's."""
    return max(chip.clock.value, 1e6 * measurement.device.sm_clock_max_mhz)


def _elements(measurement: Measurement, arm: str) -> int:
    """Counts the elements that an arm wrote in each launch compared with the reference."""
    checks = (check for worker in measurement.workers for check in worker.checks)
    return max(
        (sum(array.elements for array in check.arrays) for check in checks if check.arm == arm),
        default=0,
    )


VERSION = 3
"""Of the rules below: what was found right by earlier ones is judged again."""
EDITED = "the record was edited after it was written"
"""What is said of a record whose file has the digest of another content."""
PROBLEM = "problem.py"
HEADERS = "kernelexp's headers"
EDIT = "This record was edited after it was written: what it says may not be what was found."
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
    now = qualified(record, name, candidate, now)
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


def other_build(build: BuildEvidence, profiled: ProfiledEvidence) -> str:
    """Spells the differences as the rest of a sentence; empty if there are none, or none known."""
    return " and ".join(
        f"{_count(now)} {resource} (this variant: {_count(was)})"
        for resource, was, now in _resources(build, profiled)
        if was != now
    )


def _resources(build: BuildEvidence, profiled: ProfiledEvidence) -> Iterator[tuple[str, int, int]]:
    used = build.resources
    block = math.prod(profiled.block) if profiled.block else None
    pairs = (
        ("registers per thread", used.registers, profiled.figures.get(_REGISTERS)),
        ("threads per CTA", used.threads, block or profiled.figures.get("launch__block_size")),
        ("B of dynamic shared memory", used.dynamic_smem_bytes, profiled.figures.get(_DYNAMIC)),
        ("B of static shared memory", used.static_smem_bytes, profiled.figures.get(_STATIC)),
    )
    for resource, was, now in pairs:
        if isinstance(now, int | float) and was:
            yield resource, was, int(now)


_REGISTERS = "launch__registers_per_thread"
_DYNAMIC = "launch__shared_mem_per_block_dynamic"
_STATIC = "launch__shared_mem_per_block_static"


def _count(count: int) -> str:
    return f"{count:,}"
