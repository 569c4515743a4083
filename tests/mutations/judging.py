"""A mutant executed, and what the emulator said of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import warpsim as emulator
from mutations import rules_of_operands, rules_of_order  # noqa: F401 - they fill the table
from mutations.case import Case, Loaded, Source, TextMutant
from mutations.classes import harmless
from mutations.rules import Mutant, mutants
from mutations.subjects import SUBJECTS
from mutations.texts import TextSubject
from warpsim import Schedule
from warpsim.schedule import USUAL, first_schedules

SCHEDULES = first_schedules(USUAL)
NAME, RESULT, HANG, REFUSED, WARNING = "name", "result", "hang", "refused", "warning"
FORMAL, EQUIVALENT, NOT_FOUND = "formal", "equivalent", "not found"
ACCUSED = "accused"
OUTCOMES = (NAME, RESULT, HANG, REFUSED, WARNING, FORMAL, EQUIVALENT, NOT_FOUND, ACCUSED)
"""How a mutant ended, from the best answer on: by the name of what is wrong, by a wrong result
only, by a hang or the limit of steps, refused as not modelled, by a warning only; not found, and
formal or equivalent (see classes.py) or neither; an equivalent one that was accused of a fault."""
SEEN = {NAME, RESULT, HANG, REFUSED, WARNING}
HANGS = {"hang", "step-limit"}
MARGIN = 200_000
"""Warp instructions: eight warps that poll by a plain load take 32,000 before all had a turn."""


class Answer(NamedTuple):
    """What was seen of a mutant."""

    key: str
    kind: str
    outcome: str
    said: tuple[str, ...] = ()
    """Names of findings or warnings."""
    sentence: str = ""
    """Of the first finding, warning or refusal, or why it need not be found."""

    def line(self) -> str:
        """As expected.txt has it."""
        return f"{self.key} | {' '.join((self.outcome, *self.said))}"


class Judge:
    """A kernel, ready to be mutated."""

    def __init__(self, name: str, source: Source) -> None:
        self.name = name
        self.subject = SUBJECTS[name]
        self.source = source
        self.loaded = Loaded(source)
        self.case: Case = self.subject.case(source.exports)
        self.limit = 10_000_000
        """Warp instructions of a mutant: much more than the kernel itself needs."""

    @functools.cached_property
    def mutants(self) -> Mapping[str, Mutant | TextMutant]:
        """By key; the kernel itself must be right."""
        function = self.loaded.function
        result, right = self.run(self.loaded.program(function), SCHEDULES[0])
        assert right, (self.name, result.findings)
        assert not result.findings, (self.name, result.findings)
        assert not result.warnings, (self.name, result.warnings)
        executed = {
            (x.instruction.line, x.instruction.opcode)
            for x in result.counters.instructions
            if x.executed
        }
        self.limit = 5 * result.warp_instructions + MARGIN
        if self.source.changed is not None:
            return {key: TextMutant(key, ptx) for key, ptx in self.source.changed.items()}
        assert not isinstance(self.subject, TextSubject)
        answer = mutants(self.name, function, self.subject.per_kind, executed)
        return {mutant.key: mutant for mutant in answer}

    def run(self, module: emulator.Module, schedule: Schedule) -> tuple[emulator.Result, bool]:
        """(what was seen, whether the output is right)."""
        arrays = self.case.arrays()
        result = emulator.run(
            module,
            self.case.launch,
            arrays,
            schedule=schedule,
            unwritten=self.case.unwritten,
            limit=self.limit,
        )
        return result, self.case.right(arrays)

    def judge(
        self, mutant: Mutant | TextMutant, schedules: Sequence[Schedule] = SCHEDULES
    ) -> Answer:
        """Runs a mutant under the schedules, up to the first finding that has a name."""
        answer = self._seen(mutant, schedules)
        known = harmless(mutant, self.loaded.function)
        if known is None or (known.formal and answer.outcome != NOT_FOUND):
            return answer
        if answer.outcome == NAME:
            return answer._replace(outcome=ACCUSED)
        if answer.outcome == NOT_FOUND:
            outcome = FORMAL if known.formal else EQUIVALENT
            return answer._replace(outcome=outcome, sentence=known.reason)
        return answer

    def _seen(self, mutant: Mutant | TextMutant, schedules: Sequence[Schedule]) -> Answer:
        best = Answer(mutant.key, mutant.kind, NOT_FOUND)
        try:
            module = mutant.program(self.loaded)
            for schedule in schedules:
                answer = _answer(best, *self.run(module, schedule))
                best = min(best, answer, key=lambda x: OUTCOMES.index(x.outcome))
                if best.outcome == NAME:
                    break
        except emulator.UnsupportedInstruction as refusal:
            return best._replace(outcome=REFUSED, sentence=str(refusal))
        return best


def _answer(blank: Answer, result: emulator.Result, right: bool) -> Answer:
    names = sorted({finding.name for finding in result.findings})
    sentence = result.findings[0].sentence if names else ""
    if set(names) - HANGS:
        return blank._replace(outcome=NAME, said=tuple(names), sentence=sentence)
    if not right and not names:
        return blank._replace(outcome=RESULT, said=(), sentence="")
    if names:
        return blank._replace(outcome=HANG, said=tuple(names), sentence=sentence)
    if result.warnings:
        answer = tuple(sorted({warning.name for warning in result.warnings}))
        sentence = result.warnings[0].sentence
        return blank._replace(outcome=WARNING, said=answer, sentence=sentence)
    return blank._replace(outcome=NOT_FOUND, said=(), sentence="")
