"""A measurement of programs: rounds of runs, each a new process, until it decides or time is up.

In a round each arm is run twice, in a random order and in its reverse, so that what drifts cancels
in the ratio of any two arms. A round stands for a worker process of a kernel's measurement.
"""

from __future__ import annotations

import math
import random
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kernelexp.evidence.measure import underway
from kernelexp.evidence.measure.underway import OnLook, Underway, is_budget_spent, is_hopeless
from kernelexp.model.errors import ConfigurationError, EnvironmentFault
from kernelexp.model.experiment import TIME_UNITS, PrintedFigure, Program
from kernelexp.model.measurement import (
    AlsoPrinted,
    Block,
    Device,
    DeviceState,
    Failure,
    Fault,
    Measurement,
    Options,
    PrintedSamples,
    Row,
    TimedArm,
    Worker,
)
from kernelexp.model.text import quote, spell_bytes
from kernelexp.system import device as devices
from kernelexp.system.live import OnProgress
from kernelexp.system.process import isolated, processes
from kernelexp.system.process.processes import Completed

SMALLEST = 1e-300
"""What is smaller has no reciprocal."""


class MissingFigure(Exception):
    """The output does not have a figure that it should have; the sentence says which."""


def read_figures(program: Program, output: str) -> dict[str, float]:
    """The figures by name; the one that programs are judged by is greater than zero.

    Raises Unreadable.
    """
    values = {name: _read(name, figure, output) for name, figure in program.figures.items()}
    judged = program.judged
    if not SMALLEST < values[judged] < 1.0 / SMALLEST:
        value = f"{values[judged]:g}"
        raise MissingFigure(f"The program printed {value} as {judged}, which is to be above zero.")
    return values


def is_correct(program: Program, output: str) -> bool:
    """Whether the output says that the result is right, where the program is to say so."""
    return not program.correct or re.search(program.correct, output, re.M) is not None


def last_line(text: str) -> str:
    """The last line with anything on it, as a sentence quotes it; "nothing" where there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return quote(lines[-1]) if lines else "nothing"


def _read(name: str, figure: PrintedFigure, output: str) -> float:
    matches = list(re.finditer(figure.pattern, output, re.M))
    pattern = quote(figure.pattern)
    if not matches:
        last = last_line(output)
        raise MissingFigure(
            f"The program printed no {name}: {pattern} matches nothing; last: {last}."
        )
    if len(matches) > 1:
        raise MissingFigure(
            f"The program printed {name} {len(matches)} times in a run: {pattern} is to match once."
        )
    match = matches[0]
    text = match[name] if name in match.re.groupindex else match[1]
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise MissingFigure(
            f"The program printed {quote(text or '')} as {name}: it is not a number."
        )
    return value


PRINTED_MAX = 16 << 20
"""Bytes that a program may print in a run."""
GOING_S = 1.0
"""How long a process that has ended may still be listed on its GPU."""
POLL_S = 0.02
NO_STATE = DeviceState(sm_clock_mhz=0, memory_clock_mhz=0, power_w=0.0, temperature_c=0)


class ProgramArm(msgspec.Struct, frozen=True, kw_only=True):
    """An arm to run: an executable with its arguments."""

    arm: TimedArm
    argv: tuple[str, ...]


class ProgramJob(msgspec.Struct, frozen=True, kw_only=True):
    """Programs to run in turn, the baseline among them once."""

    kernel: str
    folder: str
    """Where they are run: the kernel's folder."""
    program: Program
    """How their output is read."""
    arms: tuple[ProgramArm, ...]
    run_s: float
    """What one run may take."""


class _Failed(Exception):
    """A run that gave no figures, with what is to be said of its arm."""

    def __init__(self, status: Fault, words: str) -> None:
        super().__init__(words)
        self.status: Fault = status


def measure(
    job: ProgramJob,
    options: Options,
    target: Device,
    *,
    look: OnLook,
    on_progress: OnProgress | None = None,
    journal: Path | None = None,
) -> Measurement:
    """Runs the arms of `job` in turn, on the GPU `target` or on this machine's CPU.

    Each arm is run once first, untimed. One that fails is left out from then on. Raises
    ConfigurationError where the baseline's output does not have the figures that it is judged by,
    EnvironmentFault where the machine fails, or where another run of kernelexp uses the device.
    """
    arms, described = [arm.arm for arm in job.arms], _described(job.program)
    begun = underway.begin(target, options, arms, journal, printed=described)
    with devices.hold(target.uuid, name=target.name):
        return _Rounds(job, begun, look, on_progress, journal).run()


def _described(program: Program) -> PrintedSamples:
    figure = program.figures[program.judged]
    return PrintedSamples(
        figure=program.judged,
        unit=figure.unit,
        better=figure.better or "less",
        is_time=figure.is_time,
        also={
            name: AlsoPrinted(unit=other.unit, better=other.better or "less", values={})
            for name, other in program.figures.items()
            if name != program.judged
        },
    )


class _Rounds(Underway):
    """One measurement under way."""

    def __init__(
        self,
        job: ProgramJob,
        start: Measurement,
        look: OnLook,
        on_progress: OnProgress | None,
        journal: Path | None,
    ) -> None:
        super().__init__(start, on_progress, look, journal)
        self._job = job
        self._rng = random.Random(f"{start.seed}:{len(start.workers)}")
        self._monitor = devices.Monitor(start.device.uuid) if job.program.gpu else None
        visible = {"CUDA_VISIBLE_DEVICES": start.device.uuid}
        self._environment: Mapping[str, str] = visible if job.program.gpu else {}

    def run(self) -> Measurement:
        self._warm_up()
        while not self._ended():
            self._take_round()
        return self._finish()

    def _warm_up(self) -> None:
        """The first run reads the program from the disk, and shows whether it can be timed."""
        for index, arm in enumerate(self._job.arms):
            if arm.arm.role != "placebo" and arm.arm.name not in self._so_far.excluded:
                self._say(f"first run of the {arm.arm.name}")
                self._try(index)
                if is_hopeless(self._so_far):
                    return
        self._begun = time.monotonic() - self._so_far.elapsed_s

    def _take_round(self) -> None:
        begun = time.monotonic()
        excluded = self._so_far.excluded
        self._left_out = len(excluded)
        order = [i for i, arm in enumerate(self._job.arms) if arm.arm.name not in excluded]
        self._rng.shuffle(order)
        number = len(self._so_far.workers)
        also: dict[str, list[tuple[str, float]]] = {}
        blocks = []
        for way in (order, order[::-1]):
            block = self._take_row(way, also)
            if self._so_far.invalid or is_hopeless(self._so_far):
                return
            blocks.append(block)
        worker = Worker(
            process=number,
            seed=self._so_far.seed,
            load_order=tuple(order),
            launches_per_sample=1,
            sets=1,
            warm_up_s=0.0,
            drift=0.0,
            blocks=tuple(blocks),
            checks=(),
        )
        self._add(workers=(*self._so_far.workers, worker), printed=self._with(also))
        self._turns_s.append(time.monotonic() - begun)
        self._save()

    def _take_row(self, order: list[int], also: dict[str, list[tuple[str, float]]]) -> Block:
        before, timed, samples = self._state(), [], []
        figure = self._job.program.figures[self._job.program.judged]
        for index in order:
            name = self._job.arms[index].arm.name
            if name in self._so_far.excluded:
                continue
            self._say(name)
            values = self._try(index)
            if values is None:
                continue
            assert self._so_far.printed is not None
            value = values.pop(self._job.program.judged)
            unit_us = TIME_UNITS.get(figure.unit, 1.0)
            timed.append(index)
            samples.append(self._so_far.printed.to_sample(value, unit_us))
            for item, further in values.items():
                also.setdefault(item, []).append((name, further))
        row = Row(order=tuple(timed), times_us=tuple(samples))
        return Block(before=before, after=self._state(), rows=(row,))

    def _with(self, also: Mapping[str, list[tuple[str, float]]]) -> PrintedSamples | None:
        """Returns what was printed so far, with one more round."""
        so_far = self._so_far.printed
        assert so_far is not None
        grown = dict(so_far.also)
        for figure, pairs in also.items():
            values = dict(grown[figure].values)
            for arm, value in pairs:
                values[arm] = (*values.get(arm, ()), value)
            grown[figure] = msgspec.structs.replace(grown[figure], values=values)
        return msgspec.structs.replace(so_far, also=grown)

    def _state(self) -> DeviceState:
        """The GPU between two runs; its clocks say nothing then, as nothing is running."""
        if self._monitor is None:
            return NO_STATE
        others = self._others(self._monitor)
        if others and not self._so_far.options.shared_gpu:
            self._refuse_company(others)
        state = self._monitor.read()
        return msgspec.structs.replace(state, sm_clock_mhz=0, memory_clock_mhz=0, others=others)

    def _others(self, monitor: devices.Monitor) -> int:
        """Processes that compute on the GPU while no arm runs; an arm's own may be just going."""
        deadline = time.monotonic() + GOING_S
        while (others := monitor.computing()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return others

    def _try(self, index: int) -> dict[str, float] | None:
        """The figures of one run; None where it failed, which is kept."""
        arm = self._job.arms[index].arm
        try:
            return _run(self._job, self._job.arms[index], self._environment)
        except _Failed as failed:
            process, words = len(self._so_far.workers), str(failed)
            self._fail(Failure(arm=arm.name, status=failed.status, process=process, words=words))
            return None

    def _ended(self) -> bool:
        options = self._so_far.options
        if self._is_settled() or len(self._so_far.workers) >= options.processes_max:
            return True
        share = self._next_share()
        return is_budget_spent(self._elapsed_s(), self._turns_s, options.budget_s, share)


def _run(
    job: ProgramJob, program_arm: ProgramArm, environment: Mapping[str, str]
) -> dict[str, float]:
    """The figures that one run prints; raises _Failed, or what is not a fault of the arm's."""
    try:
        done = processes.run(
            program_arm.argv,
            cwd=Path(job.folder),
            env=environment,
            timeout_s=job.run_s,
            output_max=PRINTED_MAX,
        )
    except processes.TimedOut:
        words = f"The program ran past the limit of {job.run_s:g} s for a run (--limit run=20m)."
        raise _Failed("TIMED_OUT", words) from None
    except processes.TooMuchOutput:
        most = spell_bytes(PRINTED_MAX)
        words = f"The program printed more than {most} in a run, and was ended."
        raise _Failed("CRASHED", words) from None
    if done.returncode:
        raise _ending(job, program_arm, done)
    if not is_correct(job.program, done.stdout):
        correct, line = job.program.correct, last_line(done.stdout)
        words = f"The program printed nothing that matches {correct!r}; last: {line}."
        raise _Failed("INCORRECT", words)
    try:
        return read_figures(job.program, done.stdout)
    except MissingFigure as unreadable:
        if program_arm.arm.role in ("baseline", "placebo"):
            raise ConfigurationError(
                f"experiments.yaml: kernels.{job.kernel}.program does not fit what the "
                f"baseline prints. {unreadable}"
            ) from None
        raise _Failed("INCORRECT", str(unreadable)) from None


def _ending(
    job: ProgramJob, program_arm: ProgramArm, done: Completed
) -> _Failed | EnvironmentFault:
    """Classifies a run that ended with a code or by a signal."""
    line = last_line(done.stderr or done.stdout)
    if done.returncode > 0:
        words = f"The program ended with code {done.returncode}; its last words: {line}."
        return _Failed("CRASHED", words)
    name = signal.Signals(-done.returncode).name
    if -done.returncode in isolated.OUTSIDE:
        return EnvironmentFault(
            f"{job.kernel}, {program_arm.arm.name}: the program was ended from outside by "
            f"{name}: it may have needed more memory than this machine has."
        )
    return _Failed("CRASHED", f"The program was ended by {name}; its last words: {line}.")
