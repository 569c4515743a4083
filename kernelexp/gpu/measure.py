"""Takes a measurement: worker processes in turn on one GPU, until it decides or the budget ends."""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kernelexp import isolated, processes, wholefile
from kernelexp.errors import EnvironmentFault, UsageError
from kernelexp.gpu import device as devices
from kernelexp.gpu.job import (
    Answer,
    Failed,
    Found,
    Job,
    Phase,
    Refused,
    Shared,
    Turn,
    WorkerJob,
)
from kernelexp.gpu.process import as_error, read_answers, run_worker, worker_argv
from kernelexp.gpu.worker import CRASH, DISMISSED, JOB, TURN
from kernelexp.measurement import LOOKS_MAX, Device, Failure, Measurement, Options
from kernelexp.problem import consult

# Processes that import torch and wait while one holds the GPU: with an H200, imports took 3.5 s
# and a turn 2 to 3 s.
AHEAD = 2
# Looks at the interval after the first: each costs confidence, so not after every process.
PROCESSES_BETWEEN_LOOKS = 2
POLL_S = 0.02
WORDS_KEPT = 4000


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a measurement is, for whoever displays it."""

    phase: str
    processes_done: int
    processes_wanted: int
    so_far: Measurement


OnProgress = Callable[[Progress], None]
Enough = Callable[[Measurement], bool]


def measure(
    job: Job,
    options: Options,
    *,
    device: str | None = None,
    on_progress: OnProgress | None = None,
    enough: Enough | None = None,
) -> Measurement:
    """Times the arms of `job` on one GPU and gives back every sample.

    `enough` is asked after `options.processes` processes and then after every second one; without
    it the measurement ends there. Arms that fail are left out of later processes; when the baseline
    or the last candidate has failed, it ends.

    Raises EnvironmentFault (no GPU, something missing, GPU held by another run), UsageError (a
    cubin for another architecture), ConfigurationError (the problem's own faults).
    """
    target = devices.find(device)
    refuse_other_architectures(job, target)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    start = Measurement(
        device=target,
        options=options,
        seed=seed,
        arms=tuple(arm.arm for arm in job.arms),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with devices.hold(target.uuid), tempfile.TemporaryDirectory(prefix="kernelexp-") as folder:
        taking = _Taking(job, start, Path(folder), on_progress, enough)
        return taking.run()


def refuse_other_architectures(job: Job, target: Device) -> None:
    """UsageError if a cubin was not built for this GPU."""
    for arm in job.arms:
        if arm.launch is not None and arm.arch != target.arch:
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


class _Taking:
    """One measurement under way."""

    def __init__(
        self,
        job: Job,
        start: Measurement,
        folder: Path,
        on_progress: OnProgress | None,
        enough: Enough | None,
    ) -> None:
        self._job, self._so_far, self._folder = job, start, folder
        self._on_progress, self._enough = on_progress, enough
        self._options = start.options
        self._name = job.name or Path(job.problem).name
        self._rng = random.Random(start.seed)
        self._begun = time.monotonic()
        self._started = 0
        self._order: tuple[int, ...] = ()
        self._turns_s: list[float] = []

    def run(self) -> Measurement:
        waiting: list[_Pending] = []
        with ThreadPoolExecutor(max_workers=1 + AHEAD) as pool:
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
        done = len(self._so_far.workers)
        if done > 1 and done not in self._so_far.looks:  # the budget ended between two looks
            self._look(done)
        return msgspec.structs.replace(self._so_far, elapsed_s=round(self._elapsed_s(), 3))

    def _may_need_another(self) -> bool:
        wanted = self._options.processes_max
        if self._enough is None:
            wanted = self._options.processes + len(self._so_far.failures)
        return self._started < wanted

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
            with_peers=self._options.peers and process == 0,
            parent=os.getpid(),
        )
        (folder / JOB).write_bytes(msgspec.json.encode(job))
        argv = worker_argv(folder)
        return _Pending(folder, pool.submit(run_worker, argv, self._so_far.device.uuid))

    def _next_order(self, process: int) -> tuple[int, ...]:
        """A random order in which to load the arms, then its reverse, then another."""
        if process % 2:
            self._order = tuple(reversed(self._order))
        else:
            order = list(range(len(self._job.arms)))
            self._rng.shuffle(order)
            self._order = tuple(order)
        return self._order

    def _take_turn(self, worker: _Pending) -> None:
        begun = time.monotonic()
        excluded = tuple(failure.arm for failure in self._so_far.failures)
        # The worker polls for it, and must never see half of it.
        turn = msgspec.json.encode(Turn(excluded=excluded))
        wholefile.write(worker.folder / TURN, turn, durable=False)
        shown = 0
        while not worker.future.done():
            phases = [each.name for each in worker.answers() if isinstance(each, Phase)]
            if len(phases) > shown:
                shown = len(phases)
                self._say(phases[-1])
            time.sleep(POLL_S)
        self._turns_s.append(time.monotonic() - begun)
        self._take_answers(worker)
        self._say("between processes")

    def _take_answers(self, worker: _Pending) -> None:
        completed = worker.future.result()
        if worker.folder.name == "0":  # the others print the same
            for line in completed.stderr.splitlines():
                print(f"{self._name}: {line}", file=sys.stderr)
        answers = worker.answers()
        for answer in answers:
            if isinstance(answer, Found):
                self._add(workers=(*self._so_far.workers, answer.worker))
                return
            if isinstance(answer, Failed):
                return self._fail(worker, answer.failure)
            if isinstance(answer, Refused):
                raise as_error(answer)
            if isinstance(answer, Shared):
                count = "Another process" if answer.others == 1 else f"{answer.others} processes"
                self._add(invalid=f"{count} computed on the GPU during the measurement.")
                return
        self._fail_unheard(worker, completed)

    def _fail(self, worker: _Pending, failure: Failure) -> None:
        arm, words = failure.arm, failure.words
        if not arm:
            arm = self._only_candidate()
            words += " (not while one arm ran alone)"
        if self._options.sanitize:
            words = "\n".join(filter(None, (words, self._sanitize(worker))))
        self._add(
            failures=(
                *self._so_far.failures,
                msgspec.structs.replace(failure, arm=arm, words=words),
            )
        )

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
        self._add(failures=(*self._so_far.failures, failure))

    def _only_candidate(self) -> str:
        """The candidate that is left, if it is the only one; else nobody knows whose fault it was,
        and no candidate is judged by it."""
        failed = {failure.arm for failure in self._so_far.failures}
        left = [a.name for a in self._so_far.arms if a.role == "candidate" and a.name not in failed]
        return left[0] if len(left) == 1 else ""

    def _sanitize(self, worker: _Pending) -> str:
        """What compute-sanitizer says of one launch of each arm."""
        import shutil

        program = shutil.which("compute-sanitizer")
        if program is None:
            return "(compute-sanitizer is not on the PATH)"
        folder = self._folder / f"{worker.folder.name}-sanitized"
        folder.mkdir()
        job = msgspec.json.decode((worker.folder / JOB).read_bytes(), type=WorkerJob)
        once = msgspec.structs.replace(job, once=True, parent=os.getpid())
        (folder / JOB).write_bytes(msgspec.json.encode(once))
        (folder / TURN).write_bytes((worker.folder / TURN).read_bytes())
        argv = [program, "--tool", "memcheck", "--print-limit", "5", "--report-api-errors", "no"]
        argv += worker_argv(folder)
        said = run_worker(argv, self._so_far.device.uuid)
        lines = [line for line in said.stdout.splitlines() if line.startswith("=========")]
        return "\n".join(lines)[:WORDS_KEPT]

    def _ended(self) -> bool:
        done = len(self._so_far.workers)
        if is_hopeless(self._so_far):
            return True
        if done and is_budget_spent(self._elapsed_s(), self._turns_s, self._options.budget_s):
            return True
        if not is_look_due(self._so_far):
            return False
        self._look(done)
        last = len(self._so_far.looks) == LOOKS_MAX
        return last or self._enough is None or self._enough(self._so_far)

    def _look(self, done: int) -> None:
        self._add(looks=(*self._so_far.looks, done))

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._begun

    def _say(self, phase: str) -> None:
        if self._on_progress is not None:
            self._on_progress(
                Progress(
                    phase=phase,
                    processes_done=len(self._so_far.workers),
                    processes_wanted=self._options.processes,
                    so_far=self._so_far,
                )
            )

    def _add(self, **fields: object) -> None:
        self._so_far = msgspec.structs.replace(self._so_far, **fields)


def is_hopeless(so_far: Measurement) -> bool:
    """Whether more processes could not lead to a verdict on any candidate."""
    failed = {failure.arm for failure in so_far.failures}
    roles = [arm.role for arm in so_far.arms if arm.name not in failed]
    nothing_left = "baseline" not in roles or "candidate" not in roles
    return bool(so_far.invalid) or "" in failed or nothing_left


def is_budget_spent(elapsed_s: float, turns_s: Sequence[float], budget_s: float) -> bool:
    """Whether another process like the last one would end after the budget.

    Two processes are taken in any case, as one says nothing of another. What the first takes longer
    than the last is not counted: on a fresh H200 machine the first one's imports and peers that
    compile themselves took all of 30 s.
    """
    if len(turns_s) < 2:
        return False
    starting_up = max(0.0, turns_s[0] - turns_s[-1])
    return elapsed_s - starting_up + turns_s[-1] > budget_s


def is_look_due(so_far: Measurement) -> bool:
    """Whether the interval is to be looked at now: after the first processes, then every second."""
    done, first = len(so_far.workers), so_far.options.processes
    at_a_look = done >= first and (done - first) % PROCESSES_BETWEEN_LOOKS == 0
    return at_a_look and done not in so_far.looks
