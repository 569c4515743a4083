"""A compiler that lies in the project, as one of an environment in the repository does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from compilers import build_each, default

from kernelexp.evidence import build
from kernelexp.evidence.build import service
from kernelexp.system import toolchain
from kernelexp.system.toolchain import Toolchain


@pytest.fixture
def within(scale: Path, copied: Path) -> Toolchain:
    top = scale / ".venv" / "cu"
    shutil.copytree(copied, top, symlinks=True)
    return toolchain.find(str(top / "bin/nvcc"), scale)


def test_its_headers_are_not_taken_for_the_project_s(scale: Path, within: Toolchain) -> None:
    variant = default(scale)
    (item,) = build_each(scale, [variant], within)
    (plan,) = build.make_plans(scale, [variant], within)
    (entry,) = [entry for entry in service.entries(plan) if entry.identity == item.identity]
    assert any(path.startswith(".venv/cu/") for path in entry.read)
    assert not any(path.startswith(".venv/") for path in entry.passed_over)
    assert list(build.unlisted(plan, item.identity)) == []
