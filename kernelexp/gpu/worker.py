"""One measuring process: `python -m kernelexp.gpu.worker FOLDER` loads, checks, times, answers.

FOLDER holds job.json. It imports what is slow, then waits for turn.json: that is its leave to use
the GPU. When a file `dismissed` appears it leaves. Answers are appended to answers.jsonl as they
come: a file and not standard output, which belongs to the kernels' printf.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from kernelexp.errors import ConfigurationError, EnvironmentFault, KernelexpError
from kernelexp.gpu.job import Answer, Failed, Found, Phase, Refused, Shared, Turn, WorkerJob
from kernelexp.measurement import Failure, Fault

JOB, TURN, ANSWERS, DISMISSED = "job.json", "turn.json", "answers.jsonl", "dismissed"
# From its turn on, a worker that is not back after this long (and ten times its timing) hangs.
TURN_LIMIT_S = 180.0
POLL_S = 0.005
WATCH_S = 0.1


class Answers:
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


def load_problem(path: Path) -> ModuleType:
    """The problem's module; ConfigurationError if it can't be imported."""
    spec = importlib.util.spec_from_file_location(f"kernelexp_problem_{path.parent.name}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigurationError(f"{path} is not a Python file that can be read.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0])
    answers = Answers(folder / ANSWERS)
    job = msgspec.json.decode((folder / JOB).read_bytes(), type=WorkerJob)
    try:
        leave_when_dismissed(folder, job.parent)
        answers.phase("imports")
        _import_what_is_slow()
        problem = load_problem(Path(job.job.problem))
        answers.phase("waiting")
        turn = wait_for_turn(folder)
        _limit_turn(answers, job)
        answers.phase("context")
        _serve(job, turn, problem, answers)
    except KernelexpError as error:
        missing = isinstance(error, EnvironmentFault)
        answers.send(Refused(sentence=str(error), environment=missing))
        return 1
    return 0


def _import_what_is_slow() -> None:
    from kernelexp.gpu.launch import driver

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


def wait_for_turn(folder: Path) -> Turn:
    """Sleeps until turn.json is there."""
    path = folder / TURN
    while not path.is_file():
        time.sleep(POLL_S)
    return msgspec.json.decode(path.read_bytes(), type=Turn)


def leave_when_dismissed(folder: Path, parent: int) -> None:
    """From now on, ends this process within 0.1 s of the measurement's end, or of its owner's."""

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


def _limit_turn(answers: Answers, job: WorkerJob) -> None:
    """Ends this process where a driver call that does not return keeps it from doing so."""
    limit = TURN_LIMIT_S + 10 * job.options.timing_s

    def end() -> None:
        time.sleep(limit)
        words = f"the measuring process was not done {limit:.0f} s after its turn began"
        _fail(answers, job, "TIMED_OUT", "", words)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _fail(answers: Answers, job: WorkerJob, status: Fault, arm: str, words: str) -> None:
    failure = Failure(arm=arm, status=status, process=job.process, words=words)
    answers.send(Failed(failure=failure))


def _serve(job: WorkerJob, turn: Turn, problem: Any, answers: Answers) -> None:
    import torch

    from kernelexp.gpu.bench import Bench, Busy, Wrong
    from kernelexp.gpu.launch import DriverError
    from kernelexp.gpu.timing import Hang

    bench = Bench(job, turn, problem, answers.phase)
    try:
        if job.once:
            bench.launch_each_once()
            return
        worker = bench.run()
    except Wrong as wrong:
        return _fail(answers, job, "INCORRECT", wrong.arm, str(wrong))
    except Hang as hang:
        return _fail(answers, job, "TIMED_OUT", bench.name(hang.arm), str(hang))
    except Busy as busy:
        return answers.send(Shared(others=busy.others))
    except (DriverError, RuntimeError) as error:
        # torch raises RuntimeError for many things; a CUDA error is one that stays.
        words = str(error).split("\n")[0]
        if not isinstance(error, DriverError) and not is_cuda_failure(error, torch):
            raise
        return _fail(answers, job, "CRASHED", bench.current, words)
    answers.close_phase()
    answers.send(Found(worker=msgspec.structs.replace(worker, phases_s=answers.phases_s)))


def is_cuda_failure(error: RuntimeError, torch: Any) -> bool:
    """Whether torch says that the device failed, rather than that it was used wrongly."""
    accelerator = getattr(torch, "AcceleratorError", None)
    if accelerator is not None and isinstance(error, accelerator):
        return True
    return "CUDA error" in str(error) and not isinstance(error, torch.cuda.OutOfMemoryError)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Tearing torch down takes 0.3 s of the next process's time and can hang after a device fault.
    os._exit(code)
