"""Compilers that count their starts, fail as planted, or can be edited."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from compilers import BuildOne, Built, Plant, Wrap, build_each, default
from support import ROOT

from kernelexp.evidence import build
from kernelexp.evidence.build import planning
from kernelexp.system import toolchain
from kernelexp.system.toolchain import Toolchain

ANSWERS = '#!/bin/bash\ncase "$*" in *-version*|*-dryrun*) exec {nvcc} "$@";; esac\n'


@pytest.fixture
def scale(tmp_path: Path, known: Path) -> Path:
    """These tests are about building: nothing is built before."""
    root = Path(shutil.copytree(ROOT / "tests/projects/scale", tmp_path / "scale"))
    shutil.copytree(known, root / build.CACHE)
    return root


@pytest.fixture
def wrap(tools: Toolchain, tmp_path: Path) -> Wrap:
    """A toolchain whose nvcc is this script; it answers for itself what nvcc would run."""

    def write(script: str) -> Toolchain:
        wrapper = tmp_path / "wrapper" / "nvcc"
        wrapper.parent.mkdir(exist_ok=True)
        text = ANSWERS.format(nvcc=tools.nvcc) + script.format(nvcc=tools.nvcc)
        wrapper.write_text(text + "\n")
        wrapper.chmod(0o755)
        return msgspec.structs.replace(tools, nvcc=str(wrapper))

    return write


@pytest.fixture
def counted(wrap: Wrap, tmp_path: Path) -> tuple[Toolchain, Path]:
    """A toolchain whose nvcc notes each compilation in a file."""
    calls = tmp_path / "calls"
    calls.touch()
    return wrap(f'echo "$*" >> {calls}\nexec {{nvcc}} "$@"'), calls


@pytest.fixture(scope="session")
def copied(usual_tools: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the compiler by links, whose programs can be replaced one by one.

    Those that look for others beside themselves are copied.
    """
    folder = tmp_path_factory.mktemp("toolkit")
    source = Path(usual_tools.nvcc).parents[1]
    copy = Path(shutil.copytree(source, folder / "cu", copy_function=_link, symlinks=True))
    return copy


@pytest.fixture(scope="session")
def tools(copied: Path) -> Toolchain:
    return toolchain.find(str(copied / "bin/nvcc"), copied)


@pytest.fixture(scope="session")
def known(tools: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which these programs are hashed, and nothing is built."""
    folder = tmp_path_factory.mktemp("known") / build.CACHE
    folder.mkdir()
    planning.identify_compiler(folder, folder, tools, ())
    return folder


def _link(source: str, target: str) -> None:
    if Path(source).name in ("nvcc", "cuobjdump"):
        shutil.copy2(source, target)
    else:
        Path(target).symlink_to(source)


@pytest.fixture
def planted(copied: Path, tmp_path: Path) -> Plant:
    """A toolchain in which one program, such as nvvm/bin/cicc, is this script."""

    def plant(program: str, script: str) -> Toolchain:
        top = tmp_path / "cu"
        shutil.copytree(copied, top, symlinks=True)
        (top / program).unlink()
        (top / program).write_text(f"#!/bin/bash\n{script}\n")
        (top / program).chmod(0o755)
        return toolchain.find(str(top / "bin/nvcc"), tmp_path)

    return plant


@pytest.fixture
def build_one(scale: Path, tools: Toolchain) -> BuildOne:
    """Builds the project's default variant, with these flags."""

    def run(*flags: str, root: Path = scale, using: Toolchain = tools) -> Built:
        (built,) = build_each(root, [default(root, *flags)], using)
        return built

    return run
