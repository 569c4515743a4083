"""What the tests share: a small project of its own, and the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support import ROOT, Kx
from typer.testing import CliRunner, Result

from kernelexp import build, toolchain
from kernelexp.build import compiler
from kernelexp.cli import app
from kernelexp.toolchain import Toolchain

# A busy machine is no fault of a strategy.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture
def scale(tmp_path: Path, hashed: Path) -> Path:
    """A fresh copy of the project `scale`: one kernel, two axes, two experiments, one step."""
    root = Path(shutil.copytree(ROOT / "tests/projects/scale", tmp_path / "scale"))
    shutil.copytree(hashed, root / build.CACHE)
    return root


@pytest.fixture(scope="session")
def hashed(tools: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which the compiler's 200 MB are hashed already."""
    folder = tmp_path_factory.mktemp("hashed")
    compiler.identify(folder, folder, tools, ())
    return folder


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
