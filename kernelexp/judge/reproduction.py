"""Whether a run agrees with the experiment's earlier records: verdict, effect, and every figure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kernelexp.facts import metrics
from kernelexp.facts.metrics import Kind
from kernelexp.judge import ranking
from kernelexp.judge.ranking import Difference
from kernelexp.judge.verdict import SILENT, measured
from kernelexp.model.arm import Arm, Status, Verdict
from kernelexp.model.record import Candidate, Record, is_of, measurement_of

_SHOWN = 4


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a candidate of this run with earlier records of the same variants."""

    sentence: str = ""
    """Empty where there is nothing to compare with."""
    agrees: bool | None = None
    """None where nothing earlier could be confirmed or contradicted."""


def compare(
    now: Record, candidate: Arm, verdict: Verdict, earlier: Sequence[Record]
) -> Reproduction:
    """A candidate of `now` compared with the latest earlier verdict, and the latest earlier
    figures, of the same two variants.

    A run reproduces an earlier one if the verdicts are the same at the same margin, the effects
    agree (the two intervals overlap or, for a published figure, which has no interval, the figure
    lies inside the new interval widened by the margin), and every figure that both have is equal.
    An interval does not carry from one card to another (docs/verdicts.md), so if the earlier run
    was on another card of the same model, the new interval is widened by the margin too.
    """
    pairs = [
        (record, item)
        for record in reversed(earlier)
        if (record.kernel, record.arch) == (now.kernel, now.arch)
        for item in record.candidates
        if _is_of(candidate, item.arm, record) and _is_of(now.baseline, record.baseline, record)
    ]
    spoken = [pair for pair in pairs if pair[1].verdict.status not in SILENT]
    alike = (pair for pair in spoken if not _is_of_another_size(now, pair[0]))
    latest = next(alike, spoken[0] if spoken else None)
    parts = [_verdicts(now, candidate, verdict.status, *latest)] if latest else []
    before = next((pair for pair in pairs if pair[1].arm.is_built), None)
    if before and candidate.is_built:
        parts.append(_figures(now.baseline, candidate, *before))
    answers = [part.agrees for part in parts]
    agrees = None if None in answers or not answers else True
    return Reproduction(
        sentence=" ".join(part.sentence for part in parts),
        agrees=False if False in answers else agrees,
    )


def _is_of(arm: Arm, before: Arm, record: Record) -> bool:
    """A published record may name some axes only; a run names all that there were."""
    same = is_of(arm.axes, before)
    return same and (record.provenance == "published" or arm.axes.keys() == before.axes.keys())


def _verdicts(
    now: Record, candidate: Arm, status: Status, record: Record, before: Candidate
) -> Reproduction:
    then = _at_margin(record, before, now.margin)
    whose = f"{_name(record)}, {then}"
    if _has_changed(now, candidate, record, before) and status != then:
        why = "the sources have changed since"
        return Reproduction(sentence=f"Neither confirms nor contradicts {whose}: {why}.")
    if status in SILENT:
        if then in _REFUSALS and candidate.refused is None:
            sentence = f"Does not reproduce {whose}: nothing refuses this variant now."
            return Reproduction(sentence=sentence, agrees=False)
        why = ": nothing was timed here" if status == Status.UNMEASURED else ""
        return Reproduction(sentence=f"Neither confirms nor contradicts {whose}{why}.")
    if status != then and not _is_of_another_size(now, record):
        return Reproduction(sentence=f"Does not reproduce {whose}.", agrees=False)
    if status != then:
        sizes = f"at size {record.size!r} instead of {now.size!r}"
        return Reproduction(sentence=f"Neither confirms nor contradicts {whose}: {sizes}.")
    if other := _other_conditions(now, record):
        sentence = f"Same verdict as {whose}, but {other}: the effects are not compared."
        return Reproduction(sentence=sentence)
    return _effects(now, candidate, whose, record, before)


def _has_changed(now: Record, candidate: Arm, record: Record, before: Candidate) -> bool:
    """Whether a run was made from other files; problem.py counts where both records have it."""
    if record.provenance == "published":
        return False
    arms = ((before.arm, candidate), (record.baseline, now.baseline))
    pairs = [(then.files, one.files) for then, one in arms]
    pairs += [(then.headers or {}, one.headers or {}) for then, one in arms]
    if record.host_files:
        there = [
            {name: digest for name, digest in one.host_files.items() if digest}
            for one in (record, now)
        ]
        pairs.append((there[0], there[1]))
    return any(then and then != files for then, files in pairs)


_REFUSALS = (Status.IMPOSSIBLE, Status.BUILD_FAILED, Status.INCORRECT)


def _at_margin(record: Record, before: Candidate, margin: float) -> Status:
    """The earlier verdict as its samples give it at this run's margin."""
    if record.measurement is None or record.margin == margin or before.arm.refused:
        return before.verdict.status
    name = record.names[1 + record.candidates.index(before)]
    return measured(measurement_of(record, name) or record.measurement, name, margin).status


def _is_of_another_size(now: Record, record: Record) -> bool:
    """Whether both were timed, and not the same problem."""
    return bool(now.measurement and record.measurement) and now.size != record.size


def _other_conditions(now: Record, record: Record) -> str:
    """Says which conditions two measurements do not share; empty where either timed nothing."""
    taken, before = now.measurement, record.measurement
    if taken is None or before is None:
        return ""
    if now.device != record.device:
        return f"on {record.device} instead of {now.device}"
    if now.size != record.size:
        return f"at size {record.size!r} instead of {now.size!r}"
    judged = [item.printed.figure if item.printed else "time" for item in (taken, before)]
    if judged[0] != judged[1]:
        return f"judged by {judged[1]} instead of {judged[0]}"
    if taken.options.l2 != before.options.l2:
        return "with the L2 cache in another state"
    return ""


def _effects(
    now: Record, candidate: Arm, whose: str, record: Record, before: Candidate
) -> Reproduction:
    effect = candidate.measured.effect if candidate.measured else None
    low, high = earlier_interval(record, before.arm)
    if effect is None or low is None or high is None:
        return Reproduction(sentence=f"Reproduces {whose}.", agrees=True)
    apart = max(0.0, effect.low - high, low - effect.high)
    if apart == 0.0 or (record.provenance == "published" and apart <= now.margin):
        return Reproduction(sentence=f"Reproduces {whose}: the effects agree.", agrees=True)
    then_now = (
        f"{_percent(low)} to {_percent(high)} then, "
        f"{_percent(effect.low)} to {_percent(effect.high)} now"
    )
    cards = {item.measurement.device.uuid for item in (now, record) if item.measurement}
    if len(cards) == 2 and apart <= now.margin:
        sentence = f"Reproduces {whose}, within the margin and on another card: {then_now}."
        return Reproduction(sentence=sentence, agrees=True)
    sentence = f"Same verdict as {whose}, but the effect differs: {then_now}."
    return Reproduction(sentence=sentence, agrees=False)


def _figures(baseline: Arm, candidate: Arm, record: Record, before: Candidate) -> Reproduction:
    """Every built and emulated figure of both arms, where both runs have that evidence."""
    pairs = (("baseline", record.baseline, baseline), ("candidate", before.arm, candidate))
    both = [set(ranking.comparable(then, now)) for _, then, now in pairs]
    kinds: list[Kind] = [kind for kind in ("built", "emulated") if kind in both[0] & both[1]]
    if not kinds:
        return Reproduction()
    differing = [
        f"{name}: {_spell(difference)}"
        for name, then, now in pairs
        for difference in ranking.between(then, now, *kinds)
        if not difference.metric.name.startswith(metrics.BY_PIPE)
    ]
    whose = f"run {record.run}"
    words = " and ".join(kinds)
    other = any(then.identity != now.identity for _, then, now in pairs)
    result = ", though built from other sources or by another nvcc" if other else ""
    if not differing:
        sentence = f"All {words} figures equal those of {whose}{result}."
        return Reproduction(sentence=sentence, agrees=True)
    more = f", and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
    listed = ", ".join(differing[:_SHOWN])
    why = " (built from other sources or by another nvcc)" if other else ""
    sentence = f"{words.capitalize()} figures differ from those of {whose}{why}: {listed}{more}."
    return Reproduction(sentence=sentence, agrees=False)


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
