"""A mutant executed, and what the emulator said of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kernelexp import emulator
from kernelexp.emulator import Schedule
from kernelexp.schedule import USUAL, first_schedules
from mutations.rules import Mutant, mutants
from mutations.subjects import SUBJECTS, Case, Loaded, Source

SCHEDULES = first_schedules(USUAL)
ORDER = ("found by name", "found by result", "found by hang", "warning", "not found")
"""From the best answer to none."""
HANGS = {"hang", "step-limit"}


class Answer(NamedTuple):
    """What was seen of a mutant."""

    key: str
    kind: str
    outcome: str
    """One of ORDER, or "refused": the program is none that the emulator takes."""
    said: tuple[str, ...]
    """Names of findings and warnings; a refusal's sentence."""
    sentence: str = ""
    """The first finding's."""


class Judge:
    """A kernel, ready to be mutated."""

    def __init__(self, name: str, source: Source) -> None:
        self.name = name
        self.subject = SUBJECTS[name]
        self.limit = 10_000_000
        """Warp instructions of a mutant: much more than the kernel itself needs."""
        self.loaded = Loaded(source)
        self.case: Case = self.subject.case(source.exports)

    @functools.cached_property
    def mutants(self) -> Mapping[str, Mutant]:
        result, right = self.run(self.loaded.program(self.loaded.function), SCHEDULES[0])
        assert right, (self.name, result.findings)
        assert not result.findings, (self.name, result.findings)
        assert not result.warnings, (self.name, result.warnings)
        executed = {
            (x.instruction.line, x.instruction.opcode)
            for x in result.counters.instructions
            if x.executed
        }
        self.limit = 5 * result.warp_instructions + 20_000
        found = mutants(self.name, self.loaded.function, self.subject.per_kind, executed)
        return {mutant.key: mutant for mutant in found}

    def run(
        self, module: emulator.Module, schedule: Schedule
    ) -> tuple[emulator.Result, bool]:
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

    def judge(self, mutant: Mutant, schedules: Sequence[Schedule] = SCHEDULES) -> Answer:
        """Runs a mutant under the schedules, up to the first finding that has a name."""
        try:
            module = self.loaded.program(mutant.change.edit(self.loaded.function))
            return self._judge(mutant, module, schedules)
        except emulator.UnsupportedInstruction as refusal:
            return Answer(mutant.key, mutant.kind, "refused", (), str(refusal))

    def _judge(
        self, mutant: Mutant, module: emulator.Module, schedules: Sequence[Schedule]
    ) -> Answer:
        best = Answer(mutant.key, mutant.kind, ORDER[-1], ())
        for schedule in schedules:
            result, right = self.run(module, schedule)
            answer = _answer(mutant, result, right)
            if ORDER.index(answer.outcome) < ORDER.index(best.outcome):
                best = answer
            if best.outcome == ORDER[0]:
                break
        return best


def _answer(mutant: Mutant, result: emulator.Result, right: bool) -> Answer:
    names = {finding.name for finding in result.findings}
    sentence = result.findings[0].sentence if result.findings else ""
    if names - HANGS:
        return Answer(mutant.key, mutant.kind, ORDER[0], tuple(sorted(names)), sentence)
    if names:
        return Answer(mutant.key, mutant.kind, ORDER[2], tuple(sorted(names)), sentence)
    if not right:
        return Answer(mutant.key, mutant.kind, ORDER[1], ())
    if result.warnings:
        said = tuple(sorted(warning.name for warning in result.warnings))
        return Answer(mutant.key, mutant.kind, ORDER[3], said, result.warnings[0].sentence)
    return Answer(mutant.key, mutant.kind, ORDER[4], ())
