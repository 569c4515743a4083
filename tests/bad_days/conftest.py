"""A disk of its own for a project: one that can be filled to the last page, or made read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_gpu import FakeGpu
from support import ROOT

from kernelexp import build

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
