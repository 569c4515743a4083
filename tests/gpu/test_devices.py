"""Several real GPUs at once: run KX_GPU=1 pytest tests/gpu/test_devices.py where there are two."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from cluster_of import RealCluster
from gpu_kernels import ARCH
from support import ROOT, Kx

from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.system import device


def _gpus() -> tuple[str, ...]:
    if os.environ.get("KX_GPU") != "1":
        return ()
    return tuple(item.uuid for item in device.find_all("all") if item.arch == ARCH)


needs_two = pytest.mark.skipif(
    len(_gpus()) < 2, reason="launches on two GPUs: set KX_GPU=1 where they are"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("experiments.yaml", "variants", "experiments"):
        source = ROOT / name
        if source.exists():
            (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    return tmp_path


def read(root: Path, name: str):
    (path,) = (root / "logs/runs" / name).glob("*.measured.json")
    return records.read_file(path)


def overlap(one, other) -> bool:
    """Whether two measurements ran at the same time, by when they began and how long they took."""
    from datetime import datetime, timedelta

    spans = []
    for item in (one, other):
        begun = datetime.fromisoformat(item.created)
        spans.append((begun, begun + timedelta(seconds=item.elapsed_s)))
    (a, b), (c, d) = spans
    return max(a, c) < min(b, d)


@needs_two
def test_two_experiments_are_measured_at_the_same_time_on_two_gpus(project: Path, kx: Kx) -> None:
    result = kx("run", "T1", "T2", "--devices", "all", "--no-emulate", "--no-peers", cwd=project)
    assert result.exit_code in (errors.OK, errors.INCONCLUSIVE), result.output
    one, other = (read(project, name).measurement for name in ("T1", "T2"))
    assert one.device.uuid != other.device.uuid
    assert overlap(one, other)
    assert min(item.device.sm_clock_max_mhz for item in (one, other)) > 0


@needs_two
def test_a_sweep_on_two_gpus_names_the_same_fastest_as_on_one(project: Path, kx: Kx) -> None:
    words = ("sweep", f"transpose@{ARCH}", "rows=*", "layout=*")
    result = kx(*words, "--devices", "all", cwd=project)
    assert result.exit_code == errors.OK, result.output
    record = read(project, "sweep-transpose")
    played = [heat.measurement for heat in record.heats]
    assert len({entry.device.uuid for entry in played}) == len(played) >= 2
    assert overlap(played[0], played[1])
    for item in played:
        assert "baseline" in {arm.name for arm in item.arms}
    best = min(
        (
            candidate
            for candidate in record.candidates
            if candidate.arm.measured and candidate.arm.measured.effect
        ),
        key=lambda entry: entry.arm.measured.effect.ratio,
    )
    assert best.arm.axes["rows"] == 4
    assert "times of two GPUs are not compared" in " ".join(result.stdout.split())


@needs_two
def test_workers_with_a_gpu_each_share_a_sweep(project: Path, kx: Kx, tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    folder.mkdir()
    workers = RealCluster(folder, 0)
    try:
        for uuid in _gpus()[:2]:
            workers.add_worker("--resources", f"{ARCH}=1", CUDA_VISIBLE_DEVICES=uuid)
        workers.wait_for(2)
        words = ("sweep", f"transpose@{ARCH}", "rows=*", "layout=*")
        result = kx(*words, "--scheduler", workers.address, cwd=project)
        assert result.exit_code == errors.OK, result.output
    finally:
        workers.close()
    record = read(project, "sweep-transpose")
    assert {heat.measurement.device.uuid for heat in record.heats} == set(_gpus()[:2])
