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
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kernelexp.facts import chips
from kernelexp.judge.statistics import stats
from kernelexp.model.arm.verdict import Status
from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.measurement import Block, DeviceState, Row, Worker
from kernelexp.services.tasks import floor, turns
from kernelexp.services.tasks.arm_process import ArmOrder
from kernelexp.services.tasks.assessment import CaseTime, TaskEffect
from kernelexp.services.tasks.failing import TaskFailed
from kernelexp.services.tasks.problem_process import Drawn, TimedOrder
from kernelexp.services.tasks.task import Task
from kernelexp.services.tasks.turns import SOLUTION, SolutionTurn, TimedArmProcess
from kernelexp.services.tasks.workplace import Workplace

REFERENCE, NOTHING = "reference", "nothing"
ARMS = (REFERENCE, SOLUTION, NOTHING)
PROCESSES = 6
"""The core and the memory that a process gets differ by more than its turns do: on an H200 the net
time of one softmax was 19 to 74 us, in median per process."""
ROWS, CALLS = 4, 8
"""At most, pairs of rows per process, and calls per turn; inputs of 64 MB leave 1 and 2."""
WARM = 2
"""Turns that are not counted, all with one set of inputs."""
ALONE = 3
"""Turns of the reference when the solution's process has ended; nobody is left to know a set."""
BYTES = 2 << 30
"""Of all sets of a case, unless the fewest rows have more."""
RISK = 0.05
LEAST_US = 0.1
EARLY = 0.5
"""Of a call's time that a process may use before the clock more than nothing does."""
SLOWED = 1.25
"""How much slower the reference may be beside the solution than without it."""
_NO_STATE = DeviceState(sm_clock_mhz=0, memory_clock_mhz=0, power_w=0.0, temperature_c=0)


class SolutionBench(msgspec.Struct, frozen=True, kw_only=True):
    """Where it is timed."""

    device: str
    """For torch: cuda; cpu times the same arms without a GPU."""
    card: str = ""
    """The GPU's name; empty: none, and no floor."""
    arch: str = ""
    """What the GPU's code is compiled for."""
    processes: int = PROCESSES
    rows: int = ROWS
    calls: int = CALLS
    pinned: bool = True
    """Whether the arms of a process share a core, and the clock has one of its own."""
    limit_s: float = 120.0
    """Of a call."""


class Taken(msgspec.Struct, kw_only=True):
    """What a process of each arm took."""

    rows: list[list[tuple[str, SolutionTurn]]] = []
    calls: int = 1
    """Per turn."""
    alone: list[SolutionTurn] = []
    """Of the reference, when the solution's process had ended."""

    def turns(self, arm: str) -> list[SolutionTurn]:
        return [turn for row in self.rows for name, turn in row if name == arm]

    def overhead_s(self) -> float:
        return statistics.median(turn.call_s for turn in self.turns(NOTHING))


def measure(
    work: Workplace, task: Task, bench: SolutionBench, thread_instructions: float
) -> tuple[tuple[CaseTime, ...], TaskEffect]:
    """Of each set of sizes and of all; TaskFailed for what is wrong, or can't be.

    thread_instructions: of a call, where the emulator counted it at the sizes that are timed; or 0.
    """
    cases = task.timed or task.cases
    times = tuple(
        _Case(work, task, bench, index).time(thread_instructions) for index in range(len(cases))
    )
    whole = sum(time.weight for time in times)

    def mean(values: Iterator[float]) -> float:
        logs = (
            case_time.weight * math.log(max(v, 1e-9))
            for case_time, v in zip(times, values, strict=True)
        )
        return math.exp(sum(logs) / whole)

    return times, TaskEffect(
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


class _Case:
    def __init__(self, work: Workplace, task: Task, bench: SolutionBench, index: int) -> None:
        self._work, self._task, self._bench, self._index = work, task, bench, index
        self._case = (task.timed or task.cases)[index]
        self._random = random.SystemRandom()
        self._next = 0
        self._digests: dict[int, int] = {}
        self._checked: list[int] = []
        self._own_core, *others = sorted(os.sched_getaffinity(0)) if bench.pinned else [-1]
        self._cores = others or [-1]

    def time(self, thread_instructions: float) -> CaseTime:
        with contextlib.ExitStack() as all_arms:
            # torch and CUDA take seconds to start: all processes do, while inputs are drawn.
            stacks = [
                all_arms.enter_context(contextlib.ExitStack()) for _ in range(self._bench.processes)
            ]
            cores = itertools.cycle(self._cores)
            started = [
                {name: stack.enter_context(self._started(name, core)) for name in ARMS}
                for stack, core in zip(stacks, cores, strict=False)
            ]
            drawn = self._draw()
            self._checked = drawn.checked
            sets = drawn.sets // self._bench.processes - 1
            rows, calls = turns_of(sets, self._bench.rows, self._bench.calls)
            taken = []
            with _on_core(self._own_core):
                for stack, arms in zip(stacks, started, strict=True):
                    taken.append(self._take(arms, rows, calls))
                    stack.close()
        self._check()
        if self._bench.device != "cpu":  # whose cores the arms take from each other
            require_honest(taken)
        return self._result(taken, drawn.needed, thread_instructions)

    def _draw(self) -> Drawn:
        least, most = (
            self._bench.processes * (1 + 2 * calls)
            for calls in (1, self._bench.rows * self._bench.calls)
        )
        order = TimedOrder(
            device=self._bench.device,
            case=self._index,
            seeds=[secrets.randbelow(1 << 31) for _ in range(most)],
            fewest=least,
            bytes=BYTES,
        )
        drawn = self._work.problem("draw", self._work.given, order)
        if "fault" in drawn:
            raise EnvironmentFault(f"{self._case.name} can't be timed: {drawn['fault']}")
        return msgspec.convert(drawn, Drawn)

    # Calls

    def _take(self, arms: dict[str, TimedArmProcess], rows: int, calls: int) -> Taken:
        taken = Taken(rows=[], alone=[], calls=calls)
        for arm in arms.values():
            arm.begin_to_open()
        for arm in arms.values():
            arm.wait_until_open()
        (first,) = self._new_sets(1)
        warm = [first] * calls
        for _ in range(WARM):
            self._row(arms, ARMS, warm)
        for _ in range(rows):
            way = self._random.sample(ARMS, len(ARMS))
            taken.rows += [self._once(arms, order, calls) for order in (way, way[::-1])]
        arms.pop(SOLUTION).end()
        for _ in range(ALONE):
            row = dict(self._row(arms, [REFERENCE, NOTHING], warm))
            taken.alone.append(row[REFERENCE])
        self._forget([first])
        return taken

    def _once(
        self, arms: Mapping[str, TimedArmProcess], order: Sequence[str], calls: int
    ) -> list[tuple[str, SolutionTurn]]:
        places = self._new_sets(calls)
        row = self._row(arms, order, places)
        self._forget(places)
        return row

    def _new_sets(self, count: int) -> list[int]:
        places = list(range(self._next, self._next + count))
        self._next += count
        return places

    def _forget(self, places: Sequence[int]) -> None:
        for place in set(places) - set(self._checked):
            for suffix in (".json", ".bin"):
                (self._work.own / f"set-{place}{suffix}").unlink()

    def _row(
        self, arms: Mapping[str, TimedArmProcess], order: Sequence[str], places: Sequence[int]
    ) -> list[tuple[str, SolutionTurn]]:
        """A turn of each arm with these sets."""
        inputs = [turns.hand_over(self._work.own, self._work.given, place) for place in places]
        checked = {index: place for index, place in enumerate(places) if place in self._checked}
        keep = {index: f"set-{place}" for index, place in checked.items()}
        row = []
        for name in order:
            turn = arms[name].turn(inputs, keep=keep if name == SOLUTION else {})
            if name == SOLUTION:
                digests = (*turn.digests, *[0] * len(places))
                self._digests |= {place: digests[index] for index, place in checked.items()}
            row.append((name, turn))
        for path in inputs:
            for suffix in (".json", ".bin"):
                path.with_suffix(suffix).unlink()
        return row

    def _started(self, name: str, core: int) -> contextlib.AbstractContextManager[TimedArmProcess]:
        work = self._work
        folder = work.own if name == REFERENCE else work.given
        bench = self._bench
        confine, environment = work.around(bench.device, bench.arch)
        order = ArmOrder(
            arm=name,
            folder=str(folder),
            like=str(work.own / "like"),
            device=bench.device,
            core=core,
            confine=confine if name == SOLUTION else {},
        )
        return turns.opened(order, work.answers, environment, bench.limit_s)

    # Results

    def _check(self) -> None:
        order = TimedOrder(
            device=self._bench.device, case=self._index, checked=sorted(self._digests)
        )
        judged = self._work.problem("check", self._work.answers, order)
        if "fault" in judged:
            raise TaskFailed(Status.INCORRECT, "check_failed", str(judged["fault"]))
        where = f"on the GPU, {self._case.name}: "
        for place in map(str, order.checked):
            if judged["sentences"][place]:
                raise TaskFailed(
                    Status.INCORRECT, "wrong_result", where + judged["sentences"][place]
                )
            if judged["digests"][place] != self._digests[int(place)]:
                words = "the answer is another one than when its end was reported."
                raise TaskFailed(Status.INVALID, "unfinished", where + words)

    def _result(
        self, taken: Sequence[Taken], needed: floor.Moved, thread_instructions: float
    ) -> CaseTime:
        workers = [_worker(number, item) for number, item in enumerate(taken)]
        effect = stats.clustered(workers, 1, 0, SOLUTION, RISK)
        assert effect is not None
        time_us, reference_us = (_median_us(taken, arm) for arm in (SOLUTION, REFERENCE))
        chip = chips.find(self._bench.card) if self._bench.card else None
        least, words = 0.0, f"none: the limits of {self._bench.card or 'a CPU'} are not known"
        if chip is not None:
            least, words = floor.least_us(chip, needed, thread_instructions)
        if time_us < least:
            sentence = f"{time_us:.3g} us is less than a call can take: {words}."
            raise TaskFailed(Status.INVALID, "below_floor", f"{self._case.name}: {sentence}")
        return CaseTime(
            name=self._case.name,
            weight=self._case.weight,
            time_us=time_us,
            reference_us=reference_us,
            overhead_us=1e6 * statistics.median(item.overhead_s() / item.calls for item in taken),
            ratio=effect.ratio,
            low=effect.low,
            high=effect.high,
            floor_us=least,
            floor=words,
            processes=len(taken),
            calls=sum(item.calls * len(item.turns(SOLUTION)) for item in taken),
        )


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


def turns_of(sets: int, rows: int, calls: int = CALLS) -> tuple[int, int]:
    """Pairs of rows, and calls per turn, of a process that has so many sets of inputs: first more
    calls, as the noise of a turn is hardly more for them."""
    calls = max(1, min(calls, sets // 2))
    return max(1, min(rows, sets // (2 * calls))), calls


def _net_us(taken: Taken, turn: SolutionTurn) -> float:
    """Of a call."""
    return max(LEAST_US, 1e6 * (turn.call_s - taken.overhead_s()) / taken.calls)


def _median_us(taken: Sequence[Taken], arm: str) -> float:
    return statistics.fmean(
        statistics.median(_net_us(item, turn) for turn in item.turns(arm)) for item in taken
    )


def _worker(number: int, taken: Taken) -> Worker:
    """As measurements of kernels have it: the reference is arm 0, the solution arm 1."""
    rows = []
    for row in taken.rows:
        timed = [(ARMS.index(name), _net_us(taken, turn)) for name, turn in row]
        timed = [(index, us) for index, us in timed if index < 2]
        order, times = zip(*timed, strict=True)
        rows.append(Row(order=order, times_us=times))
    return Worker(
        process=number,
        seed=0,
        load_order=(0, 1),
        launches_per_sample=1,
        sets=1,
        warm_up_s=0.0,
        drift=0.0,
        blocks=(Block(before=_NO_STATE, after=_NO_STATE, rows=tuple(rows)),),
        checks=(),
    )


def require_honest(taken: Sequence[Taken]) -> None:
    """TaskFailed where the clock was cheated in a way that answers don't show.

    The quickest tenth of what is suspected against the slowest of what it is compared with: a busy
    machine does not convict.
    """
    overhead = statistics.median(item.overhead_s() for item in taken)
    beside = _tenth([t.call_s for item in taken for t in item.turns(REFERENCE)]) - overhead
    used = _tenth([t.ready_s for item in taken for t in item.turns(SOLUTION)])
    idle = max(t.ready_s for item in taken for t in item.turns(NOTHING))
    if used - idle > EARLY * beside:
        words = (
            f"before the clock it uses {1e3 * (used - idle):.3g} ms more than a process that does "
            f"nothing; a call of the reference takes {1e3 * beside:.3g} ms."
        )
        raise TaskFailed(Status.INVALID, "early", words)
    alone = max(t.call_s for item in taken for t in item.alone) - overhead
    noise = max(t.call_s for item in taken for t in item.turns(NOTHING)) - overhead
    if beside > SLOWED * max(alone, 0.0) + noise:
        words = (
            f"the reference takes {1e3 * beside:.3g} ms or more beside the solution, and "
            f"{1e3 * alone:.3g} ms at most when its process has ended."
        )
        raise TaskFailed(Status.INVALID, "slows_others", words)


def _tenth(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 10]
