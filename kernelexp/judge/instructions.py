"""Expectations of a gate on a variant's instructions, judged by its SASS: met or missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from kernelexp.facts import condition
from kernelexp.facts.condition import Condition

Result: TypeAlias = Literal["met", "missed"]


class InstructionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The instructions in the SASS of an entry, by opcode with modifiers."""

    every: dict[str, int]
    in_loops: dict[str, int]


class JudgedInstructions(msgspec.Struct, frozen=True, kw_only=True):
    """One condition with what became of it."""

    condition: str
    """As it is written."""
    result: Result
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
    return [_judge(condition.parse(text), counts, before) for text in texts]


def _judge(
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
