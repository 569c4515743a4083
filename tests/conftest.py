"""What the tests share: a small project of its own, and the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import ROOT, Kx
from typer.testing import CliRunner, Result

from kernelexp import toolchain
from kernelexp.cli import app
from kernelexp.toolchain import Toolchain


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    """A fresh copy of the project `scale`: one kernel, two axes, two experiments, one step."""
    return Path(shutil.copytree(ROOT / "tests/projects/scale", tmp_path / "scale"))


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    return toolchain.find(None, tmp_path_factory.mktemp("tools"))


@pytest.fixture
def kx(monkeypatch: pytest.MonkeyPatch) -> Kx:
    """Runs the command line in this process: kx("run", "S1", cwd=project)."""

    def run(*arguments: str, cwd: Path = ROOT) -> Result:
        monkeypatch.chdir(cwd)
        monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
        return CliRunner().invoke(app, list(arguments), catch_exceptions=False)

    return run
