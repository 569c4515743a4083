"""Whether a run agrees with the experiment's earlier records: verdict, effect, and every figure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kernelexp import metrics
from kernelexp.arm import Arm, Status, Verdict
from kernelexp.measurement import Effect
from kernelexp.metrics import Difference, Kind
from kernelexp.record import Candidate, Record, is_of

# Verdicts that say nothing about time or correctness: no later run is compared with them.
_SILENT = (Status.UNMEASURED, Status.INVALID, Status.INCONCLUSIVE)
_SHOWN = 4


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """How a candidate of this run compares with earlier records of the same variants."""

    sentence: str = ""
    """Empty where there is nothing to compare with."""
    agrees: bool | None = None
    """None where nothing earlier could be confirmed or contradicted."""


def compare(
    baseline: Arm,
    candidate: Arm,
    verdict: Verdict,
    margin: float,
    earlier: Sequence[Record],
    card: str = "",
) -> Reproduction:
    """A candidate compared with the latest earlier verdict, and the latest earlier figures.

    A run reproduces an earlier one if the verdicts are the same and the effects agree (the two
    intervals overlap or, for a published figure, which has no interval, the figure lies inside the
    new interval widened by the margin), and if every built and emulated figure is equal. An
    interval does not carry from one card to another (docs/methodology.md): if the earlier run was
    on another card than `card`, a UUID, the new interval is widened by the margin too.
    """
    pairs = [
        (record, each)
        for record in reversed(earlier)
        for each in record.candidates
        if is_of(candidate.axes, each.arm) and is_of(baseline.axes, record.baseline)
    ]
    earlier_verdict = next((pair for pair in pairs if pair[1].verdict.status not in _SILENT), None)
    effect = candidate.measured.effect if candidate.measured else None
    parts = (
        [_verdicts(verdict.status, effect, margin, card, *earlier_verdict)]
        if earlier_verdict
        else []
    )
    before = next((pair for pair in pairs if pair[1].arm.build), None)
    if before and candidate.build:
        parts.append(_figures(baseline, candidate, *before))
    answers = [part.agrees for part in parts if part.agrees is not None]
    return Reproduction(
        sentence=" ".join(part.sentence for part in parts),
        agrees=all(answers) if answers else None,
    )


def _verdicts(
    now: Status,
    effect: Effect | None,
    margin: float,
    card: str,
    record: Record,
    before: Candidate,
) -> Reproduction:
    then = before.verdict.status
    whose = f"{_name(record)}, {then}"
    if now == Status.UNMEASURED:
        why = f"Neither confirms nor contradicts {whose}: nothing was timed here."
        return Reproduction(sentence=why)
    if now in _SILENT:
        return Reproduction(sentence=f"Neither confirms nor contradicts {whose}.")
    if now != then:
        return Reproduction(sentence=f"Does not reproduce {whose}.", agrees=False)
    low, high = earlier_interval(record, before.arm)
    if effect is None or low is None or high is None:
        return Reproduction(sentence=f"Reproduces {whose}.", agrees=True)
    apart = max(0.0, effect.low - high, low - effect.high)
    if apart == 0.0 or (record.provenance == "published" and apart <= margin):
        return Reproduction(sentence=f"Reproduces {whose}: the effects agree.", agrees=True)
    then_now = (
        f"{_percent(low)} to {_percent(high)} then, "
        f"{_percent(effect.low)} to {_percent(effect.high)} now"
    )
    other = record.measurement is not None and record.measurement.device.uuid != card
    if other and apart <= margin:
        sentence = f"Reproduces {whose}, within the margin and on another card: {then_now}."
        return Reproduction(sentence=sentence, agrees=True)
    sentence = f"Same verdict as {whose}, another effect: {then_now}."
    return Reproduction(sentence=sentence, agrees=False)


def _figures(baseline: Arm, candidate: Arm, record: Record, before: Candidate) -> Reproduction:
    """Every built and emulated figure of both arms, where both runs have that evidence."""
    kinds: list[Kind] = ["built"]
    if _comparable(candidate, before.arm):
        kinds.append("emulated")
    pairs = (("baseline", record.baseline, baseline), ("candidate", before.arm, candidate))
    differing = [
        f"{name}: {_spell(difference)}"
        for name, then, now in pairs
        for difference in metrics.differences(then, now, *kinds)
    ]
    whose = f"run {record.run}"
    words = " and ".join(kinds)
    if not differing:
        return Reproduction(sentence=f"All {words} figures equal those of {whose}.", agrees=True)
    more = f", and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
    listed = ", ".join(differing[:_SHOWN])
    sentence = f"{words.capitalize()} figures differ from those of {whose}: {listed}{more}."
    return Reproduction(sentence=sentence, agrees=False)


def _comparable(one: Arm, other: Arm) -> bool:
    """Whether both were emulated, at the same size and by the same emulator."""
    if one.emulated is None or other.emulated is None or other.emulated.unsupported:
        return False
    same = one.emulated.emulator == other.emulated.emulator
    return same and one.emulated.size == other.emulated.size


def _spell(difference: Difference) -> str:
    def count(value: metrics.Value | None) -> str:
        return f"{value:,}" if isinstance(value, int) else str(value)

    label = difference.metric.label.strip()
    return f"{label} {count(difference.before)} -> {count(difference.after)}"


def _name(record: Record) -> str:
    return "the published verdict" if record.provenance == "published" else f"run {record.run}"


def earlier_interval(record: Record, arm: Arm) -> tuple[float | None, float | None]:
    """The time ratio of a record's candidate: its interval, or twice the published ratio."""
    if arm.measured and arm.measured.effect:
        return arm.measured.effect.low, arm.measured.effect.high
    base, result = record.baseline.published, arm.published
    if base and result and base.time_ms and result.time_ms:
        upper = result.time_ms_to or result.time_ms
        return result.time_ms / base.time_ms, upper / base.time_ms
    return None, None


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f}%"
