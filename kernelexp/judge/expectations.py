"""Expectations of an experiment, and conditions on instructions: met, missed, unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from kernelexp.facts import condition, metrics
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.facts.condition import Condition
from kernelexp.facts.counters import EXECUTED, PTX
from kernelexp.facts.expectation import UNCHANGED, Expectation, parse
from kernelexp.facts.metrics import Kind, Value
from kernelexp.judge import ranking
from kernelexp.model.arm import Arm, EmulatedEvidence
from kernelexp.model.measurement import Effect
from kernelexp.model.record import Record

Result: TypeAlias = Literal["met", "missed", "not measured"]

# Kinds of which the same launch may give another figure.
_NOISY: tuple[Kind, ...] = ("measured", "profiled")


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One expectation with what became of it."""

    metric: str
    expected: str
    """As it is written."""
    result: Result
    kind: Kind | None
    """The kind of evidence that decides it."""
    before: Value | None = None
    after: Value | None = None
    change: float | None = None
    """Relative, 0.1 for 10% more; of a measured time that of the verdict, from its pairs."""
    sentence: str = ""
    """By how much it was missed, or what keeps it from being judged and which command supplies
    that."""


def judge(
    expected: Mapping[str, str], before: Arm, after: Arm, margin: float, experiment: str
) -> tuple[Judged, ...]:
    """Each expectation of one candidate, in the order in which they are written.

    `margin` is that of the verdicts: `unchanged` allows it where a figure is measured or profiled.
    `experiment` is for the commands in the sentences.
    """
    return tuple(
        _judge(name, text, before, after, margin, experiment) for name, text in expected.items()
    )


def of_record(record: Record) -> dict[str, tuple[Judged, ...]]:
    """Judges what a run expected of each candidate, by its name; empty where it said nothing."""
    if len(record.expect) != len(record.candidates):
        return {}
    result = {}
    for name, candidate, expected in zip(
        record.names[1:], record.candidates, record.expect, strict=True
    ):
        own = judge(expected, record.baseline, candidate.arm, record.margin, record.experiment)
        if own:
            result[name] = tuple(_over_sizes(record, name, candidate.arm, one) for one in own)
    return result


def _over_sizes(record: Record, name: str, after: Arm, own: Judged) -> Judged:
    """Judges the expectation of the time at every size the run timed: `own` is of its last."""
    if own.metric != "time_ms" or len(record.sizes) < 2:
        return own
    sizes = []
    for size in record.sizes:
        effect, baseline_us = size.effect(name), size.baseline_us
        if effect is None or baseline_us is None:
            sizes.append((size.size, msgspec.structs.replace(own, result="not measured")))
            continue
        arms = (
            _timed(record.baseline, baseline_us, None),
            _timed(after, baseline_us * effect.ratio, effect),
        )
        margin, experiment = record.margin, record.experiment
        sizes.append((size.size, _judge("time_ms", own.expected, *arms, margin, experiment)))
    for result in ("missed", "not measured"):
        others = [(size, judged) for size, judged in sizes if judged.result == result]
        if others:
            at = f"at {', '.join(size for size, _ in others)} of {len(sizes)} sizes"
            first = others[0][1]
            sentence = ": ".join(filter(None, (at, first.sentence)))
            return msgspec.structs.replace(first, sentence=sentence)
    return msgspec.structs.replace(own, sentence=f"at each of {len(sizes)} sizes")


def _timed(arm: Arm, time_us: float, effect: Effect | None) -> Arm:
    if arm.measured is None:
        return arm
    measured = msgspec.structs.replace(arm.measured, time_us=time_us, effect=effect)
    return msgspec.structs.replace(arm, measured=measured)


def _judge(name: str, text: str, before: Arm, after: Arm, margin: float, experiment: str) -> Judged:
    expectation, kind = parse(text), _kind(name, before, after)
    was, now = _read(name, kind, before, after), _read(name, kind, after, before)
    judged = Judged(
        metric=name, expected=text, result="not measured", kind=kind, before=was, after=now
    )
    if missing := _missing(expectation, was, now):
        sentence = f"{missing}: {command(kind, after, experiment)}{_instead(name, after)}"
        return msgspec.structs.replace(judged, sentence=sentence)
    if expectation.basis != "value" and kind and not _compares(kind, before, after):
        sentence = f"{kind} under other conditions than the baseline: kernelexp run {experiment}"
        return msgspec.structs.replace(judged, sentence=sentence)
    if isinstance(was, str) or isinstance(now, str):
        return _judge_words(judged)
    assert now is not None  # _missing() saw to it
    allowed = margin * abs(was or 0) if text.strip() == UNCHANGED and kind in _NOISY else 0.0
    change = _change(name, was, now, after)
    judged = msgspec.structs.replace(judged, change=change)
    actual = _actual(expectation, was, now, change)
    if expectation.is_met(actual) or abs(actual) <= allowed:
        return msgspec.structs.replace(judged, result="met")
    return msgspec.structs.replace(
        judged, result="missed", sentence=_by_how_much(name, expectation, actual, allowed)
    )


def _kind(name: str, before: Arm, after: Arm) -> Kind | None:
    """The kind of evidence that decides: a name of ncu's may be a profile's figure, or what was
    counted on SASS of both arms where no profile has it."""
    kind = metrics.kind_of(name)
    if kind != "profiled" or any(
        metrics.read(name, arm, kind) is not None for arm in (before, after)
    ):
        return kind
    if not (before.is_built or after.is_built):  # a run would emulate them too
        return None if _is_counter(name, "sass") else kind
    counted = before.counted and after.counted and _is_counted(name, after.counted)
    return "emulated" if counted else kind


def _read(name: str, kind: Kind | None, arm: Arm, other: Arm) -> Value | None:
    """The figure; a counter of an emulation that was left out as 0 is 0."""
    value = metrics.read(name, arm, kind)
    if value is not None or kind != "emulated":
        return value
    taken = arm.emulated if name.startswith(PTX) else arm.counted
    if taken is None or not taken.finished or not taken.counters:
        return None
    counted = metrics.read(name, other, kind) is not None or _is_counted(name, taken)
    return 0 if counted else None


def _is_counted(name: str, taken: EmulatedEvidence) -> bool:
    """Whether the emulator that took this has a counter of this name.

    Records of early versions have other names; they lack that of all instructions.
    """
    if EXECUTED[taken.isa] not in taken.counters:
        return False
    return _is_counter(name, taken.isa)


def _is_counter(name: str, isa: str) -> bool:
    from warpsim.machine.counts.counter_names import named  # loads the whole emulator

    return name in named([], isa.upper())


def _missing(expectation: Expectation, was: Value | None, now: Value | None) -> str:
    """Says whose figure is not known; empty where nothing is missing."""
    if now is None:
        return "the candidate has no such figure"
    if expectation.basis != "value" and was is None:
        return "the baseline has no such figure"
    if expectation.basis == "change" and was == 0:
        return "the baseline's is 0, of which there is no percentage; expect a difference instead"
    return ""


def _instead(name: str, arm: Arm) -> str:
    """The count of PTX that may have been meant by a name of ncu's; empty where there is none."""
    counted = metrics.read(f"{PTX}{name}", arm) is not None
    return f". The emulation's count, of PTX, is {PTX}{name}" if counted else ""


def _compares(kind: Kind, before: Arm, after: Arm) -> bool:
    if kind in ("published", "profiled"):
        return True
    return kind in ranking.comparable(before, after)


def _judge_words(judged: Judged) -> Judged:
    """A figure in words, such as what limits the occupancy, may only be expected unchanged."""
    same = judged.before == judged.after
    words = "" if same else f"{judged.before} → {judged.after}"
    if judged.expected.strip() != UNCHANGED:
        sentence = f"{judged.metric} is in words, which can only be expected to be {UNCHANGED}"
        return msgspec.structs.replace(judged, sentence=sentence)
    return msgspec.structs.replace(judged, result="met" if same else "missed", sentence=words)


def _change(name: str, was: float | None, now: float, after: Arm) -> float | None:
    if name == "time_ms" and after.measured and after.measured.effect:
        return after.measured.effect.ratio - 1
    return (now - was) / abs(was) if was else None


def _actual(expectation: Expectation, was: float | None, now: float, change: float | None) -> float:
    if expectation.basis == "value" or was is None:
        return now
    if expectation.basis == "change" and change is not None:
        return change
    return now - was


def _by_how_much(name: str, expectation: Expectation, actual: float, allowed: float) -> str:
    by = max(expectation.misses_by(actual) - allowed, 0.0)
    text, low, high = expectation.text.strip(), expectation.low, expectation.high
    about = text.startswith("~")  # its width is the rule's, not the reader's
    if expectation.basis == "change":
        allows = f": {text} allows {100 * low:+g}% to {100 * high:+g}%" if about else ""
        return f"by {100 * by:.2f} percentage points{allows}" if by else "it hits the excluded end"
    unit = metrics.METRICS[name].unit if name in metrics.METRICS else ""
    allows = f": {text} allows {low:,.6g} to {high:,.6g}" if about else ""
    return f"by {by:,.6g} {unit}".rstrip() + allows if by else "it hits what is excluded"


def command(kind: Kind | None, arm: Arm, experiment: str, card: str = "") -> str:
    """Returns what supplies evidence of a kind, as the end of a sentence; on the card that the arm
    is for, where that is known."""
    card = card or (ARCHITECTURES[arm.arch].card if arm.arch in ARCHITECTURES else arm.arch)
    if kind == "measured":
        return f"kernelexp run {experiment}, on a machine with one {card}"
    if kind == "profiled":
        return f"kernelexp profile {experiment}, on a machine with one {card}"
    if kind == "published":
        return "nobody published it"
    return f"kernelexp run {experiment}"


InstructionResult: TypeAlias = Literal["met", "missed"]


class InstructionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The instructions in the SASS of an entry, by opcode with modifiers."""

    every: dict[str, int]
    in_loops: dict[str, int]


class JudgedInstructions(msgspec.Struct, frozen=True, kw_only=True):
    """One condition with what became of it."""

    condition: str
    """As it is written."""
    result: InstructionResult
    actual: int
    before: int | None = None
    """The baseline's, where there is one."""
    sentence: str = ""
    """By how much it was missed, or why it can't be met."""


def instruction_expectations(
    counts: InstructionCounts, texts: Sequence[str], before: InstructionCounts | None = None
) -> list[JudgedInstructions]:
    """Each condition, in the order in which they are written; condition.py has the notation.

    `before` has the baseline's instructions. ValueError with a sentence for a text that is no
    condition, and for a change without a baseline.
    """
    return [_judge_count(condition.parse(text), counts, before) for text in texts]


def _judge_count(
    wanted: Condition, counts: InstructionCounts, before: InstructionCounts | None
) -> JudgedInstructions:
    expectation = wanted.expectation
    actual = condition.count(wanted.pattern, _of(wanted, counts))
    was = condition.count(wanted.pattern, _of(wanted, before)) if before else None
    if expectation.basis != "value" and was is None:
        raise ValueError(
            f"{wanted.text!r} is about a change, of which one variant has none: name a baseline "
            "before it, or write a condition on the number itself, as in == 0."
        )
    judged = JudgedInstructions(
        condition=wanted.text.strip(), result="missed", actual=actual, before=was
    )
    value: float = actual
    if expectation.basis != "value" and was is not None:
        value = actual - was
        if expectation.basis == "change" and not was:
            sentence = "the baseline's is 0, of which there is no percentage; expect a difference"
            return msgspec.structs.replace(judged, sentence=sentence)
        if expectation.basis == "change":
            value /= was
    if expectation.is_met(value):
        return msgspec.structs.replace(judged, result="met")
    by = expectation.misses_by(value)
    amount = f"{100 * by:.2f} percentage points" if expectation.basis == "change" else f"{by:,.6g}"
    return msgspec.structs.replace(
        judged, sentence=f"by {amount}" if by else "it hits what is excluded"
    )


def _of(wanted: Condition, counts: InstructionCounts) -> Mapping[str, int]:
    return counts.in_loops if wanted.in_loops else counts.every
