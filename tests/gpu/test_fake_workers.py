"""What a measurement makes of workers that die, babble or are late; these need no GPU.

The workers are real processes that do what a script says; NVML alone is left out.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec
import pytest
from measurements import worker as finished
from test_without_gpu import H200

from kernelexp.errors import ConfigurationError, EnvironmentFault
from kernelexp.gpu import device, measure, worker
from kernelexp.gpu.job import ArmJob, Failed, Found, Job, Refused, WorkerJob
from kernelexp.launch import Launch
from kernelexp.measurement import Measurement, Options, TimedArm

NAME = "variants/scale/problem.py"
LAUNCH = Launch(entry="kernel", grid=(1, 1, 1), block=(32, 1, 1))
ARMS = tuple(
    ArmJob(arm=TimedArm(name=name, role=role), arch="sm_90a", launch=LAUNCH)
    for name, role in (("old", "baseline"), ("old again", "placebo"), ("new", "candidate"))
)
OPTIONS = Options(processes=2, processes_max=2, peers=False, seed=1)
JOB = Job(problem="/p/variants/scale/problem.py", name=NAME, size={}, size_name="full", arms=ARMS)


@pytest.fixture
def take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A measurement whose workers run `script` once it is their turn."""
    monkeypatch.setattr(device, "LOCKS", tmp_path / "locks")
    monkeypatch.setattr(device, "find", lambda _: H200)
    real = measure.run_worker

    def run(script: str) -> Measurement:
        text = (
            "import os, signal, sys, time; from pathlib import Path\n"
            "folder = Path(sys.argv[1])\n"
            "while not (folder / 'turn.json').exists():\n"
            "    if (folder / 'dismissed').exists(): os._exit(1)\n"
            "    time.sleep(0.01)\n" + script
        )
        monkeypatch.setattr(
            measure,
            "run_worker",
            lambda argv, uuid: real([sys.executable, "-c", text, argv[-1]], uuid),
        )
        return measure.measure(JOB, OPTIONS)

    return run


def answers(*lines: bytes) -> str:
    return f"(folder / 'answers.jsonl').write_bytes({b''.join(lines)!r})"


def test_workers_that_answer_make_a_measurement(take) -> None:
    done = msgspec.json.encode(Found(worker=finished(0, (1.0, 1.0, 1.0), rows=4)))
    found = take(answers(done, b"\n"))
    assert len(found.workers) == 2
    assert found.failures == ()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_worker_that_was_killed_is_the_machines_fault(take, name: str) -> None:
    with pytest.raises(EnvironmentFault, match=rf"{NAME}: .* ended from outside \({name}\)"):
        take(f"os.kill(os.getpid(), signal.{name})")


def test_a_crash_in_problem_py_is_its_own(take) -> None:
    dump = 'Fatal Python error\\n  File "/p/variants/scale/problem.py", line 7 in reference\\n'
    with pytest.raises(ConfigurationError, match=rf"{NAME}:7: reference\(\) crashed with SIGSEGV"):
        take(f"(folder / 'crash').write_text('{dump}'); os.kill(os.getpid(), signal.SIGSEGV)")


def test_a_crash_of_the_driver_is_the_candidates(take) -> None:
    found = take("os.kill(os.getpid(), signal.SIGSEGV)")
    assert [(each.arm, each.status) for each in found.failures] == [("new", "CRASHED")]
    assert "SIGSEGV" in found.failures[0].words


@pytest.mark.parametrize("code", [0, 3])
def test_a_problem_py_that_leaves_is_named(take, code: int) -> None:
    with pytest.raises(ConfigurationError, match=rf"{NAME}: it ended its process .* {code} "):
        take(f"os._exit({code})")


def test_a_traceback_of_the_tool_is_kept(take) -> None:
    with pytest.raises(EnvironmentFault, match="ZeroDivisionError"):
        take("1 / 0")


def test_garbage_is_a_sentence(take) -> None:
    with pytest.raises(EnvironmentFault, match="gave an answer that can't be read"):
        take(answers(b"\xff\x00{]\n"))


def test_an_answer_that_is_cut_off_was_not_given(take) -> None:
    done = msgspec.json.encode(Found(worker=finished(0, (1.0, 1.0, 1.0), rows=4)))
    with pytest.raises(EnvironmentFault, match="SIGKILL"):
        take(answers(done[:50]) + "; os.kill(os.getpid(), signal.SIGKILL)")


def test_what_is_missing_or_wrong_keeps_its_sentence_and_its_kind(take) -> None:
    for environment, kind in ((True, EnvironmentFault), (False, ConfigurationError)):
        said = Refused(sentence="no memory", environment=environment)
        with pytest.raises(kind, match=r"^no memory$"):
            take(answers(msgspec.json.encode(said), b"\n"))


def test_what_problem_py_prints_is_shown_once(take, capsys: pytest.CaptureFixture[str]) -> None:
    done = msgspec.json.encode(Found(worker=finished(0, (1.0, 1.0, 1.0), rows=4)))
    take(answers(done, b"\n") + "; sys.stderr.write('drawing\\n')")
    assert capsys.readouterr().err == f"{NAME}: drawing\n"


# ---- limits and causes, in the worker ------------------------------------------------------------


@pytest.fixture
def job() -> WorkerJob:
    return WorkerJob(
        job=JOB,
        options=OPTIONS,
        device=H200,
        process=0,
        seed=1,
        load_order=(0, 1, 2),
        with_peers=False,
        parent=os.getpid(),
    )


class Launching:
    """As much of a Bench as the watch looks at."""

    is_launching = True


def watch(job: WorkerJob, folder: Path) -> worker.Watch:
    return worker.Watch(worker.Answers(folder / "answers.jsonl"), job)


def test_a_slow_reference_is_no_candidates_fault(job: WorkerJob, tmp_path: Path) -> None:
    looked = watch(job, tmp_path)
    looked.begin_turn()
    looked.bench = Launching()
    now = time.monotonic()
    with looked.in_problem("reference"):
        assert looked.overdue(now + 50) is None
        late = looked.overdue(now + 1000)
    assert isinstance(late, Refused)
    assert not late.environment
    assert late.sentence == (
        f"{NAME}: reference() had not returned after 1m in a measuring process; "
        "allow more with --limit problem=2m."
    )


def test_time_in_problem_py_is_not_the_turns(
    job: WorkerJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    looked = watch(job, tmp_path)
    monkeypatch.setattr(worker.time, "monotonic", lambda: clock[0])
    looked.begin_turn()
    for _ in range(5):
        with looked.in_problem("inputs"):
            clock[0] += 50.0
    assert looked.overdue(clock[0]) is None


@pytest.mark.parametrize(("is_launching", "kind"), [(True, Failed), (False, Refused)])
def test_a_turn_that_does_not_end_is_a_candidates_while_kernels_run(
    job: WorkerJob, tmp_path: Path, is_launching: bool, kind: type
) -> None:
    looked = watch(job, tmp_path)
    looked.begin_turn()
    looked.bench = Launching()
    looked.bench.is_launching = is_launching
    late = looked.overdue(time.monotonic() + 200)
    assert isinstance(late, kind)


def test_memory_that_runs_out_names_the_size(job: WorkerJob) -> None:
    words = str(worker.out_of_memory(job, "Tried to allocate 40 GiB."))
    assert words.startswith(f"size 'full' of {NAME} does not fit the memory of NVIDIA H200")
    assert "--size" in words
    assert words.endswith("Tried to allocate 40 GiB.")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered", Refused),
        ("CUDA error: all CUDA-capable devices are busy or unavailable", Refused),
        ("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered", Failed),
    ],
)
def test_errors_that_no_kernel_causes_are_the_machines(
    job: WorkerJob, words: str, kind: type
) -> None:
    assert isinstance(worker.crash(job, "new", words), kind)


# ---- the lock ------------------------------------------------------------------------------------


def test_the_lock_is_one_for_the_machine_and_for_every_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert device.LOCKS.is_absolute()
    monkeypatch.setattr(device, "LOCKS", tmp_path / "locks")
    before = os.umask(0o077)
    try:
        with device.hold("GPU-1"):
            pass
    finally:
        os.umask(before)
    assert device.LOCKS.stat().st_mode & 0o7777 == 0o777
    assert (device.LOCKS / "GPU-1.lock").stat().st_mode & 0o777 == 0o666


def test_a_lock_that_can_not_be_made_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locks").write_text("")
    monkeypatch.setattr(device, "LOCKS", tmp_path / "locks")
    with pytest.raises(EnvironmentFault, match="can't be locked"), device.hold("GPU-1"):
        pass
