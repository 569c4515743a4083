"""The session of a command: compiler, limits, and the executor that its work is done by.

An executor is this machine's cores and GPUs, or whatever else takes the same orders."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from kernelexp.evidence import build
from kernelexp.evidence.build import Plan
from kernelexp.evidence.emulate import emulated
from kernelexp.evidence.emulate.job import Emulated, EmulationJob
from kernelexp.evidence.measure import measured
from kernelexp.evidence.measure.measured import MeasurementQuestion
from kernelexp.evidence.measure.programs import measured_programs
from kernelexp.evidence.measure.programs.measured_programs import ProgramQuestion
from kernelexp.model.arm import ArmOrFault
from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.limits import Limits
from kernelexp.model.measurement import Device, Gpus, Measurement
from kernelexp.system import device as devices
from kernelexp.system.live import OnProgress
from kernelexp.system.toolchain import Toolchain


class Executor(Protocol):
    """Does the work that takes long: each method does one piece, and is called from any thread."""

    @property
    def slots(self) -> int | None:
        """Pieces at once, of building and emulating; None: as many as this machine has cores."""

    def build(self, plan: Plan) -> ArmOrFault:
        """Leaves the build in the project's cache; a fault of a machine is the answer."""

    def emulate(self, job: EmulationJob) -> Emulated:
        """Raises what isolated.call raises."""

    def gpus(self) -> Gpus:
        """The GPUs to time on."""

    def measure(
        self, question: MeasurementQuestion, journal: Path | None, on_progress: OnProgress | None
    ) -> Measurement:
        """Times all arms of the question on one GPU; waits until one is free."""

    def run_programs(
        self, question: ProgramQuestion, journal: Path | None, on_progress: OnProgress | None
    ) -> Measurement:
        """Runs programs in turn on one GPU, or on the CPU where they need none."""


class Local:
    """This machine. `selector` names GPUs: `all`, or indices and UUIDs with commas between.

    Without it, the first one that CUDA_VISIBLE_DEVICES shows is used if there is one.
    """

    slots: int | None = None

    def __init__(self, selector: str | None = None) -> None:
        self._selector = selector
        self._changed = threading.Condition()
        self._busy: set[str] = set()

    def build(self, plan: Plan) -> ArmOrFault:
        return build.build_one(plan)

    def emulate(self, job: EmulationJob) -> Emulated:
        return emulated.execute(job)

    def gpus(self) -> Gpus:
        """EnvironmentFault or UsageError where GPUs that were asked for are not there."""
        if self._selector is not None:
            return Gpus(devices=devices.find_all(self._selector))
        try:
            return Gpus(devices=(devices.find(),))
        except EnvironmentFault as fault:
            return Gpus(why_none=str(fault))

    def measure(
        self, question: MeasurementQuestion, journal: Path | None, on_progress: OnProgress | None
    ) -> Measurement:
        gpus, fitting = self._fitting(question.arch)
        if fitting and question.place is not None:
            fitting = [fitting[question.place % len(fitting)]]
        with self._one_of(fitting or gpus) as gpu:  # where none fits, measure() says so
            return measured.answer_on(gpu.uuid, question, journal, on_progress)

    def run_programs(
        self, question: ProgramQuestion, journal: Path | None, on_progress: OnProgress | None
    ) -> Measurement:
        if not question.job.program.gpu:
            cpu = devices.cpu(question.arch)
            return measured_programs.answer_on(cpu, question, journal, on_progress)
        gpus, fitting = self._fitting(question.arch)
        with self._one_of(fitting or gpus) as gpu:
            return measured_programs.answer_on(gpu, question, journal, on_progress)

    def _fitting(self, arch: str) -> tuple[Sequence[Device], Sequence[Device]]:
        """The GPUs, and those of an architecture."""
        gpus = self.gpus()
        if not gpus.devices:
            raise EnvironmentFault(gpus.why_none)
        return gpus.devices, gpus.of(arch).devices

    @contextmanager
    def _one_of(self, wanted: Sequence[Device]) -> Iterator[Device]:
        """A GPU that no other thread of this process uses."""
        with self._changed:
            self._changed.wait_for(lambda: any(device.uuid not in self._busy for device in wanted))
            gpu = next(device for device in wanted if device.uuid not in self._busy)
            self._busy.add(gpu.uuid)
        try:
            yield gpu
        finally:
            with self._changed:
                self._busy.discard(gpu.uuid)
                self._changed.notify_all()


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that services need besides the project and their own input."""

    tools: Toolchain
    limits: Limits = Limits()
    executor: Executor = Local()
    """Where builds, emulations and measurements run."""
    emulate: bool = False
    """Emulate variants of which no emulation is kept."""
    on_progress: OnProgress | None = None
