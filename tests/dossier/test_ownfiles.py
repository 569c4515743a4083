"""Which files are a project's own, and how records call them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelexp.dossier.tree import Tree
from kernelexp.system import disk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project in the folder `kernels` of a repository."""
    (tmp_path / "repository/.git").mkdir(parents=True)
    (tmp_path / "repository/kernels").mkdir()
    return tmp_path / "repository/kernels"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("variants/k/k.cu", "variants/k/k.cu"),
        ("{root}/variants/k/k.cu", "variants/k/k.cu"),
        ("{root}/../common/tile.cuh", "../common/tile.cuh"),
        ("{root}/../../elsewhere/tile.cuh", ""),
        ("../../elsewhere/tile.cuh", ""),
        ("{root}/../.venv/include/export.cuh", ""),
        ("{root}/../env/lib/site-packages/export.cuh", ""),
        ("{root}/.venv/lib/python3.12/site-packages/nvidia/include/vector_types.h", ""),
        (".venv/lib/python3.12/site-packages/nvidia/include/vector_types.h", ""),
        ("/dev/zero", ""),
        ("", ""),
    ],
)
def test_a_file_of_the_project_or_its_repository_has_a_name(
    root: Path, path: str, name: str
) -> None:
    assert disk.own_name(root, path.format(root=root)) == name


def test_without_a_repository_there_is_the_project_alone(tmp_path: Path) -> None:
    assert disk.own_name(tmp_path, str(tmp_path / "a.cu")) == "a.cu"
    assert disk.own_name(tmp_path, str(tmp_path.parent / "a.cu")) == ""


def test_a_repeated_run_has_its_repository_around_it(root: Path) -> None:
    again = root / disk.RESTORED / "20261122T000000Z-00000000/kernels"
    assert disk.own_name(again, str(again.parent / "common/tile.cuh")) == "../common/tile.cuh"


def test_what_a_record_names_is_read_only_if_it_is_a_file_of_ours(root: Path) -> None:
    (root / "link").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe")
    (root / "../common.cuh").write_text("")
    tree = Tree(root)
    for name in ("/dev/zero", "/etc/passwd", "link", "pipe", ".", "nul\0", "../../etc/passwd"):
        assert tree.sha256(name) == ""
    assert tree.sha256("../common.cuh").startswith("e3b0c442")
