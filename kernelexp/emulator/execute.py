"""A launch from start to end: load, run, run under several schedules."""

from __future__ import annotations

import importlib
import math
import pkgutil
import random
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from kernelexp.emulator import isa
from kernelexp.emulator.counters import Counters, collect
from kernelexp.emulator.decode import Program, decode
from kernelexp.emulator.findings import Fatal, Finding
from kernelexp.emulator.machine.machine import Machine
from kernelexp.emulator.ptx.parser import parse
from kernelexp.emulator.ptx.syntax import Module as Syntax
from kernelexp.emulator.scheduler import Scheduler, Waiter
from kernelexp.emulator.slots import Array
from kernelexp.errors import UsageError
from kernelexp.launch import Dim3, Launch

for _found in pkgutil.iter_modules(isa.__path__):
    importlib.import_module(f"{isa.__name__}.{_found.name}")


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """What the hardware leaves open: the order of warps, and when asynchronous effects land."""

    seed: int = 0
    """0 keeps warps together as far as it goes (fast); others also part them at random."""
    asynchrony: Literal["late", "early"] = "late"
    """late: only when no warp can go on without it. early: at the instruction that starts it."""

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.asynchrony}"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a launch."""

    schedule: Schedule
    findings: tuple[Finding, ...]
    hang: tuple[Waiter, ...]
    """Who waited for what when nothing could go on; empty if the launch finished."""
    counters: Counters
    warp_instructions: int
    thread_instructions: int
    seconds: float

    @property
    def finished(self) -> bool:
        """Whether every thread came to its end."""
        fatal = {"hang", "trap", "step-limit", "out-of-bounds", "misaligned", "read-only"}
        return not any(finding.name in fatal for finding in self.findings)


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """Decoded PTX: its entries by name."""

    syntax: Syntax
    entries: dict[str, Program]


def load(ptx: str) -> Module:
    """Parses and decodes; UnsupportedInstruction names what is not covered, with its lines."""
    syntax = parse(ptx)
    names = [name for name, function in syntax.functions.items() if function.entry]
    return Module(syntax=syntax, entries={name: decode(syntax, name) for name in names})


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
    _check(module, launch)
    schedule = schedule or Schedule()
    program = module.entries[launch.entry]
    chance = random.Random(schedule.seed)
    started = time.perf_counter()
    late = schedule.asynchrony == "late"
    machine = Machine(program, launch, arrays, frozenset(unwritten), chance, late)
    executed: dict[int, int] = {}
    lanes: dict[int, int] = {}
    hang: tuple[Waiter, ...] = ()
    first = 0
    with np.errstate(all="ignore"):
        try:
            while first < machine.grid_ctas and not hang:
                first += machine.place_wave(first)
                scheduler = Scheduler(machine, program, chance, schedule.seed != 0, limit)
                machine.scheduler = scheduler
                try:
                    scheduler.run()
                finally:
                    hang = scheduler.hang
                    _add(program, scheduler, machine, executed, lanes)
        except Fatal:
            pass
    machine.global_layout.write_back()
    counters = collect(machine, executed, lanes)
    return Result(
        schedule=schedule,
        findings=machine.findings.all(),
        hang=hang,
        counters=counters,
        warp_instructions=counters.kernel["ptx__inst_executed"],
        thread_instructions=counters.kernel["ptx__thread_inst_executed"],
        seconds=time.perf_counter() - started,
    )


def _check(module: Module, launch: Launch) -> None:
    if launch.entry not in module.entries:
        known = ", ".join(module.entries) or "none"
        raise UsageError(f"the PTX has no entry {launch.entry!r}; its entries are {known}.")
    if any(g % c for g, c in zip(launch.grid, launch.cluster, strict=True)):
        raise UsageError(f"grid {launch.grid} is no multiple of cluster {launch.cluster}.")
    directives = module.entries[launch.entry].function.directives
    cluster = _padded(directives.get("reqnctapercluster"))
    if cluster is not None and cluster != launch.cluster:
        raise UsageError(
            f"{launch.entry} was compiled for clusters of {cluster}, not {launch.cluster}."
        )
    most = _padded(directives.get("maxntid"))
    if most is not None and math.prod(launch.block) > math.prod(most):
        raise UsageError(
            f"{launch.entry} was compiled for {math.prod(most)} threads a CTA at most, "
            f"not {math.prod(launch.block)}."
        )
    exact = _padded(directives.get("reqntid"))
    if exact is not None and exact != launch.block:
        raise UsageError(f"{launch.entry} was compiled for CTAs of {exact}, not {launch.block}.")


def _padded(numbers: tuple[int, ...] | None) -> Dim3 | None:
    """The numbers of a directive, which may leave out trailing ones."""
    if not numbers:
        return None
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _add(
    program: Program,
    scheduler: Scheduler,
    machine: Machine,
    executed: dict[int, int],
    lanes: dict[int, int],
) -> None:
    """Instruction counts of a wave, from how often its blocks ran."""
    guarded: dict[int, list[int]] = {}
    for warps in machine.sets.values():
        for number, (times, count) in warps.predicated.items():
            old = guarded.setdefault(number, [0, 0])
            old[0] += times
            old[1] += count
    for first, times in scheduler.executed.items():
        for number in program.blocks[first].numbers:
            on = guarded.get(number, (times, scheduler.lanes[first]))
            executed[number] = executed.get(number, 0) + on[0]
            lanes[number] = lanes.get(number, 0) + on[1]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One launch under several schedules."""

    results: tuple[Result, ...]
    differing: tuple[str, ...]
    """Arrays whose contents depend on the schedule."""
    findings: tuple[Finding, ...]
    """Findings of all schedules, each once."""


SCHEDULES: tuple[Schedule, ...] = (
    Schedule(seed=0, asynchrony="late"),
    Schedule(seed=1, asynchrony="late"),
    Schedule(seed=2, asynchrony="early"),
)


def compare(
    module: Module,
    launch: Launch,
    arrays: Mapping[str, Array],
    *,
    schedules: Sequence[Schedule] = SCHEDULES,
    unwritten: Collection[str] = (),
    limit: int = 200_000_000,
) -> Comparison:
    """Runs a launch under each schedule; the arrays end as the first run left them."""
    outputs: list[dict[str, Array]] = []
    results = []
    for schedule in schedules:
        mine = {name: array.copy() for name, array in arrays.items()}
        results.append(
            run(module, launch, mine, schedule=schedule, unwritten=unwritten, limit=limit)
        )
        outputs.append(mine)
    differing = [
        name
        for name in arrays
        if any(out[name].tobytes() != outputs[0][name].tobytes() for out in outputs[1:])
    ]
    for name, array in arrays.items():
        array[...] = outputs[0][name]
    found: dict[tuple[str, int], Finding] = {}
    for result in results:
        for finding in result.findings:
            found.setdefault((finding.name, finding.line), finding)
    return Comparison(
        results=tuple(results), differing=tuple(differing), findings=tuple(found.values())
    )
