"""A disk of its own for a project: one that can be filled to the last page, or made read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_gpu import FakeGpu
from filelock import FileLock
from support import ROOT
from typer.testing import CliRunner

from kernelexp.cli import app
from kernelexp.evidence import build
from kernelexp.model import errors

PAGE = os.sysconf("SC_PAGE_SIZE")


class Disk:
    """A file system in memory with the project `scale` on it, built and emulated."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "scale"
        self._filler = folder / "filler"

    def fill(self, pages: int) -> None:
        """Leaves so many pages free, each enough for a small file or a folder's entry of one."""
        with self._filler.open("ab", buffering=0) as file:
            free = os.statvfs(self.folder).f_bavail * os.statvfs(self.folder).f_frsize
            os.posix_fallocate(file.fileno(), 0, file.seek(0, 2) + free - pages * PAGE)

    def empty(self) -> None:
        self._filler.unlink(missing_ok=True)

    def allow(self, writing: bool) -> None:
        option = "remount,rw" if writing else "remount,ro"
        subprocess.run(["mount", "-o", option, str(self.folder)], check=True)

    def files(self) -> dict[str, bytes]:
        """All files of the project by path; what only the cache has is none of them."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and build.CACHE not in path.parts
        }


@pytest.fixture
def disk(tmp_path: Path, warm: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if subprocess.run(argv, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        disk = Disk(folder)
        shutil.copytree(ROOT / "tests/projects/scale", disk.root)
        shutil.copytree(warm, disk.root / build.CACHE)
        yield disk
    finally:
        monkeypatch.chdir(tmp_path)
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """A GPU on which wide accesses are faster."""
    gpu = FakeGpu(tmp_path / "locks", monkeypatch)
    gpu.takes("{1: 1.0, 2: 0.97, 4: 0.9}[width]")
    return gpu


@pytest.fixture(scope="session")
def recorded(warm: Path, shared: Path) -> Path:
    """A project with measured records, a decision, a profile and a baseline; tests copy it."""
    root = shared / "recorded" / "scale"
    with FileLock(shared / "recorded.lock"):
        if (root.parent / "done").exists():
            return root
        shutil.copytree(ROOT / "tests/projects/scale", root)
        shutil.copytree(warm, root / build.CACHE)
        raw = str(ROOT / "tests/data/ncu/raw.csv")
        with pytest.MonkeyPatch.context() as patch:
            FakeGpu(root.parent / "locks", patch).takes("{1: 1.0, 2: 0.97, 4: 0.9}[width]")
            for words in (
                ("run", "S1", "aaaaaaa"),
                ("accept", "S1", "--note", "note", "--why", "why"),
                ("check", "--update"),
                ("profile", "--import", raw, "--launch", "1", "--variant", "S1"),
            ):
                result = CliRunner().invoke(app, [*words, "-C", str(root)], catch_exceptions=False)
                assert result.exit_code == errors.OK, result.stderr
        (root.parent / "done").touch()
    return root
