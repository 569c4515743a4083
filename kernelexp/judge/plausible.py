"""Caveats of a verdict: equal instructions, times that no card allows, checks that say little."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kernelexp.facts import chips
from kernelexp.facts.chips import Chip
from kernelexp.judge import executed
from kernelexp.judge.statistics.stats import estimate, ratios
from kernelexp.judge.verdict import TIMED, spell_change, spell_interval
from kernelexp.model.arm import Arm, Status, Verdict
from kernelexp.model.measurement import Measurement
from kernelexp.model.record import Candidate, Record
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


def remarks(baseline: Arm, candidate: Arm) -> Iterator[str]:
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
