"""Takes a measurement: worker processes in turn on one GPU, until it decides or the budget ends."""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec

from kernelexp.evidence.measure import underway
from kernelexp.evidence.measure.job import (
    PREPARING_PEERS,
    Answer,
    FailedJob,
    Finished,
    Job,
    Phase,
    ProblemRead,
    RefusedJob,
    SharedGpu,
    Turn,
    WorkerJob,
)
from kernelexp.evidence.measure.process import as_error, read_answers, run_worker, worker_argv
from kernelexp.evidence.measure.underway import (
    PROCESSES_MIN,
    OnLook,
    Underway,
    is_budget_spent,
)
from kernelexp.evidence.measure.worker import CRASH, DISMISSED, JOB, TURN
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.model.measurement import Device, Failure, Measurement, Options
from kernelexp.project.problem import consult, files
from kernelexp.system import device as devices
from kernelexp.system import disk
from kernelexp.system.disk import decode
from kernelexp.system.live import OnProgress
from kernelexp.system.process import isolated, processes

# Processes that import torch and wait while one holds the GPU: with an H200, imports took 3.5 s
# and a turn 2 to 3 s.
AHEAD = 2
VERSION = 2
"""Of the way that samples are read."""
POLL_S = 0.02
WORDS_KEPT = 4000


def measure(
    job: Job,
    options: Options,
    *,
    device: str | None = None,
    on_progress: OnProgress | None = None,
    look: OnLook | None = None,
    journal: Path | None = None,
) -> Measurement:
    """Times the arms of `job` on one GPU and gives back every sample.

    `look` is asked after `options.processes` processes and then after every second one, in a race
    after two and three too; without it the measurement ends at the first. Arms that fail or that a
    look settles are left out of later processes; when the baseline or the last candidate has
    failed, it ends. `journal` is a file that has the samples so far, for a measurement that was
    interrupted to go on from; whoever keeps the result removes it.

    Raises EnvironmentFault (no GPU, something missing, GPU held by another run), UsageError (a
    cubin for another architecture), ConfigurationError (the problem's own faults).
    """
    target = devices.find(device)
    refuse_other_architectures(job, target)
    arms = [arm.arm for arm in job.arms]
    begun = underway.begin(target, options, arms, journal, version=VERSION)
    with devices.hold(target.uuid), tempfile.TemporaryDirectory(prefix="kernelexp-") as folder:
        return _Processes(job, begun, Path(folder), on_progress, look, journal).run()


def refuse_other_architectures(job: Job, target: Device) -> None:
    """UsageError if a cubin was not built for this GPU."""
    for arm in job.arms:
        if arm.launches and arm.arch != target.arch:
            raise UsageError(
                f"{arm.arm.name} was built for {arm.arch}, but GPU {target.uuid} ({target.name}) "
                f"is {target.arch}: a cubin runs only on the architecture it was built for."
            )


class _Pending:
    """A worker process that has been started."""

    def __init__(self, folder: Path, future: Future[processes.Completed]) -> None:
        self.folder, self.future = folder, future

    def answers(self) -> list[Answer]:
        return read_answers(self.folder)


class _Processes(Underway):
    """One measurement under way."""

    def __init__(
        self,
        job: Job,
        start: Measurement,
        folder: Path,
        on_progress: OnProgress | None,
        look: OnLook | None,
        journal: Path | None,
    ) -> None:
        super().__init__(start, on_progress, look, journal)
        self._job, self._folder = job, folder
        self._options = start.options
        self._name = job.name or Path(job.problem).name
        # A measurement that goes on where another was killed draws on from there.
        self._started = len(start.workers) + len(start.failures)
        self._rng = random.Random(f"{start.seed}:{self._started}" if self._started else start.seed)
        self._order: tuple[int, ...] = ()

    def run(self) -> Measurement:
        waiting: list[_Pending] = []
        with ThreadPoolExecutor(
            max_workers=1 + AHEAD,
            initializer=processes.share_cancellation,
            initargs=(processes.own_cancellation(),),
        ) as pool:
            try:
                while not self._ended():
                    while len(waiting) <= AHEAD and self._may_need_another():
                        waiting.append(self._start(pool))
                    if not waiting:
                        break
                    self._take_turn(waiting.pop(0))
            finally:
                for folder in self._folder.iterdir():
                    (folder / DISMISSED).touch()
        return self._finish()

    def _may_need_another(self) -> bool:
        options = self._options
        wanted = options.processes if self._on_look is None else options.processes_max
        return self._started < wanted + len(self._so_far.failures)

    def _start(self, pool: ThreadPoolExecutor) -> _Pending:
        process, self._started = self._started, self._started + 1
        folder = self._folder / str(process)
        folder.mkdir()
        job = WorkerJob(
            job=self._job,
            options=self._options,
            device=self._so_far.device,
            process=process,
            seed=self._rng.randrange(1 << 31),
            load_order=self._next_order(process),
            with_peers=self._options.peers and process < self._options.processes,
            parent=os.getpid(),
        )
        (folder / JOB).write_bytes(msgspec.json.encode(job))
        argv = worker_argv(folder)
        return _Pending(folder, pool.submit(run_worker, argv, self._so_far.device.uuid))

    def _next_order(self, process: int) -> tuple[int, ...]:
        """A random order in which to load the arms, then its reverse, then another."""
        if process % 2 and self._order:
            self._order = tuple(reversed(self._order))
        else:
            order = list(range(len(self._job.arms)))
            self._rng.shuffle(order)
            self._order = tuple(order)
        return self._order

    def _take_turn(self, worker: _Pending) -> None:
        begun = time.monotonic()
        turn = Turn(excluded=self._so_far.excluded)
        self._left_out = len(turn.excluded)
        # The worker polls for it, and must never see half of it.
        disk.write(worker.folder / TURN, msgspec.json.encode(turn), durable=False)
        shown = 0
        while not worker.future.done():
            phases = [answer.name for answer in worker.answers() if isinstance(answer, Phase)]
            if len(phases) > shown:
                shown = len(phases)
                self._say(phases[-1])
            time.sleep(POLL_S)
        took, prepared = time.monotonic() - begun, self._preparing_s()
        self._take_answers(worker)
        self._turns_s.append(took - (self._preparing_s() - prepared))
        self._save()
        self._say("between processes")

    def _take_answers(self, worker: _Pending) -> None:
        completed = worker.future.result()
        if worker.folder.name == "0":  # the others print the same
            for line in completed.stderr.splitlines():
                print(f"{self._name}: {line}", file=sys.stderr)
        answers = worker.answers()
        for answer in answers:
            if isinstance(answer, ProblemRead) and (place := files.place(self._job.problem)):
                files.note(*place, answer.used)
        for answer in answers:
            if isinstance(answer, Finished):
                self._add(workers=(*self._so_far.workers, answer.worker))
                return
            if isinstance(answer, FailedJob):
                return self._fail_with_reason(worker, answer.failure)
            if isinstance(answer, RefusedJob):
                raise as_error(answer)
            if isinstance(answer, SharedGpu):
                return self._refuse_company(answer.others)
        self._fail_unheard(worker, completed)

    def _fail_with_reason(self, worker: _Pending, failure: Failure) -> None:
        arm, words = failure.arm, failure.words
        if not arm:
            arm = self._only_candidate()
            words += " (not while one arm ran alone)"
        if self._options.sanitize:
            words = "\n".join(filter(None, (words, self._sanitize(worker))))
        self._fail(msgspec.structs.replace(failure, arm=arm, words=words))

    def _fail_unheard(self, worker: _Pending, completed: processes.Completed) -> None:
        """The worker ended without an answer: by a signal, or by problem.py."""
        code, tail = completed.returncode, completed.stderr.strip()[-WORDS_KEPT:]
        if code > 0 and "Traceback" in tail:
            raise EnvironmentFault(f"the measuring process failed:\n{tail}")
        try:
            dump = (worker.folder / CRASH).read_text(errors="replace")
        except OSError:
            dump = ""
        in_problem = isolated.where(dump, self._name)[1] != ""
        if code >= 0 or -code in isolated.OUTSIDE or in_problem:
            limit = consult.limit(self._options.problem_timeout_s)
            raise isolated.ended(code, dump, self._name, (limit,))
        # The driver may crash over a launch that it should have refused.
        failure = Failure(
            arm=self._only_candidate(),
            status="CRASHED",
            process=int(worker.folder.name),
            words=f"the measuring process ended with {signal.Signals(-code).name}. {tail}".strip(),
        )
        self._fail(failure)

    def _only_candidate(self) -> str:
        """The candidate that is left, if it is the only one; else nobody knows whose fault it was,
        and no candidate is judged by it."""
        failed = {failure.arm for failure in self._so_far.failures}
        left = [a.name for a in self._so_far.arms if a.role == "candidate" and a.name not in failed]
        return left[0] if len(left) == 1 else ""

    def _sanitize(self, worker: _Pending) -> str:
        """Runs compute-sanitizer on one launch of each arm; returns its report."""
        import shutil

        program = shutil.which("compute-sanitizer")
        if program is None:
            return "(compute-sanitizer is not on the PATH)"
        folder = self._folder / f"{worker.folder.name}-sanitized"
        folder.mkdir()
        job = decode((worker.folder / JOB).read_bytes(), WorkerJob)
        once = msgspec.structs.replace(job, once=True, parent=os.getpid())
        (folder / JOB).write_bytes(msgspec.json.encode(once))
        (folder / TURN).write_bytes((worker.folder / TURN).read_bytes())
        argv = [program, "--tool", "memcheck", "--print-limit", "5", "--report-api-errors", "no"]
        argv += worker_argv(folder)
        completed = run_worker(argv, self._so_far.device.uuid)
        lines = [line for line in completed.stdout.splitlines() if line.startswith("=========")]
        return "\n".join(lines)[:WORDS_KEPT]

    def _ended(self) -> bool:
        if self._is_settled():
            return True
        budget_s, share = self._options.budget_s, self._next_share()
        elapsed_s = self._elapsed_s() - self._preparing_s()
        spent = is_budget_spent(elapsed_s, self._turns_s, budget_s, share, PROCESSES_MIN)
        return bool(self._so_far.workers) and spent

    def _preparing_s(self) -> float:
        """Returns the time that peers took to get ready, which no budget includes."""
        return sum(worker.phases_s.get(PREPARING_PEERS, 0.0) for worker in self._so_far.workers)
