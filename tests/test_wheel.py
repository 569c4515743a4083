"""The wheel has all files that the package reads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support import ROOT


@pytest.mark.slow
def test_every_file_of_the_package_is_in_the_wheel(tmp_path: Path) -> None:
    source = tmp_path / "source"
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, tracked):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            target.symlink_to((ROOT / name).readlink())
        elif (ROOT / name).is_file():
            target.write_bytes((ROOT / name).read_bytes())
    argv = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), "."]
    subprocess.run(argv, cwd=source, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    files = {
        path.relative_to(source).as_posix()
        for folder in (
            source / "kernelexp",
            source / "kernelexp/system/include",
            source / "warpsim",
        )
        for path in folder.rglob("*")
        if path.is_file() and "docs" not in path.parts
    }
    assert files - packed == set()
    assert {"kernelexp/system/include/export.cuh", "warpsim/runtime/cudart/exports.map"} <= packed
    assert "kernelexp/services/tasks/headers/ATen/cuda/CUDAContext.h" in packed
    assert "kernelexp/project/templates/project/SKILL.md" in packed
