"""Launches from start to end, under one schedule or several."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from warpsim import compiled, forks, parts
from warpsim.errors import UsageError
from warpsim.launch import Launch, Residency, full_name
from warpsim.lineinfo import SourceLine
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.findings import Fatal, Finding
from warpsim.machine.core.native_layout import ENTERED
from warpsim.machine.core.site import CALLERS, UnsupportedInstruction
from warpsim.machine.counts.counters import Counters, ExecutionCounts, add_up, collect
from warpsim.machine.counts.patterns import Patterns
from warpsim.machine.memory.execution import Execution, Printed
from warpsim.machine.memory.history import Beside
from warpsim.machine.memory.layout import GlobalLayout
from warpsim.machine.schedule.hangs import Waiter
from warpsim.machine.schedule.program import DecodedProgram
from warpsim.machine.schedule.scheduler import Scheduler
from warpsim.machine.wave.machine import Machine
from warpsim.modules import Module, entry_of
from warpsim.schedule import USUAL, Schedule, first_schedules

_ENDING = frozenset(
    "hang trap assertion stack step-limit out-of-bounds misaligned read-only".split()
)
"""Findings that end a launch early."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a launch."""

    schedule: Schedule
    findings: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    """Formal mistakes: what the ISA asks for, though hardware has not been seen to need it."""
    hang: tuple[Waiter, ...]
    """Who waited for what when nothing could go on; empty if the launch finished."""
    contended: bool
    """Whether flags or atomics met in an order that nothing in the kernel decides."""
    printed: tuple[Printed, ...]
    """What printf() showed, in the order of this schedule."""
    counters: Counters
    warp_instructions: int
    thread_instructions: int
    seconds: float
    filled_once: str = ""
    """Where the copies stand that fill stages in turn, if none of these was filled again."""
    ways: Mapping[str, int] = {}
    """Of source lines with guards by which threads stay inside of a problem: 1 where these held for
    all threads that came there, 2 where they held for none, 3 where some went either way."""
    given_up: bool = False
    """Whether its emulation ended before it did: an access out of bounds alone does not end it."""

    @property
    def finished(self) -> bool:
        """Whether every thread would have come to its end on a GPU."""
        return not any(
            finding.name in _ENDING and not finding.survived for finding in self.findings
        )


def run(
    module: Module,
    launch: Launch,
    arrays: Mapping[str, Array],
    *,
    schedule: Schedule | None = None,
    unwritten: Collection[str] = (),
    card: Residency | None = None,
    limit: int = 200_000_000,
    judged: bool = True,
    processes: int = 1,
) -> Result:
    """Executes one launch; `arrays` are written in place.

    unwritten: arrays that hold nothing yet (outputs): they start as poison, and reading them is a
        finding. Everything else counts as written.
    card: the one that is launched on: CTAs which wait for each other have to be resident there.
        Without it as many are as the emulator takes.
    limit: warp instructions after which the launch is given up.
    judged, processes: as in run_on().
    """
    (result,) = run_each(
        module,
        (launch,),
        arrays,
        schedule=schedule,
        unwritten=unwritten,
        card=card,
        limit=limit,
        judged=judged,
        processes=processes,
    )
    return result


def run_each(
    module: Module,
    launches: Sequence[Launch],
    arrays: Mapping[str, Array],
    *,
    schedule: Schedule | None = None,
    unwritten: Collection[str] = (),
    card: Residency | None = None,
    limit: int = 200_000_000,
    patterns: Sequence[Patterns] = (),
    judged: bool = True,
    benign: Collection[SourceLine] = (),
    processes: int = 1,
) -> tuple[Result, ...]:
    """Executes launches one after the other on the same memory, up to the first that is given up;
    otherwise as run().

    patterns: one for each launch, where its accesses are noted, which compiled code would not do.
    benign: source lines, whose races with each other are warnings.
    """
    if patterns and compiled.is_loaded():
        raise UsageError("patterns of accesses are noted in Python alone: compiled.unload() first.")
    watched: Sequence[Patterns | None] = patterns or [None] * len(launches)
    programs = [entry_of(module, item) for item in launches]
    results: list[Result] = []
    memory: GlobalLayout | None = None
    for program, launch, notes in zip(programs, launches, watched, strict=True):
        started = time.perf_counter()
        execution = Execution(
            program.image,
            launch,
            arrays,
            frozenset(unwritten),
            schedule or Schedule(),
            memory,
            card=card,
            patterns=notes,
            judged=judged,
            benign=benign,
        )
        memory = execution.world
        result = _execute(program, execution, schedule or Schedule(), limit, started, processes)
        results.append(result)
        if result.given_up:
            break
    return tuple(results)


def run_on(
    program: DecodedProgram,
    launch: Launch,
    world: GlobalLayout,
    *,
    schedule: Schedule | None = None,
    card: Residency | None = None,
    limit: int = 200_000_000,
    watch: Callable[[Execution], None] | None = None,
    judged: bool = True,
    processes: int = 1,
    beside: Beside | None = None,
) -> Result:
    """Executes one launch on memory that outlives it.

    judged: False executes it faster, without looking for races and reads of what nobody wrote, and
        without counting what accesses cost.

    watch: is given the launch before it begins, to see how far it is.

    processes: that may execute it together, where that makes no difference; see parts.py.

    beside: what another launch does that may still run, until a thread waits for it.
    """
    started = time.perf_counter()
    schedule = schedule or Schedule()
    execution = Execution(
        program.image, launch, {}, frozenset(), schedule, world=world, card=card, judged=judged
    )
    if beside is not None and execution.judged:
        execution.begin_beside(beside)
        processes = 1
    if watch:
        watch(execution)
    return _execute(program, execution, schedule, limit, started, processes)


def _execute(
    program: DecodedProgram,
    execution: Execution,
    schedule: Schedule,
    limit: int,
    started: float,
    processes: int,
) -> Result:
    for number, name, sentence in program.hazards:
        execution.findings.add(name, sentence, program.sites[number])
    waves, given_up = _Waves(program, execution, schedule, limit), False
    with np.errstate(all="ignore"):
        try:
            waves.run(processes)
        except Fatal:
            given_up = True
    execution.world.write_back()
    counters = collect(program.sites, execution.tallies, waves.count)
    given_up |= bool(waves.hang)
    seconds = time.perf_counter() - started
    ways = _ways(program, waves.count)
    return _result(schedule, execution, waves.hang, counters, ways, seconds, given_up=given_up)


class _Waves:
    """A launch, wave after wave of resident CTAs."""

    def __init__(
        self, program: DecodedProgram, execution: Execution, schedule: Schedule, limit: int
    ) -> None:
        self._program, self._execution = program, execution
        self._seed, self._limit = schedule.seed, limit
        self.count = _Count(len(program.sites))
        self.hang: tuple[Waiter, ...] = ()

    def run(self, processes: int) -> None:
        """processes: that may execute parts of it, once it has taken a while."""
        execution = self._execution
        splits = processes > 1 and parts.may_be_split(self._program, execution)
        begun, splits_at = 0, time.monotonic() + parts.PATIENCE_S
        while begun < execution.grid_ctas and not self.hang:
            left = execution.grid_ctas - begun
            if splits and left > execution.resident and time.monotonic() > splits_at:
                begun, splits = self._run_parts(parts.ranges(begun, execution, processes)), False
            else:
                begun = self._run_one(begun)

    def _run_one(self, begun: int, forks: int = 0) -> int:
        """A wave from a CTA on; the CTA after its last. forks: that do as much meanwhile."""
        execution = self._execution
        if begun:  # each wave has a seed of its own, whoever executes it
            execution.chance.seed(f"{self._seed} {begun}")
        machine = Machine(execution, begun)
        execution.ctas_begun = (begun + len(machine.ctas)) + forks * len(machine.ctas)
        scheduler = Scheduler(machine, self._program, self._limit)
        try:
            scheduler.run()
        finally:
            machine.end()
            self.hang = scheduler.hang
            self.count.add(scheduler.program, scheduler)
            begun += len(machine.ctas)
            _let_go(scheduler, *machine.spaces.values(), machine)
        return begun

    def _run_parts(self, ranges: Sequence[range]) -> int:
        """The first of these here, the others in forks; the CTA from which on there are more."""
        execution, since = self._execution, self._execution.now
        sites: dict[int, object] = {id(site): site for site in self._program.sites}
        running: list[forks.Fork] = []
        begun = ranges[0].start
        try:
            for others in ranges[1:]:
                running.append(forks.Fork(self._run_part, [others], sites))
            while begun < ranges[0].stop and not self.hang:
                begun = self._run_one(begun, len(running))
            if self.hang:
                return begun
            answers = [fork.answer() for fork in running]
        except BlockingIOError:  # no more processes are allowed
            return begun
        finally:
            for fork in running:
                fork.end()
        given = [answer[0] if answer else None for answer in answers]
        if parts.take(execution, self.count, given, since, self._limit):
            self._end_with(part for part in given if part)
            return execution.grid_ctas
        if not execution.judged:
            words = "a process that executed a part of a launch has ended early."
            raise UnsupportedInstruction(words)
        return begun

    def _end_with(self, given: Iterable[parts.Part]) -> None:
        for part in given:
            self.hang = self.hang or part.hang
            if part.given_up:
                raise Fatal

    def _run_part(self, ctas: range) -> parts.Part | None:
        """In a fork."""
        execution = self._execution
        since, steps = execution.now, execution.steps
        parts.begin(execution)
        self.count = _Count(len(self._program.sites))
        begun, given_up = ctas.start, False
        try:
            while begun < ctas.stop and not self.hang:
                begun = self._run_one(begun)
        except Fatal:
            given_up = True
        part = parts.finish(execution, self.count, since, steps)
        return part and msgspec.structs.replace(part, hang=self.hang, given_up=given_up)


def _let_go(*parts: object) -> None:
    """What a wave consists of refers to each other: its memory would stay until the garbage
    collector comes, and with it that of 80 waves of saxpy, 80 bytes per byte of array."""
    for part in parts:
        vars(part).clear()


def _result(
    schedule: Schedule,
    execution: Execution,
    hang: tuple[Waiter, ...],
    counters: Counters,
    ways: Mapping[str, int],
    seconds: float,
    *,
    given_up: bool,
) -> Result:
    return Result(
        schedule=schedule,
        findings=execution.findings.all(),
        warnings=execution.findings.warnings(),
        hang=hang,
        contended=execution.contended,
        printed=tuple(execution.printed),
        counters=counters,
        warp_instructions=sum(instruction.executed for instruction in counters.instructions),
        thread_instructions=sum(instruction.lanes for instruction in counters.instructions),
        seconds=seconds,
        filled_once=_filled_once(execution),
        ways=ways,
        given_up=given_up,
    )


def _filled_once(execution: Execution) -> str:
    """Copies of one source line are one: nvcc unrolls loops over stages."""
    rings: dict[str, set[tuple[int, bool]]] = {}
    for number, fills in execution.fills.items():
        site = execution.sites[number]
        line = site.source.place(CALLERS) if site.source else site.where()
        rings.setdefault(line, set()).update(fills)
    if any(again for fills in rings.values() for _, again in fills):
        return ""
    several = (line for line, fills in rings.items() if len({at for at, _ in fills}) > 1)
    return next(several, "")


def _ways(program: DecodedProgram, count: ExecutionCounts) -> dict[str, int]:
    """Instructions of one source line are one: nvcc unrolls loops."""
    ways: dict[str, int] = {}
    for number, leaves in program.bounds:
        came = count.issued_lanes[number]
        held = came - count.issued_lanes[number + 1] if leaves else count.lanes[number]
        if came:
            site = program.sites[number]
            line = site.source.place(CALLERS) if site.source else site.where()
            ways[line] = ways.get(line, 0) | int(held > 0) | 2 * int(held < came)
    return ways


def _either(results: Iterable[Result]) -> dict[str, int]:
    ways: dict[str, int] = {}
    for result in results:
        for line, way in result.ways.items():
            ways[line] = ways.get(line, 0) | way
    return ways


def _join(results: Sequence[Result], launches: Sequence[Launch]) -> Result:
    """The launches of a job as one, whose findings say of which they are."""
    if len(launches) == 1:
        return results[0]

    def named(of: Callable[[Result], Iterable[Finding]]) -> Iterator[Finding]:
        for number, (launch, result) in enumerate(zip(launches, results, strict=False), 1):
            words = f"launch {number}, {full_name(launch.entry)}"
            yield from (msgspec.structs.replace(item, launch=words) for item in of(result))

    return Result(
        schedule=results[0].schedule,
        findings=_once(named(lambda result: result.findings)),
        warnings=_once(named(lambda result: result.warnings)),
        hang=results[-1].hang,
        contended=any(result.contended for result in results),
        printed=tuple(line for result in results for line in result.printed),
        counters=add_up([result.counters for result in results]),
        warp_instructions=sum(result.warp_instructions for result in results),
        thread_instructions=sum(result.thread_instructions for result in results),
        seconds=sum(result.seconds for result in results),
        filled_once=next((result.filled_once for result in results if result.filled_once), ""),
        ways=_either(results),
        given_up=results[-1].given_up,
    )


class _Count(ExecutionCounts):
    """How often each instruction ran, in warps and in lanes."""

    def add(self, program: DecodedProgram, scheduler: Scheduler) -> None:
        """A wave's, from how often its blocks ran."""
        guarded = scheduler.guarded()
        entered = np.vstack([scheduler.entered, np.zeros((1, ENTERED), np.int64)])[program.owners]
        issued, issued_lanes, indices = entered.T
        executions, warps, lanes = guarded.T
        self.warps += np.where(executions, warps, issued)
        self.lanes += np.where(executions, lanes, issued_lanes)
        self.issued += issued
        self.issued_lanes += issued_lanes
        self.indices |= indices
        for number, times in scheduler.gathering.arrivals.items():
            self.issued[number] += times
        if scheduler.interpreter is not None:
            scheduler.interpreter.add_costs()


class ScheduleComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A job of one launch or several under several schedules."""

    results: tuple[Result, ...]
    """Of the job, by schedule."""
    launches: tuple[Result, ...]
    """Of each launch under the first schedule."""
    differing: tuple[str, ...]
    """Arrays whose contents depend on the schedule."""
    varying: tuple[str, ...]
    """The same of a kernel in which flags or atomics meet in any order: as they may."""
    findings: tuple[Finding, ...]
    """Findings of all schedules, each once."""
    warnings: tuple[Finding, ...]
    """The same of formal mistakes."""
    failing: tuple[Schedule, ...]
    """Those with a finding, or with an array of `differing` that the first does not have so."""
    others: tuple[Mapping[str, Array], ...]
    """By schedule, the arrays that it left in another state than the first."""


def compare(
    module: Module,
    launches: Sequence[Launch],
    arrays: Mapping[str, Array],
    *,
    schedules: Sequence[Schedule] = first_schedules(USUAL),
    unwritten: Collection[str] = (),
    scratch: Collection[str] = (),
    card: Residency | None = None,
    limit: int = 200_000_000,
    processes: int = 1,
    benign: Collection[SourceLine] = (),
) -> ScheduleComparison:
    """Runs launches in sequence under each schedule, on arrays as they are given; these end as the
    first run left them.

    scratch: arrays whose contents at the end do not matter.
    processes: in how many schedules are run at once, each with memory of its own; what is left
        over shares the waves of a launch.
    benign: as in run_each().
    """

    def run_under(schedule: Schedule) -> tuple[tuple[Result, ...], dict[str, Array]]:
        mine = {name: array.copy() for name, array in arrays.items()}
        options: dict[str, Any] = {"unwritten": unwritten, "card": card, "limit": limit}
        options["processes"] = processes // len(schedules)
        return run_each(module, launches, mine, schedule=schedule, benign=benign, **options), mine

    sites = [site for launch in launches for site in entry_of(module, launch).sites]
    runs, outputs = zip(*forks.each(run_under, schedules, processes, sites), strict=True)
    for name, array in arrays.items():
        array[...] = outputs[0][name]
    results = [_join(item, launches) for item in runs]
    compared = [name for name in arrays if name not in scratch]
    others = [_differing(compared, outputs[0], output) for output in outputs]
    differing = tuple(name for name in arrays if any(name in other for other in others))
    may_vary = any(result.contended for result in results)
    return ScheduleComparison(
        results=tuple(results),
        launches=runs[0],
        differing=() if may_vary else differing,
        varying=differing if may_vary else (),
        findings=_once(finding for result in results for finding in result.findings),
        warnings=_once(finding for result in results for finding in result.warnings),
        failing=tuple(
            result.schedule
            for result, other in zip(results, others, strict=True)
            if result.findings or (other and not may_vary)
        ),
        others=tuple(
            {name: output[name] for name in sorted(other)}
            for output, other in zip(outputs, others, strict=True)
        ),
    )


def _differing(
    names: Iterable[str], one: Mapping[str, Array], other: Mapping[str, Array]
) -> set[str]:
    """Which of the arrays are not the same bit for bit."""
    return {name for name in names if one[name].tobytes() != other[name].tobytes()}


def _once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each mistake as the first schedule that showed it found it; in each kernel of a job, as
    several may race for one array, but not in each launch of it."""
    distinct: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        entry = finding.launch.partition(", ")[2]
        distinct.setdefault((finding.name, finding.cause, entry), finding)
    return tuple(distinct.values())
