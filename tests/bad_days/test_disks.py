"""A disk that is full or read-only ends each command that writes in a sentence and half of nothing.

What a command has written before is as it was, byte for byte, and the command is right as soon as
there is space again.
"""

from __future__ import annotations

import shutil

import pytest
from bad_days.conftest import Disk
from fake_gpu import FakeGpu
from support import ROOT, Kx, all_records
from typer.testing import Result

from kernelexp import project
from kernelexp.model import errors

NCU = ROOT / "tests/data/ncu"
LOG = """Kernel: `gemm` — a small one, for SM90a.

| Commit | Change | Time (ms) | Notes |
|---|---|---|---|
| aaaaaa1 | First | 2.0 | |
| 6319928 | Tiles | 1.0 | best |
"""
SOURCE = "__global__ void none(const float* x, float* y) { y[threadIdx.x] = 0 * x[0]; }\n"
RUN = ("run", "S1", "--no-gpu")
SLOW = pytest.mark.slow

# Arguments by the name of a command; `@` stands for the disk.
COMMANDS: dict[str, tuple[str, ...]] = {
    "accept": ("accept", "S1"),
    "reject": ("reject", "S2"),
    "replace": ("replace", "S1", "--by", "aaaaaaa"),
    "new": ("new", "Backward", "--set", "order=backward", "--hypothesis", "Nothing changes."),
    "import": ("adopt", "--log", "@/LOG.md"),
    "init": ("init", "@/fresh", "--arch", "sm_90a"),
    "log": ("log", "--write"),
    "report": ("report", "--out", "@/scale/pages"),
    "plot": ("plot", "history", "--out", "@/scale/plot.svg"),
    "update": ("check", "--update"),
    "junit": ("check", "--junit", "@/scale/junit.xml"),
    "profile": ("profile", "--import", "@/raw.csv", "--launch", "1", "--variant", "S1"),
    "run": RUN,
    "run, timed": ("run", "S2"),
    "sweep": ("sweep", "scale", "width=1,2", "--no-gpu"),
    "sweep, timed": ("sweep", "scale", "width=1,2,4"),
    "audit": ("audit", "S1", "--against", "S1:baseline"),
    "source": (
        *("adopt", "@/none.cu", "--block", "32", "--grid", "1"),
        *("--shape", "x=32", "--shape", "y=32", "--reference", "y=0 * x"),
    ),
}
ORDINARY = {"replace", "import", "init", "log"}
EVERY = [name if name in ORDINARY else pytest.param(name, marks=SLOW) for name in COMMANDS]


def prepare(disk: Disk, kx: Kx, name: str) -> None:
    """What a command reads: a baseline, records, files beside the project."""
    (disk.folder / "LOG.md").write_text(LOG)
    (disk.folder / "none.cu").write_text(SOURCE)
    shutil.copy(NCU / "raw.csv", disk.folder)
    if name not in ORDINARY:
        kx("run", "S1", cwd=disk.root)
        kx("run", "aaaaaaa", cwd=disk.root)
        kx("check", "--update", cwd=disk.root)
    if name in ("report", "junit"):
        kx(*spelled(disk, name), cwd=disk.root)
    # A log that is out of date.
    shutil.copytree(disk.root / "variants", disk.root / "logs/spare", dirs_exist_ok=True)


def spelled(disk: Disk, name: str) -> list[str]:
    return [word.replace("@", str(disk.folder)) for word in COMMANDS[name]]


def check(disk: Disk, result: Result, before: dict[str, bytes]) -> None:
    """That the command ended well, or in a sentence with all files as they were."""
    after = disk.files()
    assert not [path for path in after if path.endswith(".tmp")]
    if result.exit_code == errors.OK:
        assert all(after.get(path) == before[path] for path in before if "logs/runs" in path)
        return
    assert result.exit_code == errors.ENVIRONMENT, result.output
    output = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(output) == 1, result.stderr
    assert after == before, result.stderr


def is_right(disk: Disk, kx: Kx, name: str) -> None:
    """That the command and those that read what it writes work now."""
    result = kx(*spelled(disk, name), cwd=disk.root)
    assert result.exit_code == errors.OK, result.stderr
    assert project.load(disk.root).experiments
    assert not all_records(disk.root)[1]
    assert kx("list", cwd=disk.root).exit_code == errors.OK
    assert kx("log", "--write", cwd=disk.root).exit_code == errors.OK


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_a_full_disk(disk: Disk, kx: Kx, gpu: FakeGpu, name: str) -> None:
    prepare(disk, kx, name)
    ended = []
    for pages in (0, 1, 2, 3) if name in ORDINARY else (0, 1, 2, 3, 4, 6, 8, 12, 16, 24):
        before = disk.files()
        disk.fill(pages)
        result = kx(*spelled(disk, name), cwd=disk.root)
        check(disk, result, before)
        ended.append(result.exit_code)
        disk.empty()
        if result.exit_code == errors.OK:
            break
    print(f"{name}: full disk, by free pages from 0: exit codes {ended}")
    if ended[-1] != errors.OK:
        is_right(disk, kx, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_a_disk_that_is_read_only(disk: Disk, kx: Kx, gpu: FakeGpu, name: str) -> None:
    prepare(disk, kx, name)
    before = disk.files()
    disk.allow(writing=False)
    result = kx(*spelled(disk, name), cwd=disk.root)
    disk.allow(writing=True)
    check(disk, result, before)
    if name.startswith(("run", "sweep")):  # what was computed is shown, and that it is not kept
        assert "scale, sm_90a" in result.stdout
        assert "has no record" in result.stderr
    print(f"{name}: read-only: exit code {result.exit_code}: {result.stderr.strip()}")
