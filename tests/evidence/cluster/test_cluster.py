"""A Dask cluster of real processes builds and emulates as one machine does, and survives."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from cluster_of import RealCluster
from compilers import build_each
from measurements import measurement
from measurements import worker as finished
from support import ROOT, Kx

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build, cluster
from kernelexp.evidence.cluster import Cluster, messages, worker
from kernelexp.evidence.measure import journals, measured
from kernelexp.evidence.measure.job import ArmJob, Job
from kernelexp.evidence.measure.measured import MeasurementQuestion
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.model.arm import sound
from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.measurement import Options, TimedArm
from kernelexp.system.toolchain import Toolchain

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Two workers, for all tests that kill none."""
    result = RealCluster(tmp_path_factory.mktemp("cluster"), 2)
    yield result
    result.close()


def test_a_linked_folder_of_the_project_goes_to_the_workers(tmp_path: Path) -> None:
    from kernelexp.evidence.cluster import sources  # and with it Dask

    (tmp_path / "variants/common").mkdir(parents=True)
    (tmp_path / "variants/common/tile.cuh").write_text("")
    (tmp_path / "variants/k").mkdir()
    (tmp_path / "variants/k/common").symlink_to("../common")
    assert "variants/k/common/tile.cuh" in sources.read(tmp_path)


def variants_of(root: Path):
    loaded = project.load(root)
    points = [{"width": 1}, {"width": 2}, {"width": 4}]
    return loaded, [loaded.variant("scale", None, point) for point in points]


def examined(root: Path, tools: Toolchain, address: str):
    loaded, variants = variants_of(root)
    with cluster.connect(address) as executor:
        result = prepare.built(loaded, variants, Session(tools=tools, executor=executor))
        result = prepare.emulated(loaded, result, Session(tools=tools, executor=executor))
    return result


@pytest.mark.slow
def test_arms_from_workers_equal_local_ones(
    cold: Path,
    warm: Path,
    tools: Toolchain,
    workers: RealCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = cold.with_name("here")
    shutil.copytree(ROOT / "tests/projects/scale", here)
    shutil.copytree(warm, here / build.CACHE)
    loaded, variants = variants_of(here)
    local = prepare.emulated(
        loaded,
        prepare.built(loaded, variants, Session(tools=tools)),
        Session(tools=tools),
    )  # all found in the cache
    forbidden = "nothing is compiled or emulated on this machine"
    monkeypatch.setattr(
        "kernelexp.evidence.build.service._build", lambda plan: pytest.fail(forbidden)
    )
    monkeypatch.setattr("kernelexp.system.process.isolated.call", _only_consulted(forbidden))
    remote = examined(cold, tools, workers.address)
    for one, other in zip(local, remote, strict=True):
        assert one.identity == other.identity
        assert msgspec.structs.replace(one.emulated, seconds=0) == msgspec.structs.replace(
            other.emulated, seconds=0
        )
        assert one.build == other.build
        assert one.files == other.files


def _only_consulted(words: str):
    from kernelexp.system.process import isolated

    real = isolated.call

    def call(module, *rest):
        assert "emulation" not in module, words
        return real(module, *rest)

    return call


@pytest.mark.slow
def test_what_came_home_is_found_like_a_build_of_its_own(
    cold: Path, tools: Toolchain, workers: RealCluster
) -> None:
    _, variants = variants_of(cold)
    with cluster.connect(workers.address) as executor:
        build.build(cold, variants[:1], tools, builder=executor.build, slots=executor.slots)
    (again,) = build_each(cold, variants[:1], tools)
    assert again.cached
    folder = build.artefacts(cold, again.identity).cubin.parent
    assert {path.name for path in folder.iterdir()} >= {"kernel.cubin", "kernel.ptx"}


@pytest.mark.slow
def test_a_command_leaves_a_record_like_a_local_one(
    cold: Path, kx: Kx, workers: RealCluster
) -> None:
    words = ("run", "S1", "--no-gpu", "--no-emulate", "--scheduler", workers.address)
    result = kx(*words, cwd=cold)
    assert result.exit_code == errors.OK, result.stderr
    (path,) = (cold / "logs/runs/S1").glob("*.build.json")
    record = records.read_file(path)
    assert record.candidates[0].arm.build.resources.registers > 0
    assert record.candidates[0].verdict.status == "UNMEASURED"


@pytest.mark.slow
def test_a_source_that_does_not_build_fails_there_as_here(
    cold: Path, tools: Toolchain, workers: RealCluster
) -> None:
    source = cold / "variants/scale/scale.cu"
    source.write_text(source.read_text() + "\nnonsense\n")
    first, *_ = examined(cold, tools, workers.address)
    assert first.refused.status == "BUILD_FAILED"
    assert "nonsense" in first.build_log


@pytest.mark.slow
def test_without_a_gpu_among_the_workers_it_says_how_to_announce_one(
    workers: RealCluster,
) -> None:
    with cluster.connect(workers.address) as executor:
        assert "no worker announces a GPU, as with --resources sm_90a=1" in str(executor.gpus())


def test_a_scheduler_that_is_not_there_is_a_sentence(
    scale: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelexp.evidence.cluster.client.CONNECT_S", 1.0)
    result = kx("run", "S1", "--scheduler", "tcp://127.0.0.1:9", cwd=scale)
    assert result.exit_code == errors.ENVIRONMENT
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in result.stderr
    both = kx("run", "S1", "--scheduler", "x", "--devices", "all", cwd=scale)
    assert both.exit_code == errors.USAGE
    assert "--devices and --scheduler do not go together" in both.stderr


@pytest.mark.slow
def test_another_version_of_kernelexp_is_refused(
    cold: Path, tools: Toolchain, workers: RealCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "code", lambda: "0" * 16)
    loaded, variants = variants_of(cold)
    with cluster.connect(workers.address) as executor:
        result = prepare.built(loaded, variants[:1], Session(tools=tools, executor=executor))
    assert "has another version of kernelexp" in str(result[0])


@pytest.mark.slow
def test_another_compiler_is_refused(
    cold: Path, tools: Toolchain, workers: RealCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DX=1")
    loaded, variants = variants_of(cold)
    with cluster.connect(workers.address) as executor:
        result = prepare.built(loaded, variants[:1], Session(tools=tools, executor=executor))
    assert "another compiler" in str(result[0])


def test_a_message_that_was_damaged_is_refused() -> None:
    sealed = bytearray(messages.seal_answer("x"))
    assert messages.read_answer(bytes(sealed), str) == "x"
    sealed[-1] ^= 1
    with pytest.raises(EnvironmentFault, match="was damaged"):
        messages.read_answer(bytes(sealed), str)


def test_a_measurement_gets_the_cubins_and_the_problem_of_the_client(
    cold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cubin = tmp_path / "own.cubin"
    cubin.write_bytes(b"ELF")
    name = "variants/scale/problem.py"
    arms = tuple(
        ArmJob(arm=TimedArm(name=item, role=item), cubin=str(cubin), arch="sm_90a")
        for item in ("baseline", "candidate")
    )
    job = Job(problem=str(tmp_path / name), name=name, size={}, arms=arms)
    question = MeasurementQuestion(job=job, options=Options(), margin=0.01, goal="verdicts")
    task = messages.MeasureTask(question=question, cubins={str(cubin): cubin.read_bytes()})
    cubin.unlink()
    result = []
    monkeypatch.setattr(
        measured, "answer_on", lambda gpu, it: result.append((Path(it.job.arms[1].cubin), it))
    )
    (tmp_path / "worker").mkdir()
    worker._measure(task, cold, tmp_path / "worker")
    ((path, moved),) = result
    assert path.read_bytes() == b"ELF"
    assert Path(moved.job.problem).is_file()
    assert (moved.margin, moved.goal, moved.options) == (0.01, "verdicts", Options())


def test_a_measurement_that_came_home_is_not_taken_again(tmp_path: Path) -> None:
    taken = measurement([finished(item, (1.0, 1.0, 1.0)) for item in range(4)])
    journal = tmp_path / "journal.json"
    journals.save(journal, taken)
    arms = tuple(ArmJob(arm=arm, arch="sm_90a") for arm in taken.arms)
    job = Job(problem="", size={}, arms=arms)
    question = MeasurementQuestion(job=job, options=taken.options, margin=0.01, goal="verdicts")
    nobody = Cluster(client=None, address="")  # would fail if it were asked
    assert nobody.measure(question, journal, None) == taken
    assert journals.find(journal, taken.arms[:2], taken.options) is None
    journals.save(journal, msgspec.structs.replace(taken, invalid="Another process."))
    assert journals.find(journal, taken.arms, taken.options) is None


# ---- workers that die ----------------------------------------------------------------------------


# In a process that a worker has started, and which may not be its child: the worker's number.
WORKER = (
    f"next(p for p in __import__('psutil').Process().parents() if p.ppid() == {os.getpid()}).pid"
)


def slow_project(root: Path, body: str) -> Path:
    """The project, whose inputs() does `body` first, in processes of workers only."""
    problem = root / "variants/scale/problem.py"
    text = problem.read_text()
    start = "def inputs(size, seed, device):\n"
    guard = f"    import os\n    if os.environ.get('KX_TEST_WORKER'):\n        {body}\n"
    problem.write_text(text.replace(start, start + guard, 1))
    return root


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_task_only(
    scale: Path, tools: Toolchain, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    # The first worker to come here is killed by the process that it started.
    body = (
        f"(open({str(marks / 'first')!r}, 'x').close(), os.kill({WORKER}, 9))"
        f" if not os.path.exists({str(marks / 'first')!r}) else None"
    )
    root = slow_project(scale, body)
    own = tmp_path / "cluster"
    own.mkdir()
    result = RealCluster(own, 2)
    try:
        arms = examined(root, tools, result.address)
        assert sum(item.poll() is not None for item in result.workers) == 1
        assert all(sound(arm).emulated.finished for arm in arms)
    finally:
        result.close()


@pytest.mark.slow
def test_a_task_that_kills_every_worker_is_named_and_the_others_are_done(
    scale: Path, tools: Toolchain, tmp_path: Path
) -> None:
    problem = scale / "variants/scale/problem.py"
    text = problem.read_text()
    # launch() knows the axes, and is called in emulating processes too.
    start = "def launch(axes, size, exports):\n"
    guard = (
        "    import os\n"
        "    if os.environ.get('KX_TEST_WORKER') and axes['width'] == 2:\n"
        f"        os.kill({WORKER}, 9)\n"
    )
    problem.write_text(text.replace(start, start + guard, 1))
    own = tmp_path / "cluster"
    own.mkdir()
    result = RealCluster(own, 3, allowed_failures=1)
    try:
        first, second, third = examined(scale, tools, result.address)
        assert "2 workers died of it" in str(second)
        assert first.emulated.finished
        assert third.emulated.finished
    finally:
        result.close()


@pytest.mark.slow
def test_without_any_worker_left_it_says_so(
    cold: Path, tools: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelexp.evidence.cluster.client.ALONE_S", 3.0)
    own = tmp_path / "cluster"
    own.mkdir()
    result = RealCluster(own, 1)
    try:
        os.kill(result.workers[0].pid, signal.SIGKILL)
        result.workers[0].wait()
        first, *_ = examined(cold, tools, result.address)
        assert "no worker is left at tcp://" in str(first)
    finally:
        result.close()
