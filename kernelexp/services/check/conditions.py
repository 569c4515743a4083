"""The gates that a project writes for its variants, judged: met, missed, better than committed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from kernelexp.facts import condition, expectation
from kernelexp.facts.counters import PTX
from kernelexp.judge.expectations import InstructionCounts, instruction_expectations
from kernelexp.judge.verdict import WRONG
from kernelexp.model.arm import Arm, EmulatedEvidence, Status
from kernelexp.model.experiment import Gate, Kernel, Variant, holds
from kernelexp.services.check.gates import UPDATE, GateFinding, Outcome

Committed: TypeAlias = Mapping[str, int | str]
"""What the baseline has of one variant."""

SASS = "sass_sha256"
"""The name under which the baseline keeps a digest of the code of variants that are timed."""
DIGITS = 16
TIMES_AFTER = "times_after"
"""The name under which it keeps the run up to which the times of records are accepted."""


class GatedVariant(msgspec.Struct, frozen=True, kw_only=True):
    """A variant with what its gates are judged by."""

    label: str
    arm: Arm
    gates: tuple[Gate, ...]
    counts: InstructionCounts | None = None
    """Of its SASS; None where no gate asks for it, or it is not built."""


def gates_of(kernel: Kernel, variant: Variant) -> tuple[Gate, ...]:
    """The kernel's gates that are about this variant."""
    return tuple(
        gate
        for gate in kernel.gates
        if gate.arch in ("", variant.arch) and holds(gate.of, variant.axes)
    )


def unused(kernel: Kernel, variants: Sequence[Variant]) -> list[int]:
    """The numbers, from 1, of the gates that are about none of a kernel's variants."""
    used = [gate for variant in variants for gate in gates_of(kernel, variant)]
    return [number for number, gate in enumerate(kernel.gates, 1) if gate not in used]


def needs_execution(gates: Sequence[Gate]) -> bool:
    """Whether one of the gates needs an emulation; what is wrong on purpose does not, as finding
    that out may take long."""
    return any(gate.emulated or gate.expected == "right" for gate in gates)


def needs_sass(gates: Sequence[Gate]) -> bool:
    """Whether one of the gates is on a counter of SASS, which has a name of ncu's."""
    return any(not name.startswith(PTX) for gate in gates for name in gate.emulated)


def judges_result(gates: Sequence[Gate]) -> bool:
    """Whether one of the gates says what executing the variant has to show."""
    return any(gate.emulated or gate.expected for gate in gates)


def is_timed(subject: GatedVariant) -> bool:
    """Whether one of its gates is on its time, and there is code to time."""
    if subject.arm.build is None or _has_no_code(subject):
        return False
    return any(gate.measured for gate in subject.gates)


def _has_no_code(subject: GatedVariant) -> bool:
    """Whether it can't exist or does not build, which the comparison with the baseline is about."""
    refused = subject.arm.refused
    return refused is not None and refused.status in (Status.IMPOSSIBLE, Status.BUILD_FAILED)


def to_commit(subject: GatedVariant) -> dict[str, int | str]:
    """The figures of a variant that its gates compare with the baseline, by name."""
    answer: dict[str, int | str] = {}
    for gate in subject.gates:
        for text in gate.instructions:
            result = condition.parse(text)
            if result.expectation.basis != "value" and subject.counts:
                counts = subject.counts.in_loops if result.in_loops else subject.counts.every
                answer[_name(text)] = condition.count(result.pattern, counts)
        for name, text in gate.emulated.items():
            value = _counted(name, subject.arm)
            if expectation.parse(text).basis != "value" and value is not None:
                answer[name] = value
    return dict(sorted(answer.items()))


def judge(subject: GatedVariant, committed: Committed) -> Iterator[GateFinding]:
    """A finding for each condition but those on time, in the order in which they are written; none
    where there is no code."""
    if _has_no_code(subject):
        return
    for gate in subject.gates:
        if (gate.expected or gate.emulated) and not _is_left_out(subject):
            yield _executed(subject, gate)
        if subject.arm.build is None:
            continue
        for text in gate.instructions:
            yield _instructions(subject, text, committed)
        for name, text in gate.emulated.items():
            evidence = _taken(name, subject.arm)
            if evidence and evidence.unsupported:
                why = f"could not be emulated: {evidence.unsupported}"
                yield finding(subject, f"{name}: {text}", "unchecked", why)
            elif evidence and evidence.finished:
                yield _counter(subject, name, text, committed)


def _is_left_out(subject: GatedVariant) -> bool:
    """Whether nobody asked for executing the variant."""
    arm = subject.arm
    return arm.emulated is None and arm.refused is None and not needs_execution(subject.gates)


def finding(subject: GatedVariant, gate: str, outcome: Outcome, sentence: str) -> GateFinding:
    """Returns a finding on a gate of a variant."""
    return GateFinding(
        variant=subject.label,
        gate=gate,
        outcome=outcome,
        sentence=sentence,
        source=subject.arm.source,
    )


def _executed(subject: GatedVariant, gate: Gate) -> GateFinding:
    """Whether executing the variant shows what is expected: right, unless the gate says wrong."""
    arm, wanted = subject.arm, gate.expected or "right"
    name = f"expected: {wanted}"
    wrong = arm.refused is not None and arm.refused.status in WRONG
    if arm.build is None or (arm.refused and not wrong):
        why = arm.refused.sentence if arm.refused else "it is not built."
        return finding(subject, name, "unchecked", f"could not be executed: {why}")
    if arm.emulated is None or arm.emulated.unsupported:
        why = arm.emulated.unsupported if arm.emulated else "it was not executed"
        return finding(subject, name, "unchecked", f"could not be emulated: {why}")
    if wrong == (wanted == "incorrect"):
        return finding(subject, name, "same", arm.refused.sentence if arm.refused else "")
    if arm.refused:
        return finding(subject, name, "wrong", f"{arm.refused.status}: {arm.refused.sentence}")
    sentence = (
        "its result is right and nothing is found wrong with it: correct the kernel or the gate."
    )
    return finding(subject, name, "missed", sentence)


def _instructions(subject: GatedVariant, text: str, committed: Committed) -> GateFinding:
    result = condition.parse(text)
    if subject.counts is None:
        return finding(subject, text, "unchecked", "its SASS could not be read.")
    before: InstructionCounts | None = None
    if result.expectation.basis != "value":
        was = committed.get(_name(text))
        if not isinstance(was, int):
            return _missing(subject, text)
        before = InstructionCounts(every={result.pattern: was}, in_loops={result.pattern: was})
    (judged,) = instruction_expectations(subject.counts, [text], before)
    if judged.result == "met":
        return finding(subject, text, "same", "")
    return _missed(subject, text, judged.actual, judged.before, judged.sentence)


def _counter(subject: GatedVariant, name: str, text: str, committed: Committed) -> GateFinding:
    wanted, gate = expectation.parse(text), f"{name}: {text}"
    now, was = _counted(name, subject.arm), committed.get(name)
    if now is None:
        return finding(subject, gate, "missed", "no emulation counts anything of this name.")
    if wanted.basis == "value":
        met = wanted.is_met(now)
        return finding(subject, gate, "same", "") if met else _missed(subject, gate, now, None, "")
    if not isinstance(was, int):
        return _missing(subject, gate)
    if wanted.basis == "change" and not was:
        sentence = "the baseline's is 0, of which there is no percentage; expect a difference."
        return finding(subject, gate, "missed", sentence)
    if wanted.is_met((now - was) / was if wanted.basis == "change" else now - was):
        return finding(subject, gate, "same", "")
    return _missed(subject, gate, now, was, "")


def _missing(subject: GatedVariant, gate: str) -> GateFinding:
    return finding(subject, gate, "new", f"the baseline has no such figure; run `{UPDATE}`.")


def _missed(subject: GatedVariant, gate: str, now: int, was: int | None, by: str) -> GateFinding:
    """A condition that is not met; what may be a gain says how to lock it in."""
    if was is None:
        return finding(subject, gate, "missed", f"there are {now:,}{f', {by}' if by else ''}.")
    if now < was:
        return finding(subject, gate, "better", f"{was:,} -> {now:,}; lock it in with `{UPDATE}`.")
    return finding(subject, gate, "missed", f"{was:,} -> {now:,}{f', {by}' if by else ''}.")


def _counted(name: str, arm: Arm) -> int | None:
    """A counter of an emulation, 0 where it counted none; None where it knows no such name."""
    from warpsim.machine.counts.counter_names import named

    evidence = _taken(name, arm)
    if evidence is None or not evidence.finished:
        return None
    known = name in evidence.counters or name in named([], evidence.isa.upper())
    return evidence.counters.get(name, 0) if known else None


def _taken(name: str, arm: Arm) -> EmulatedEvidence | None:
    """Returns the emulation that has a counter of this name: of PTX, or of SASS under ncu's
    name."""
    return arm.emulated if name.startswith(PTX) else arm.emulated_sass


def _name(text: str) -> str:
    """Returns the name of a condition's instructions in the baseline: `BAR.SYNC in loops`."""
    result = condition.parse(text)
    return f"{result.pattern} in loops" if result.in_loops else result.pattern
