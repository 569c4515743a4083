"""A solution timed beside the reference and beside nothing, by a clock that none of them has.

Each process of an arm answers several pairs of rows: all arms in a random order, then in its
reverse, with inputs that are used once. What nothing takes (messages, the digest) is subtracted.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
import secrets
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kernelexp.facts import chips
from kernelexp.judge.statistics import stats
from kernelexp.model.arm import Status
from kernelexp.services.tasks import wire
from kernelexp.services.tasks.assessment import CaseTime, TaskEffect
from kernelexp.services.tasks.failing import TaskFailed
from kernelexp.services.tasks.task import Task, TaskCase
from kernelexp.services.tasks.timing import floor, turns
from kernelexp.services.tasks.timing.arm_process import ArmOrder
from kernelexp.services.tasks.timing.bank_process import (
    AnswerSample,
    BankOrder,
    DrawnSet,
    TimedCase,
)
from kernelexp.services.tasks.timing.taken import (
    ARMS,
    NARROW,
    NOTHING,
    REFERENCE,
    WIDE,
    Taken,
    TurnPlan,
    median_us,
    require_honest,
    to_worker,
)
from kernelexp.services.tasks.timing.turns import (
    SOLUTION,
    CallLook,
    InputBank,
    SolutionTurn,
    TimedArmProcess,
)
from kernelexp.services.tasks.workplace import Workplace

PROCESSES = 6
"""The core and the memory that a process gets differ by more than its turns do: on an H200 the net
time of one softmax was 19 to 74 us, in median per process."""
LOOK = 3
"""Processes of each arm after which the interval decides whether more are needed."""
ROWS, CALLS = 4, 32
"""Pairs of rows per process, and calls per turn at most."""
TURN_S = 0.02
"""Of a turn of the reference, where memory allows: what is cold in a process after a pause makes a
turn on an H100 0.1 to 0.2 ms longer, which its calls share."""
SHORT_S = 5e-4
"""Calls of less are made in a row: what a message takes, 130 to 370 us with its wait, would be most
of what is measured, and differs by as much as they take."""
ROW_S = 4e-3
"""Of a row of the quicker arm, where memory and ROW_CALLS allow."""
ROW_CALLS, LEAST_CALLS = 256, 8
TRIED = 2
"""Rows before their length is set, by the last: of the first, what is loaded and allocated once
took most. By it alone a row was 27 calls of 24 us on an H100; by the second, 201 of 14 to 17 us."""
LOOKS = 4
"""Calls of a row, drawn by chance, before which part of the previous answer is taken; the answers
on both sides of each are compared."""
CHECKED = 2
"""Turns of one call, whose inputs are large, that an answer is compared of; of others, one of each
turn: who reports ends too early in a tenth of the calls is caught in nine tenths of the cases."""
WARM = 3
"""Turns of one call that are not counted; one of as many calls as are counted follows them."""
ALONE = 3
"""Turns of the reference when the solution's process has ended; nobody is left to know a set."""
RISK = 0.05
Hold = Callable[[], contextlib.AbstractContextManager[object]]


class SolutionBench(msgspec.Struct, frozen=True, kw_only=True):
    """The device and the settings of timing a solution."""

    device: str
    """For torch: cuda; cpu times the same arms without a GPU."""
    card: str = ""
    """The GPU's name; empty: none, and no floor."""
    arch: str = ""
    """What the GPU's code is compiled for."""
    processes: int = PROCESSES
    rows: int = ROWS
    calls: int = CALLS
    turn_s: float = TURN_S
    short_s: float = SHORT_S
    row_s: float = ROW_S
    row_calls: int = ROW_CALLS
    """Of a row, at most; fewer than LEAST_CALLS: no call is made in a row."""
    pinned: bool = True
    """Whether the arms of a process share a core, and the clock has one of its own."""
    limit_s: float = 120.0
    """Of a call."""


class _DrawnTurn(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of a turn, and what is looked at."""

    plan: TurnPlan
    sets: list[DrawnSet]
    keep: list[int]
    """Places of answers that are compared."""
    looks: list[CallLook]


def measure(
    work: Workplace,
    task: Task,
    bench: SolutionBench,
    thread_instructions: float,
    hold: Hold = contextlib.nullcontext,
) -> tuple[tuple[CaseTime, ...], TaskEffect]:
    """Times each set of sizes, and all; TaskFailed for what is wrong, or can't be.

    thread_instructions: of a call, where the emulator counted it at the sizes that are timed; or 0.
    hold: keeps the card for this process; it is let go where solutions are compiled.
    """
    timing = _Timing(work, task, bench, hold)
    timing.take()
    times = tuple(timing.times(thread_instructions))
    return times, _whole(times)


def _whole(times: Sequence[CaseTime]) -> TaskEffect:
    """Geometric means by weight."""
    weights = [time.weight for time in times]

    def mean(values: Iterable[float]) -> float:
        logs = (w * math.log(max(v, 1e-9)) for w, v in zip(weights, values, strict=True))
        return math.exp(sum(logs) / sum(weights))

    return TaskEffect(
        ratio=mean(time.ratio for time in times),
        low=mean(time.low for time in times),
        high=mean(time.high for time in times),
    )


def conclude(effect: TaskEffect) -> tuple[Status, str, str]:
    """The verdict, for machines why, and words."""
    fast, slow = effect.high < 1, effect.low > 1
    times = f"{1 / effect.ratio:.3g} times as fast as the reference"
    interval = f"({1 / effect.high:.3g} to {1 / max(effect.low, 1e-9):.3g})"
    if fast or slow:
        status = Status.IMPROVED if fast else Status.REJECTED
        return status, "faster" if fast else "slower", f"{times} {interval}"
    return Status.NEUTRAL, "no_difference", f"{times} {interval}: no difference is shown"


class _Timing:
    def __init__(self, work: Workplace, task: Task, bench: SolutionBench, hold: Hold) -> None:
        self._work, self._task, self._bench, self._hold = work, task, bench, hold
        self._cases = task.timed or task.cases
        self._random = random.SystemRandom()
        self._begun: list[TimedCase] = []
        self._taken: list[list[Taken]] = [[] for _ in self._cases]
        self._plans: dict[int, TurnPlan] = {}
        self._own_core, *others = sorted(os.sched_getaffinity(0)) if bench.pinned else [-1]
        self._cores = others or [-1]
        self._risk = RISK

    def take(self) -> None:
        work, bench = self._work, self._bench
        order = BankOrder(
            own=str(work.own),
            given=str(work.given),
            answers=str(work.answers),
            device=bench.device,
        )
        with turns.bank(order, self._task.name, bench.limit_s) as bank:
            for numbers in self._batches():
                self._take_batch(bank, numbers)
                if self._is_decided():
                    return

    def _batches(self) -> list[range]:
        """Processes that are started together; where there are two, a look at each has half of the
        risk."""
        count = self._bench.processes
        if count <= LOOK:
            return [range(count)]
        self._risk = RISK / 2
        return [range(LOOK), range(LOOK, count)]

    def _is_decided(self) -> bool:
        effect = _whole(list(self.times(0.0)))
        return not effect.low <= 1 <= effect.high

    def _take_batch(self, bank: InputBank, numbers: Sequence[int]) -> None:
        with contextlib.ExitStack() as all_arms:
            # CUDA takes a second to start: all processes do, while the first cases are begun.
            stacks = [all_arms.enter_context(contextlib.ExitStack()) for _ in numbers]
            started = [
                {name: stack.enter_context(self._started(name, number)) for name in ARMS}
                for stack, number in zip(stacks, numbers, strict=True)
            ]
            if not self._begun:
                bank.wait_until_open()
                with self._hold():
                    self._begun = [bank.begin(i, _seed()) for i in range(len(self._cases))]
            for stack, arms in zip(stacks, started, strict=True):
                for arm in arms.values():
                    arm.begin_to_open()
                for arm in arms.values():
                    arm.wait_until_open()
                with self._hold(), _on_core(self._own_core):
                    self._take_process(bank, arms)
                stack.close()

    def _started(
        self, name: str, number: int
    ) -> contextlib.AbstractContextManager[TimedArmProcess]:
        work, bench = self._work, self._bench
        confine, environment = work.around(bench.device, bench.arch)
        order = ArmOrder(
            arm=name,
            folder=str(work.own if name == REFERENCE else work.given),
            answers=str(work.answers),
            device=bench.device,
            core=self._cores[number % len(self._cores)],
            confine=confine if name == SOLUTION else {},
        )
        errors = work.answers / "errors"
        return turns.arm(order, f"{name}-{number}", errors, environment, bench.limit_s)

    # Calls

    def _take_process(self, bank: InputBank, arms: dict[str, TimedArmProcess]) -> None:
        processes = [self._take(bank, arms, index) for index in range(len(self._cases))]
        solution = arms.pop(SOLUTION)
        solution.end()
        bank.forget(solution.key)
        for index, taken in enumerate(processes):
            drawn = self._drawn(bank, index, taken.plan)
            for _ in range(WARM + ALONE):
                row = dict(self._row(bank, arms, [REFERENCE, NOTHING], index, drawn))
                taken.alone.append(row[REFERENCE])
            del taken.alone[:WARM]
            self._taken[index].append(taken)
        for arm in arms.values():
            arm.end()
            bank.forget(arm.key)

    def _take(self, bank: InputBank, arms: Mapping[str, TimedArmProcess], index: int) -> Taken:
        bench = self._bench
        plan = self._warmed(bank, arms, index)
        taken = Taken(rows=[], alone=[], plan=plan)
        names = [*ARMS, NARROW] if plan.own_bytes else list(ARMS)
        numbers = range(2 * bench.rows)
        checked = numbers if plan.calls > 1 else self._random.sample(numbers, CHECKED)
        for pair in range(bench.rows):
            way = self._random.sample(names, len(names))
            for number, order in ((2 * pair, way), (2 * pair + 1, way[::-1])):
                drawn = self._drawn(bank, index, plan, keep=number in checked)
                taken.rows.append(self._row(bank, arms, order, index, drawn))
        return taken

    def _warmed(self, bank: InputBank, arms: Mapping[str, TimedArmProcess], index: int) -> TurnPlan:
        """Warms up, and returns the plan of the calls: that of the first process in all of them."""
        bench, begun = self._bench, self._begun[index]
        like = begun.like[1]
        drawn = self._drawn(bank, index, TurnPlan())
        last = self._drawn(bank, index, TurnPlan(), keep=like >= WIDE)
        turns = [drawn] * (WARM - 1) + [last]
        rows = [dict(self._row(bank, arms, ARMS, index, turn)) for turn in turns]
        plan = self._plans.get(index)
        if plan is None:
            own = rows[-1][SOLUTION].answer_bytes
            own = own if like >= WIDE and 0 < own < 0.95 * like else 0
            wanted = math.ceil(bench.turn_s / rows[-1][REFERENCE].call_s)
            calls = max(1, min(wanted, bench.calls, begun.calls))
            plan = TurnPlan(calls=calls, answer_bytes=like, own_bytes=own)
            plan = self._rowed(bank, arms, index, plan, rows[1:])
            self._plans[index] = plan
        if plan.calls > 1:
            self._row(bank, arms, ARMS, index, self._drawn(bank, index, plan))
        return plan

    def _rowed(
        self,
        bank: InputBank,
        arms: Mapping[str, TimedArmProcess],
        index: int,
        plan: TurnPlan,
        rows: Sequence[Mapping[str, SolutionTurn]],
    ) -> TurnPlan:
        """The plan, or one of calls in a row: where they are short, and a row's answers are right.

        Answers that lie in one buffer are not, nor what is done when an answer is looked at: they
        are copied after each call otherwise.
        """

        def quickest(row: Mapping[str, SolutionTurn]) -> float:
            return min(row[name].call_s for name in (REFERENCE, SOLUTION)) - row[NOTHING].call_s

        def calls(call_s: float) -> int:
            most = min(self._bench.row_calls, self._begun[index].calls)
            return min(most, math.ceil(self._bench.row_s / max(call_s, ROW_S / ROW_CALLS)))

        call_s = min(map(quickest, rows))
        if call_s > self._bench.short_s or calls(call_s) < LEAST_CALLS:
            return plan
        tried = msgspec.structs.replace(plan, in_a_row=True, calls=calls(call_s))
        try:
            for _ in range(TRIED):
                drawn = self._drawn(bank, index, tried, keep=True)
                row = dict(self._row(bank, arms, ARMS, index, drawn))
        except TaskFailed as failed:
            if failed.reason not in ("wrong_result", "unfinished"):
                raise
            return plan
        if not row[REFERENCE].digests:
            return plan
        call_s = quickest(row) / tried.calls
        return msgspec.structs.replace(tried, calls=max(LEAST_CALLS, calls(call_s)))

    def _drawn(
        self, bank: InputBank, index: int, plan: TurnPlan, *, keep: bool = False
    ) -> _DrawnTurn:
        """New sets, and what is looked at; `keep`: whether answers are."""
        looks: list[CallLook] = []
        kept, held = [self._random.randrange(plan.calls)], None
        if plan.in_a_row:
            after = self._random.sample(range(1, plan.calls), min(LOOKS, plan.calls - 1))
            held = [0, *sorted(after)]
            looks = [CallLook(place=place, number=_seed()) for place in held]
            kept = sorted({0, *after, *(place - 1 for place in after)})
        sets = bank.draw(index, _seeds(plan.calls), held)
        return _DrawnTurn(plan=plan, sets=sets, keep=kept if keep else [], looks=looks)

    def _row(
        self,
        bank: InputBank,
        arms: Mapping[str, TimedArmProcess],
        order: Sequence[str],
        index: int,
        drawn: _DrawnTurn,
    ) -> list[tuple[str, SolutionTurn]]:
        """A turn of each arm with the sets that were drawn."""
        row = []
        for name in order:
            like = _flat(drawn.plan.own_bytes) if name == NARROW else self._begun[index].like
            wanted = drawn.keep if name == SOLUTION else ()
            arm = arms[NOTHING if name == NARROW else name]
            turn = arm.turn(bank, drawn.sets, like, wanted, drawn.looks)
            if wanted:
                self._check(bank, index, turn, wanted, drawn.looks)
            row.append((name, turn))
        return row

    def _check(
        self,
        bank: InputBank,
        index: int,
        turn: SolutionTurn,
        keep: Sequence[int],
        looks: Sequence[CallLook],
    ) -> None:
        where = f"on the GPU, {self._cases[index].name}: "
        if turn.kept is None:
            raise TaskFailed(Status.INCORRECT, "wrong_result", f"{where}an answer is missing.")
        if not turn.digests:
            words = "to look at an answer runs code of its own, which may do the work only then."
            raise TaskFailed(Status.INVALID, "unfinished", where + words)
        samples = [
            AnswerSample(place=look.place - 1, number=look.number, content=content)
            for look, content in itertools.zip_longest(looks[1:], turn.samples, fillvalue="")
            if isinstance(look, CallLook)
        ]
        for place, checked in zip(keep, bank.check(keep, turn.kept, samples), strict=True):
            if checked.sentence:
                raise TaskFailed(Status.INCORRECT, "wrong_result", where + checked.sentence)
            if checked.digest != dict(enumerate(turn.digests)).get(place):
                words = "the answer is another one than when its end was reported."
                raise TaskFailed(Status.INVALID, "unfinished", where + words)
            if checked.late:
                words = "an answer is another one than when the next call began."
                raise TaskFailed(Status.INVALID, "unfinished", where + words)

    # Results

    def times(self, thread_instructions: float) -> Iterator[CaseTime]:
        """Yields the time of each case, by what was taken so far."""
        for case, taken, begun in zip(self._cases, self._taken, self._begun, strict=True):
            if self._bench.device != "cpu":  # whose cores the arms take from each other
                require_honest(taken)
            yield self._time(case, taken, begun.needed, thread_instructions)

    def _time(
        self, case: TaskCase, taken: Sequence[Taken], needed: floor.Moved, instructions: float
    ) -> CaseTime:
        workers = [to_worker(number, item) for number, item in enumerate(taken)]
        effect = stats.clustered(workers, 1, 0, SOLUTION, self._risk)
        assert effect is not None
        time_us, reference_us = (median_us(taken, arm) for arm in (SOLUTION, REFERENCE))
        chip = chips.find(self._bench.card) if self._bench.card else None
        least, words = 0.0, f"none: the limits of {self._bench.card or 'a CPU'} are not known"
        if chip is not None:
            least, words = floor.least_us(chip, needed, instructions)
        if time_us < least:
            sentence = f"{time_us:.3g} us is less than a call can take: {words}."
            raise TaskFailed(Status.INVALID, "below_floor", f"{case.name}: {sentence}")
        return CaseTime(
            name=case.name,
            weight=case.weight,
            time_us=time_us,
            reference_us=reference_us,
            overhead_us=1e6
            * statistics.median(item.overhead_s() / item.plan.calls for item in taken),
            ratio=effect.ratio,
            low=effect.low,
            high=effect.high,
            floor_us=least,
            floor=words,
            processes=len(taken),
            calls=sum(item.plan.calls * len(item.turns(SOLUTION)) for item in taken),
        )


def _seed() -> int:
    return secrets.randbelow(1 << 31)


def _seeds(count: int) -> list[int]:
    return [_seed() for _ in range(count)]


@contextlib.contextmanager
def _on_core(core: int) -> Iterator[None]:
    """This thread on one core, which no arm is on; -1: on any."""
    before = os.sched_getaffinity(0)
    if core >= 0:
        os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _flat(size: int) -> Any:
    """The layout of an answer of so many bytes."""
    tensor = {"dtype": "uint8", "shape": [size], "strides": [1], "at": 0}
    return {wire.TENSOR: tensor}, size
