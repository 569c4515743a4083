"""Processes of a timing: the arms' and the bank's, and the clock, which is this process's."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.model.arm import Status
from kernelexp.model.errors import EnvironmentFault
from kernelexp.services.tasks import failing
from kernelexp.services.tasks.failing import TaskFailed
from kernelexp.services.tasks.task import SolutionReport
from kernelexp.services.tasks.timing import linked
from kernelexp.services.tasks.timing.arm_process import ArmOrder
from kernelexp.services.tasks.timing.bank_process import (
    AnswerSample,
    BankOrder,
    CheckedAnswer,
    DrawnSet,
    TimedCase,
)
from kernelexp.services.tasks.timing.linked import Link, ProcessGone
from kernelexp.system.disk import decode

SOLUTION = "solution"
Slots = list[tuple[str, int]]
"""Names and bytes of shared memory."""


class KeptAnswers(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The place where an arm has put answers."""

    tree: Any
    name: str
    size: int


class CallLook(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A call of a row before which a part of the answer before is taken."""

    place: int
    number: int
    """By which the part is found."""


class SolutionTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A call for each of several sets of inputs, one after the other."""

    ready_s: float
    """From when its inputs were laid out to when it had them, before the clock."""
    call_s: float
    """Of all calls together."""
    digests: tuple[int, ...] = ()
    kept: KeptAnswers | None = None
    """Answers that were asked for."""
    samples: tuple[str, ...] = ()
    """Parts of answers, one for each look but the first, in hexadecimals."""
    answer_bytes: int = 0
    """Of an answer; 0: none was asked for."""


class InputBank:
    """The process that has the reference, and all inputs."""

    def __init__(self, link: Link, name: str) -> None:
        self._link, self._name = link, name

    def begin(self, case: int, seed: int) -> TimedCase:
        return msgspec.convert(self._ask("begin", case, seed), TimedCase)

    def draw(
        self, case: int, seeds: Sequence[int], held: Sequence[int] | None = None
    ) -> list[DrawnSet]:
        """New sets; `held`: those of which a part is held back, None: all."""
        encoded = self._ask("draw", case, list(seeds), held)
        return msgspec.convert(encoded, list[DrawnSet])

    def fill(self, arm: str, slots: Slots) -> str:
        """Puts the sets where an arm has its own; why that can't be."""
        return str(self._ask("fill", arm, slots)["refused"])

    def check(
        self, places: Sequence[int], kept: KeptAnswers, samples: Sequence[AnswerSample] = ()
    ) -> list[CheckedAnswer]:
        encoded = [msgspec.to_builtins(sample) for sample in samples]
        answer = self._ask("check", list(places), kept.tree, kept.name, kept.size, encoded)
        return msgspec.convert(answer, list[CheckedAnswer])

    def forget(self, arm: str) -> None:
        self._ask("forget", arm)

    def wait_until_open(self) -> None:
        self._hear()

    def _ask(self, what: str, *arguments: Any) -> Any:
        self._link.send(json.dumps([what, *arguments]))
        return self._hear()

    def _hear(self) -> Any:
        try:
            result = json.loads(self._link.hear())
        except (ProcessGone, TimeoutError) as error:
            raise EnvironmentFault(f"{self._name} can't be timed: {_last(error)}.") from None
        if isinstance(result, dict) and "fault" in result:
            raise EnvironmentFault(f"{self._name} can't be timed: {result['fault']}")
        return result


class TimedArmProcess:
    """The process of an arm, which has the solution, the reference, or nothing."""

    def __init__(self, name: str, key: str, link: Link, errors: Path) -> None:
        self.name, self.key, self._link, self._errors = name, key, link, errors
        self.end = link.end

    def begin_to_open(self) -> None:
        """Its libraries may be loaded; from here on its solution's code runs."""
        self._link.send("open")

    def wait_until_open(self) -> None:
        self._hear()

    def turn(
        self,
        bank: InputBank,
        sets: Sequence[DrawnSet],
        like: Any,
        keep: Sequence[int] = (),
        looks: Sequence[CallLook] = (),
    ) -> SolutionTurn:
        """A call with each set that was drawn; `keep`: the places of answers that are wanted, of
        which the process hears when it has reported all digests. `looks`: the calls are a row."""
        self._link.send("warm")
        self._hear()
        begun = time.perf_counter()
        self._link.send(json.dumps([[one.layout for one in sets], like, bool(looks)]))
        slots = self._convert(self._hear(), Slots)
        if refused := bank.fill(self.key, slots):
            self._fail(Status.CRASHED, "memory", refused)
        self._link.send("filled")
        self._hear()
        held = [f"go{one.held}" for one in sets]
        if looks:
            encoded = [[look.place, look.number, sets[look.place].held] for look in looks]
            held = [f"go {json.dumps(encoded)}"]
        ready = time.perf_counter()
        for words in held[:-1]:
            self._link.send(words)
            self._hear(spin=True)
        self._link.send(held[-1])
        line = self._hear(spin=True)
        done = time.perf_counter()
        reported = line.split()
        self._link.send(json.dumps(list(keep)))
        kept, samples = self._convert(self._hear(), tuple[KeptAnswers | None, tuple[str, ...]])
        reported = reported[: len(sets)]
        digests = tuple(int(word) if word.lstrip("-").isdigit() else 0 for word in reported)
        return SolutionTurn(
            ready_s=ready - begun,
            call_s=done - ready,
            digests=digests,
            kept=kept,
            samples=samples,
            answer_bytes=kept.size // len(keep) if kept and keep else 0,
        )

    def _convert(self, text: str, kind: Any) -> Any:
        try:
            return decode(text, kind)
        except msgspec.DecodeError as error:
            self._fail(Status.CRASHED, "ended", f"its process said what makes no sense: {error}.")

    def _hear(self, *, spin: bool = False) -> str:
        try:
            word, _, rest = self._link.hear(spin=spin).partition(" ")
        except TimeoutError:
            self._fail(Status.TIMED_OUT, "limit", "a call had not ended at its limit of time.")
        except ProcessGone as gone:
            self._fail(Status.CRASHED, "ended", f"its process ended: {self._last(gone)}.")
        if word == "failed":
            raise self._raised(rest)
        return rest

    def _last(self, gone: ProcessGone) -> str:
        words = self._errors.read_text(errors="replace") if self._errors.is_file() else ""
        return words.strip().splitlines()[-1][:300] if words.strip() else _last(gone)

    def _fail(self, status: Status, reason: str, words: str) -> Any:
        if self.name != SOLUTION:
            raise EnvironmentFault(f"the {self.name} can't be timed: {words}")
        raise TaskFailed(status, reason, f"on the GPU: {words}")

    def _raised(self, encoded: str) -> Exception:
        try:
            report = decode(encoded, SolutionReport)
        except msgspec.DecodeError:
            report = SolutionReport(error="raised")
        if self.name != SOLUTION:
            return EnvironmentFault(f"the {self.name} can't be timed: {report.sentence}")
        return failing.raised(report)


def _last(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it takes longer than the limit of time"
    words = str(error).strip()
    return words.splitlines()[-1][:300] if words else "in the middle of a call"


@contextlib.contextmanager
def arm(
    order: ArmOrder, key: str, errors: Path, environment: Mapping[str, str], limit_s: float
) -> Iterator[TimedArmProcess]:
    """The process of an arm, which waits to be opened; `key`: its name for the bank."""
    module = "kernelexp.services.tasks.timing.arm_process"
    with linked.started(module, order, environment, limit_s) as link:
        yield TimedArmProcess(order.arm, key, link, errors)


@contextlib.contextmanager
def bank(order: BankOrder, name: str, limit_s: float) -> Iterator[InputBank]:
    """The bank of a task."""
    module = "kernelexp.services.tasks.timing.bank_process"
    with linked.started(module, order, {}, limit_s) as link:
        yield InputBank(link, name)
