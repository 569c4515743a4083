"""Web pages, rendered once: those of a part of the repository, and those of all of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from site_project import build, copy
from support import ROOT


@pytest.fixture(scope="session")
def part(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with records of a few experiments, a sweep, and profiles of two kernels."""
    root = copy(tmp_path_factory.mktemp("part"), "T1", "H3", "S7", "abf04a5", "sweep-transpose")
    shutil.copytree(ROOT / "variants", root / "variants")
    shutil.copytree(ROOT / "logs/compiled", root / "logs/compiled")
    (root / "logs/profiles").mkdir()
    for run in (
        "20261122T052206Z-c4343e1f",
        "20261122T052421Z-eaf66769",
        "20261122T052444Z-696744c7",
        "published-9bf658a",
    ):
        shutil.copy(ROOT / f"logs/profiles/{run}.json", root / "logs/profiles")
    return root


@pytest.fixture(scope="session")
def pages(part: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its pages. Tests that use these are of one group of xdist's."""
    return build(part, tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="session")
def every_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of the whole repository."""
    return build(ROOT, tmp_path_factory.mktemp("every"))
