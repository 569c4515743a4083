"""What a measurement makes of workers that die, babble or are late; these need no GPU.

The workers are real processes that do what a script says; NVML alone is left out.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import msgspec
import pytest
from measurements import worker as finished
from support import ROOT
from test_without_gpu import H200

from kernelexp.evidence.measure import journals, measure, worker
from kernelexp.evidence.measure.job import ArmJob, FailedJob, Finished, Job, RefusedJob, WorkerJob
from kernelexp.judge.statistics import racing
from kernelexp.judge.verdict import measured
from kernelexp.model.errors import ConfigurationError, EnvironmentFault
from kernelexp.model.measurement import Look, Measurement, Options, TimedArm
from kernelexp.project.problem import files
from kernelexp.system import device
from warpsim.launch import Launch

NAME = "variants/scale/problem.py"
LAUNCH = Launch(entry="kernel", grid=(1, 1, 1), block=(32, 1, 1))
ARMS = tuple(
    ArmJob(arm=TimedArm(name=name, role=role), arch="sm_90a", launches=(LAUNCH,))
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
    done = msgspec.json.encode(Finished(worker=finished(0, (1.0, 1.0, 1.0), rows=4)))
    result = take(answers(done, b"\n"))
    assert len(result.workers) == 2
    assert result.failures == ()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_worker_that_was_killed_is_the_machines_fault(take, name: str) -> None:
    with pytest.raises(EnvironmentFault, match=rf"{NAME}: .* ended from outside \({name}\)"):
        take(f"os.kill(os.getpid(), signal.{name})")


def test_a_crash_in_problem_py_is_its_own(take) -> None:
    dump = 'Fatal Python error\\n  File "/p/variants/scale/problem.py", line 7 in reference\\n'
    with pytest.raises(ConfigurationError, match=rf"{NAME}:7: reference\(\) crashed with SIGSEGV"):
        take(f"(folder / 'crash').write_text('{dump}'); os.kill(os.getpid(), signal.SIGSEGV)")


def test_a_crash_of_the_driver_is_the_candidates(take) -> None:
    result = take("os.kill(os.getpid(), signal.SIGSEGV)")
    assert [(failure.arm, failure.status) for failure in result.failures] == [("new", "CRASHED")]
    assert "SIGSEGV" in result.failures[0].words


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
    done = msgspec.json.encode(Finished(worker=finished(0, (1.0, 1.0, 1.0), rows=4)))
    with pytest.raises(EnvironmentFault, match="SIGKILL"):
        take(answers(done[:50]) + "; os.kill(os.getpid(), signal.SIGKILL)")


def test_what_is_missing_or_wrong_keeps_its_sentence_and_its_kind(take) -> None:
    for environment, kind in ((True, EnvironmentFault), (False, ConfigurationError)):
        result = RefusedJob(sentence="no memory", environment=environment)
        with pytest.raises(kind, match=r"^no memory$"):
            take(answers(msgspec.json.encode(result), b"\n"))


def test_what_problem_py_prints_is_shown_once(take, capsys: pytest.CaptureFixture[str]) -> None:
    done = msgspec.json.encode(Finished(worker=finished(0, (1.0, 1.0, 1.0), rows=4)))
    take(answers(done, b"\n") + "; sys.stderr.write('drawing\\n')")
    assert capsys.readouterr().err == f"{NAME}: drawing\n"


PREPARING = """
import msgspec
from kernelexp.evidence.measure.job import PREPARING_PEERS, Finished
from measurements import worker
job = msgspec.json.decode((folder / 'job.json').read_bytes())
(Path(KEPT) / str(job['process'])).write_text(str(job['with_peers']))
made = worker(job['process'], (1.0, 1.0, 1.05), noise=0.05)
made = msgspec.structs.replace(made, phases_s={PREPARING_PEERS: 1000.0})
(folder / 'answers.jsonl').write_bytes(msgspec.json.encode(Finished(worker=made)) + b'\\n')
"""


@pytest.fixture
def with_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take):
    """Up to six processes whose peers take 1,000 s to get ready; and which were to time peers."""
    options = msgspec.structs.replace(
        OPTIONS, peers=True, processes=4, processes_max=6, budget_s=60.0
    )
    monkeypatch.setattr(sys.modules[__name__], "OPTIONS", options)
    real = measure.measure
    monkeypatch.setattr(
        measure,
        "measure",
        lambda job, options: real(job, options, look=lambda _: Look(done=False)),
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    kept = tmp_path / "kept"
    kept.mkdir()
    result = take(PREPARING.replace("KEPT", repr(str(kept))))
    answer = {int(path.name): path.read_text() == "True" for path in kept.iterdir()}
    return result, answer


def test_the_first_four_processes_time_the_peers(with_peers) -> None:
    _, result = with_peers
    assert {process for process, peers in result.items() if peers} == {0, 1, 2, 3}


def test_what_peers_take_to_compile_themselves_spends_no_budget(with_peers) -> None:
    result, _ = with_peers
    assert len(result.workers) == 6


# ---- races ---------------------------------------------------------------------------------------

RATIOS = {"old": 1.0, "old again": 1.0, "a": 0.95, "b": 0.99, "c": 60.0, "d": 1.2}
RACING = f"""
import msgspec, random
from kernelexp.model.measurement import Block, DeviceState, Row, Worker
from kernelexp.evidence.measure.job import Finished
job = msgspec.json.decode((folder / 'job.json').read_bytes())
excluded = msgspec.json.decode((folder / 'turn.json').read_bytes())['excluded']
ratios = {RATIOS}
rng = random.Random(job['process'])
times = [100 * r * (1 + rng.gauss(0, 0.0005)) for r in ratios.values()]
arms = [i for i, name in enumerate(ratios) if name not in excluded]
order = (*arms, *reversed(arms))
row = Row(order=order, times_us=tuple(times[arm] for arm in order))
state = DeviceState(sm_clock_mhz=1, memory_clock_mhz=1, power_w=1.0, temperature_c=1)
block = Block(before=state, after=state, rows=(row,) * 4)
done = Finished(worker=Worker(process=job['process'], seed=0, load_order=(), launches_per_sample=1,
    sets=1, warm_up_s=0.0, drift=0.0, blocks=(block,), checks=()))
with (folder / 'answers.jsonl').open('wb') as file:
    file.write(msgspec.json.encode(done) + b'\\n')
"""


@pytest.fixture
def start_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take):
    """A race of four candidates whose workers time what is left, with a journal."""
    roles = ["baseline", "placebo", *(["candidate"] * 4)]
    arms = tuple(
        ArmJob(arm=TimedArm(name=name, role=role), arch="sm_90a", launches=(LAUNCH,))
        for name, role in zip(RATIOS, roles, strict=True)
    )
    options = msgspec.structs.replace(OPTIONS, processes=4, processes_max=16, race=True)
    monkeypatch.setattr(sys.modules[__name__], "OPTIONS", options)
    monkeypatch.setattr(sys.modules[__name__], "JOB", msgspec.structs.replace(JOB, arms=arms))
    real = measure.measure

    def run(goal: racing.Goal, script: str = RACING) -> Measurement:
        monkeypatch.setattr(
            measure,
            "measure",
            lambda job, options: real(
                job,
                options,
                look=lambda so_far: racing.look(so_far, 0.01, goal),
                journal=tmp_path / "journals/race.json",
            ),
        )
        return take(script)

    return run


def timed_by(found: Measurement, name: str) -> list[int]:
    """The processes that timed this arm."""
    arm = list(RATIOS).index(name)
    rows = {item.process: item.blocks[0].rows[0] for item in found.workers}
    return [process for process, row in rows.items() if arm in row.order]


def test_arms_that_left_are_not_timed_again_and_the_fastest_is_found(start_race) -> None:
    answer = start_race("fastest")
    assert timed_by(answer, "c") == [0, 1]
    assert timed_by(answer, "d") == [0, 1, 2]
    assert len(timed_by(answer, "a")) == len(answer.workers)
    result = racing.result(answer, 0.01)
    assert (result.leader, result.contenders, result.is_decided) == ("a", ("a",), True)


def test_a_race_for_verdicts_gives_each_candidate_one(start_race) -> None:
    result = start_race("verdicts")
    words = {name: measured(result, name).status.value for name in "abcd"}
    assert words["a"] == "IMPROVED"
    assert words["c"] == words["d"] == "REJECTED"
    assert timed_by(result, "c") == [0, 1]


def test_a_race_that_was_killed_goes_on_from_its_journal(start_race) -> None:
    with pytest.raises(EnvironmentFault, match="SIGKILL"):
        start_race(
            "fastest", f"if folder.name == '3': os.kill(os.getpid(), signal.SIGKILL)\n{RACING}"
        )
    result = start_race("fastest")
    processes = [item.process for item in result.workers]
    assert processes[:3] == [0, 1, 2]
    assert processes == list(range(len(processes)))
    assert result.departures[0].arm == "c"
    assert timed_by(result, "c") == [0, 1]


def test_a_journal_of_other_arms_is_not_taken(tmp_path: Path, start_race) -> None:
    start_race("fastest")
    path = tmp_path / "journals/race.json"
    past = msgspec.json.decode(path.read_bytes(), type=Measurement)
    other = msgspec.structs.replace(past, arms=past.arms[:3], workers=past.workers[:1])
    assert journals.resume(path, past) == past
    assert journals.resume(path, other) is other
    journals.save(path, msgspec.structs.replace(past, invalid="Another process."))
    assert journals.resume(path, past) is past
    path.write_bytes(path.read_bytes()[:100])
    assert journals.resume(path, past) is past


def test_a_journal_of_yesterday_is_removed(tmp_path: Path, start_race) -> None:
    result = start_race("fastest")
    path = tmp_path / "journals/race.json"
    os.utime(path, (1, 1))
    assert journals.resume(path, result) is result
    assert not path.exists()


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


def watch(job: WorkerJob, folder: Path) -> worker.WorkerWatch:
    return worker.WorkerWatch(worker.AnswersFile(folder / "answers.jsonl"), job)


def test_a_slow_reference_is_no_candidates_fault(job: WorkerJob, tmp_path: Path) -> None:
    looked = watch(job, tmp_path)
    looked.begin_turn()
    looked.bench = Launching()
    now = time.monotonic()
    with looked.in_problem("reference"):
        assert looked.overdue(now + 50) is None
        late = looked.overdue(now + 1000)
    assert isinstance(late, RefusedJob)
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


@pytest.mark.parametrize(("is_launching", "kind"), [(True, FailedJob), (False, RefusedJob)])
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
        ("CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered", RefusedJob),
        ("CUDA error: all CUDA-capable devices are busy or unavailable", RefusedJob),
        ("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered", FailedJob),
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


READING = """
import sys
from kernelexp.evidence.measure import worker
from kernelexp.evidence.measure.job import Finished
from measurements import worker as finished
worker._import_what_is_slow = lambda job: None
worker._serve = lambda job, turn, problem, answers, watch: answers.send(
    Finished(worker=finished(job.process, []))
)
sys.exit(worker.main(sys.argv[1:]))
"""


def test_what_problem_py_reads_while_it_is_measured_belongs_to_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "tests/projects/scale", tmp_path, dirs_exist_ok=True)
    problem = tmp_path / "variants/scale/problem.py"
    (tmp_path / "factor.txt").write_text("3.0")
    read = "import os\nfrom pathlib import Path\nFACTOR = float(Path(__file__).parents[2].joinpath("
    text = problem.read_text().replace("FACTOR = 3.0", read + "'factor.txt').read_text())")
    problem.write_text(text + "\nSCALE = os.environ.get('SCALE_FACTOR')\n")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    monkeypatch.setattr(device, "LOCKS", tmp_path / "locks")
    monkeypatch.setattr(device, "find", lambda _: H200)
    real = measure.run_worker
    monkeypatch.setattr(
        measure,
        "run_worker",
        lambda argv, uuid: real([sys.executable, "-c", READING, argv[-1]], uuid),
    )
    measure.measure(msgspec.structs.replace(JOB, problem=str(problem)), OPTIONS)
    assert "factor.txt" in files.digests(tmp_path, "scale")
    assert files.environment(tmp_path, "scale") == {"SCALE_FACTOR": "unset"}
