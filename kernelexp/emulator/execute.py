"""A launch from start to end: load, run, run under several schedules."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from kernelexp.emulator.machine.arrays import Array
from kernelexp.emulator.machine.counters import Counters, Runs, add_up, collect
from kernelexp.emulator.machine.execution import Execution, Printed
from kernelexp.emulator.machine.findings import Fatal, Finding
from kernelexp.emulator.machine.hangs import Waiter
from kernelexp.emulator.machine.layout import GlobalLayout
from kernelexp.emulator.machine.machine import Machine
from kernelexp.emulator.machine.program import Program
from kernelexp.emulator.machine.scheduler import Scheduler
from kernelexp.emulator.ptx.decode import decode
from kernelexp.emulator.ptx.faults import MALFORMED, PtxSyntaxError
from kernelexp.emulator.ptx.parser import parse
from kernelexp.emulator.sass import cubin
from kernelexp.emulator.sass import decode as sass
from kernelexp.errors import UsageError
from kernelexp.launch import Launch
from kernelexp.lineinfo import Source
from kernelexp.schedule import USUAL, Schedule, first_schedules

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

    @property
    def finished(self) -> bool:
        """Whether every thread came to its end."""
        return not any(finding.name in _ENDING for finding in self.findings)


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """Programs by the names of their entries."""

    entries: Mapping[str, Program]
    what: str = "PTX"
    """What they were read from."""


class _Decoded(Mapping[str, Program]):
    """Entries, each of which is decoded when it is first asked for."""

    def __init__(self, names: Sequence[str], decode: Callable[[str], Program]) -> None:
        self._names = tuple(names)
        self._decode = decode
        self._programs: dict[str, Program] = {}

    def __getitem__(self, name: str) -> Program:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._programs:
            self._programs[name] = self._decode(name)
        return self._programs[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load(ptx: str) -> Module:
    """Parses a PTX file, and decodes its entry if it has but one; others when they are launched.

    PtxSyntaxError for what can't be read, UnsupportedInstruction for what is not covered.
    """
    syntax = parse(ptx)
    names = [function.name for function in syntax.functions.values() if function.entry]

    def one(name: str) -> Program:
        try:
            return decode(syntax, name)
        except MALFORMED as error:
            why = f"{type(error).__name__}: {error}"
            raise PtxSyntaxError(f"entry {name} can't be decoded ({why}).") from error

    return Module(entries=_decoded(names, one))


def load_cubin(
    content: bytes, listing: str, sources: Callable[[str], Mapping[int, Source]] | None = None
) -> Module:
    """Reads a cubin and the listing that `cuobjdump -sass` makes of it; decodes as load() does.

    sources: the lines that the code of an entry comes from, by address.
    CubinError and SassSyntaxError for what can't be read, UnsupportedInstruction for what is not
    covered.
    """

    def one(name: str) -> Program:
        return sass.decode(content, listing, name, sources(name) if sources else None)

    return Module(entries=_decoded(cubin.entries(content), one), what="cubin")


def _decoded(names: Sequence[str], decode_one: Callable[[str], Program]) -> _Decoded:
    """The entries; if there is but one, it is decoded at once."""
    decoded = _Decoded(names, decode_one)
    if len(decoded) == 1:
        dict(decoded)
    return decoded


def run(
    module: Module,
    launch: Launch,
    arrays: Mapping[str, Array],
    *,
    schedule: Schedule | None = None,
    unwritten: Collection[str] = (),
    limit: int = 200_000_000,
) -> Result:
    """Executes one launch; `arrays` are written in place.

    unwritten: arrays that hold nothing yet (outputs): they start as poison, and reading them is a
        finding. Everything else counts as written.
    limit: warp instructions after which the launch is given up.
    """
    (result,) = run_each(
        module, (launch,), arrays, schedule=schedule, unwritten=unwritten, limit=limit
    )
    return result


def run_each(
    module: Module,
    launches: Sequence[Launch],
    arrays: Mapping[str, Array],
    *,
    schedule: Schedule | None = None,
    unwritten: Collection[str] = (),
    limit: int = 200_000_000,
) -> tuple[Result, ...]:
    """Executes launches one after the other on the same memory, up to the first that does not
    finish; otherwise as run()."""
    programs = [_entry(module, each) for each in launches]
    results: list[Result] = []
    memory: GlobalLayout | None = None
    for program, launch in zip(programs, launches, strict=True):
        result, memory = _run(
            program, launch, arrays, schedule or Schedule(), frozenset(unwritten), limit, memory
        )
        results.append(result)
        if not result.finished:
            break
    return tuple(results)


def _run(
    program: Program,
    launch: Launch,
    arrays: Mapping[str, Array],
    schedule: Schedule,
    unwritten: frozenset[str],
    limit: int,
    before: GlobalLayout | None,
) -> tuple[Result, GlobalLayout]:
    """One launch, on the memory that the one before it left."""
    started = time.perf_counter()
    execution = Execution(program.image, launch, arrays, unwritten, schedule, before)
    count = _Count()
    hang: tuple[Waiter, ...] = ()
    first = 0
    with np.errstate(all="ignore"):
        try:
            while first < execution.grid_ctas and not hang:
                machine = Machine(execution, first)
                first += len(machine.ctas)
                scheduler = Scheduler(machine, program, limit)
                try:
                    scheduler.run()
                finally:
                    machine.end()
                    hang = scheduler.hang
                    count.add(program, scheduler)
        except Fatal:
            pass
    execution.world.write_back()
    counters = collect(program.sites, execution.tallies, count)
    result = _result(schedule, execution, hang, counters, time.perf_counter() - started)
    return result, execution.world


def _result(
    schedule: Schedule,
    execution: Execution,
    hang: tuple[Waiter, ...],
    counters: Counters,
    seconds: float,
) -> Result:
    return Result(
        schedule=schedule,
        findings=execution.findings.all(),
        warnings=execution.findings.warnings(),
        hang=hang,
        contended=execution.contended,
        printed=tuple(execution.printed),
        counters=counters,
        warp_instructions=sum(each.executed for each in counters.instructions),
        thread_instructions=sum(each.lanes for each in counters.instructions),
        seconds=seconds,
    )


def _join(results: Sequence[Result]) -> Result:
    """The launches of a job as one."""
    if len(results) == 1:
        return results[0]
    return Result(
        schedule=results[0].schedule,
        findings=_once(finding for each in results for finding in each.findings),
        warnings=_once(finding for each in results for finding in each.warnings),
        hang=results[-1].hang,
        contended=any(each.contended for each in results),
        printed=tuple(line for each in results for line in each.printed),
        counters=add_up([each.counters for each in results]),
        warp_instructions=sum(each.warp_instructions for each in results),
        thread_instructions=sum(each.thread_instructions for each in results),
        seconds=sum(each.seconds for each in results),
    )


def _entry(module: Module, launch: Launch) -> Program:
    """The program of the launch's entry, which must allow the launch."""
    entry = launch.entry
    if entry not in module.entries:
        known = ", ".join(module.entries) or "none"
        raise UsageError(f"the {module.what} has no entry {entry!r}; its entries are {known}.")
    if any(g % c for g, c in zip(launch.grid, launch.cluster, strict=True)):
        raise UsageError(f"grid {launch.grid} is not a multiple of cluster {launch.cluster}.")
    program, threads = module.entries[entry], math.prod(launch.block)
    image = program.image
    if image.cluster is not None and image.cluster != launch.cluster:
        raise UsageError(
            f"{entry} was compiled for clusters of {image.cluster}, not {launch.cluster}."
        )
    if image.max_threads is not None and threads > image.max_threads:
        raise UsageError(
            f"{entry} was compiled for {image.max_threads} threads per CTA at most, not {threads}."
        )
    if image.block is not None and image.block != launch.block:
        raise UsageError(f"{entry} was compiled for CTAs of {image.block}, not {launch.block}.")
    return program


class _Count(Runs):
    """How often each instruction ran, in warps and in lanes."""

    def add(self, program: Program, scheduler: Scheduler) -> None:
        """A wave's, from how often its blocks ran."""
        guarded: dict[int, list[int]] = {}
        for warps in scheduler.machine.sets.values():
            for first in warps.ran:
                for number in range(first, program.blocks[first].last):
                    self.indices[number] = self.indices.get(number, 0) | warps.indices
        for number, times, active in scheduler.guarded():
            old = guarded.setdefault(number, [0, 0])
            old[0] += times
            old[1] += active
        for first in program.blocks:
            whole = scheduler.executed[first], scheduler.lanes[first]
            for number in range(first, program.blocks[first].last if whole[0] else first):
                on = guarded.get(number, whole)
                self.warps[number] = self.warps.get(number, 0) + on[0]
                self.lanes[number] = self.lanes.get(number, 0) + on[1]
                self.issued[number] = self.issued.get(number, 0) + whole[0]
                self.issued_lanes[number] = self.issued_lanes.get(number, 0) + whole[1]
        for number, times in scheduler.gathering.arrivals.items():
            self.issued[number] = self.issued.get(number, 0) + times
        if scheduler.interpreter is not None:
            scheduler.interpreter.add_costs()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
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


def compare(
    module: Module,
    launches: Sequence[Launch],
    arrays: Mapping[str, Array],
    *,
    schedules: Sequence[Schedule] = first_schedules(USUAL),
    unwritten: Collection[str] = (),
    scratch: Collection[str] = (),
    limit: int = 200_000_000,
) -> Comparison:
    """Runs launches in sequence under each schedule, on arrays as they are given; these end as the
    first run left them.

    scratch: arrays whose contents at the end do not matter.
    """
    outputs: list[dict[str, Array]] = []
    runs = []
    for schedule in schedules:
        mine = {name: array.copy() for name, array in arrays.items()}
        runs.append(
            run_each(module, launches, mine, schedule=schedule, unwritten=unwritten, limit=limit)
        )
        outputs.append(mine)
    for name, array in arrays.items():
        array[...] = outputs[0][name]
    results = [_join(each) for each in runs]
    compared = [name for name in arrays if name not in scratch]
    others = [_differing(compared, outputs[0], each) for each in outputs]
    differing = tuple(name for name in arrays if any(name in other for other in others))
    may_vary = any(result.contended for result in results)
    return Comparison(
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
    )


def _differing(
    names: Iterable[str], one: Mapping[str, Array], other: Mapping[str, Array]
) -> set[str]:
    """Which of the arrays are not the same bit for bit."""
    return {name for name in names if one[name].tobytes() != other[name].tobytes()}


def _once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each mistake as the first schedule that showed it found it."""
    found: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        found.setdefault((finding.name, finding.cause), finding)
    return tuple(found.values())
