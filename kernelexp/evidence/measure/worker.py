"""One measuring process: `python -m ...measure.worker FOLDER` loads, checks, times, answers.

FOLDER holds job.json. It imports what is slow, then waits for turn.json: that is its leave to use
the GPU. When a file `dismissed` appears it leaves. Answers are appended to answers.jsonl as they
come: a file and not standard output, which belongs to the kernels' printf. What problem.py prints
goes to standard error, and where a crash was, to the file `crash`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kernelexp.evidence.measure.job import (
    Answer,
    FailedJob,
    Finished,
    Launched,
    Phase,
    ProblemRead,
    RefusedJob,
    SharedGpu,
    Turn,
    WorkerJob,
)
from kernelexp.model.errors import EnvironmentFault, KernelexpError
from kernelexp.model.measurement import Failure, Fault
from kernelexp.model.problem import Problem
from kernelexp.project.problem import consult, files
from kernelexp.project.problem.loader import load_file
from kernelexp.project.problem.source import is_device_failure, is_out_of_memory
from kernelexp.system.disk import decode
from kernelexp.system.process.isolated import spell_seconds

if TYPE_CHECKING:
    from kernelexp.evidence.measure.bench import Bench

JOB, TURN, ANSWERS, DISMISSED = "job.json", "turn.json", "answers.jsonl", "dismissed"
CRASH = "crash"
# From its turn on, a worker that is not back after this long (and ten times its timing), not
# counting what problem.py takes, hangs.
TURN_LIMIT_S = 180.0
# Parts of the names and the sentences of CUDA errors that no kernel causes.
MACHINES_ERRORS = (
    "ECC",
    "NVLINK",
    "NVLink",
    "DEVICE_UNAVAILABLE",
    "DRIVER_MISMATCH",
    "NO_DEVICE",
    "SYSTEM_NOT_READY",
    "busy or unavailable",
    "no CUDA-capable device",
)
POLL_S = 0.005
WATCH_S = 0.1


class AnswersFile:
    """The file of answers, and how long each phase took."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._phase, self._begun = "", time.monotonic()
        self.phases_s: dict[str, float] = {}

    def send(self, answer: Answer) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(answer) + b"\n")

    def phase(self, name: str) -> None:
        self.close_phase()
        self._phase = name
        self.send(Phase(name=name))

    def close_phase(self) -> None:
        now = time.monotonic()
        if self._phase:
            spent = self.phases_s.get(self._phase, 0.0) + now - self._begun
            self.phases_s[self._phase] = round(spent, 3)
        self._begun = now


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0])
    faulthandler.enable(file=(folder / CRASH).open("wb"))
    sys.stdout = sys.stderr
    answers = AnswersFile(folder / ANSWERS)
    job = decode((folder / JOB).read_bytes(), WorkerJob)
    watch = WorkerWatch(answers, job)
    watch.start()
    try:
        leave_when_dismissed(folder, job.parent)
        answers.phase("imports")
        _import_what_is_slow(job)
        problem = load_file(Path(job.job.problem), job.job.name, watch.in_problem)
        answers.phase("waiting")
        turn = wait_for_turn(folder)
        watch.begin_turn()
        answers.phase("context")
        _serve(job, turn, problem, answers, watch)
    except KernelexpError as error:
        if error.__cause__ is not None and is_out_of_memory(error.__cause__):
            error = out_of_memory(job, str(error))
        missing = isinstance(error, EnvironmentFault)
        answers.send(RefusedJob(sentence=str(error), environment=missing))
        return 1
    finally:
        if place := files.place(job.job.problem):
            answers.send(ProblemRead(used=files.used(*place)))
    return 0


def out_of_memory(job: WorkerJob, words: str) -> EnvironmentFault:
    """The sentence where a size does not fit the GPU."""
    return EnvironmentFault(
        f"size {job.job.size_name or job.job.size!r} of {job.job.name or job.job.problem} does not "
        f"fit the memory of {job.device.name}, or others use it too: time a smaller one with "
        f"--size. {words}"
    )


def _import_what_is_slow(job: WorkerJob) -> None:
    from kernelexp.evidence.measure.launch import driver

    try:
        import torch
    except ImportError:
        raise EnvironmentFault("launching needs torch: pip install torch.") from None
    driver()
    if not torch.cuda.is_available():
        raise EnvironmentFault(
            f"torch {torch.__version__} sees no GPU: timing needs a build of torch with CUDA "
            "and an NVIDIA driver."
        )
    if job.with_peers and b"torch.compile" in Path(job.job.problem).read_bytes():
        with contextlib.suppress(Exception):  # whoever calls it hears why
            import torch._dynamo  # 6 s of the turn, the first time that torch.compile is called


def wait_for_turn(folder: Path) -> Turn:
    """Sleeps until turn.json is there."""
    path = folder / TURN
    while not path.is_file():
        time.sleep(POLL_S)
    return decode(path.read_bytes(), Turn)


def leave_when_dismissed(folder: Path, parent: int) -> None:
    """Ends this process within 0.1 s of the measurement's end, or of its owner's."""

    def watch() -> None:
        while not (folder / DISMISSED).exists() and _alive(parent):
            time.sleep(WATCH_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class WorkerWatch:
    """Ends this process where problem.py, or its turn without problem.py, takes too long."""

    def __init__(self, answers: AnswersFile, job: WorkerJob) -> None:
        self._answers, self._job = answers, job
        self._problem_s = 0.0
        self._calls: tuple[tuple[str, float], ...] = ()
        self._begun: float | None = None
        self.bench: Bench | None = None

    def start(self) -> None:
        threading.Thread(target=self._look, daemon=True).start()

    @contextmanager
    def in_problem(self, function: str) -> Iterator[None]:
        """Accounts for a function of problem.py while it runs; the outermost such call counts."""
        begun = time.monotonic()
        outer = self._calls
        self._calls = (*outer, (function, begun))
        try:
            yield
        finally:
            if not outer:
                self._problem_s += time.monotonic() - begun
            self._calls = outer

    def begin_turn(self) -> None:
        """Starts the limit of the turn."""
        self._problem_s, self._begun = 0.0, time.monotonic()

    def overdue(self, now: float) -> Answer | None:
        """Returns the answer to give instead of going on; None while nothing is overdue."""
        calls = self._calls
        if calls:
            function, begun = calls[0]
            limit = consult.limit(self._job.options.problem_timeout_s)
            if now - begun < limit.seconds:
                return None
            called = "importing it" if function == "import" else f"{function}()"
            name = self._job.job.name or self._job.job.problem
            sentence = (
                f"{name}: {called} had not returned after {spell_seconds(limit.seconds)} in a "
                f"measuring process; {limit.advice()}."
            )
            return RefusedJob(sentence=sentence, environment=False)
        seconds = self._job.limit_s or TURN_LIMIT_S + 10 * self._job.options.timing_s
        if self._begun is None or now - self._begun - self._problem_s < seconds:
            return None
        words = f"the measuring process was not done {seconds:.0f} s after its turn began"
        if self.bench is not None and self.bench.is_launching:
            # A driver call that does not return, behind launches that do not end.
            return _failed(self._job, "TIMED_OUT", "", words)
        return RefusedJob(sentence=f"{words}, and no kernel was running.", environment=True)

    def _look(self) -> None:
        while (answer := self.overdue(time.monotonic())) is None:
            time.sleep(WATCH_S)
        self._answers.send(answer)
        os._exit(1)


def _failed(job: WorkerJob, status: Fault, arm: str, words: str) -> FailedJob:
    return FailedJob(failure=Failure(arm=arm, status=status, process=job.process, words=words))


def _serve(
    job: WorkerJob, turn: Turn, problem: Problem, answers: AnswersFile, watch: WorkerWatch
) -> None:
    from kernelexp.evidence.measure.bench import Bench, GpuInUse, WrongResult
    from kernelexp.evidence.measure.gpu_timing import Hang
    from kernelexp.evidence.measure.launch import DriverError

    bench = watch.bench = Bench(job, turn, problem, answers.phase)
    try:
        if job.once and job.checked:
            return answers.send(Launched(checks=bench.check_each_once()))
        if job.once:
            return bench.launch_each_once()
        worker = bench.run()
    except WrongResult as wrong:
        return answers.send(_failed(job, "INCORRECT", wrong.arm, str(wrong)))
    except Hang as hang:
        return answers.send(_failed(job, "TIMED_OUT", bench.name(hang.arm), str(hang)))
    except GpuInUse as busy:
        return answers.send(SharedGpu(others=busy.others))
    except (DriverError, RuntimeError) as error:
        # torch raises RuntimeError for many things; a CUDA error is one that stays.
        words = str(error).partition("\n")[0]
        if is_out_of_memory(error) or "OUT_OF_MEMORY" in words:
            raise out_of_memory(job, words) from None
        if not isinstance(error, DriverError) and not is_device_failure(error):
            raise
        return answers.send(crash(job, bench.current, words))
    answers.close_phase()
    answers.send(Finished(worker=msgspec.structs.replace(worker, phases_s=answers.phases_s)))


def crash(job: WorkerJob, arm: str, words: str) -> Answer:
    """A CUDA error: of an arm, unless only the machine can have caused it."""
    if any(part in words for part in MACHINES_ERRORS):
        return RefusedJob(sentence=f"GPU {job.device.uuid} failed: {words}", environment=True)
    return _failed(job, "CRASHED", arm, words)


def _is_profiled(folder: Path) -> bool:
    return decode((folder / JOB).read_bytes(), WorkerJob).checked


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    if _is_profiled(Path(sys.argv[1])):
        sys.exit(code)  # what ncu put into this process ends with it in good order
    # Tearing torch down takes 0.3 s of the next process's time and can hang after a device fault.
    os._exit(code)
