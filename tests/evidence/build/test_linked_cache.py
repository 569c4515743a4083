"""A project's cache that is a link, or holds one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import Kx

from kernelexp.model import errors


@pytest.mark.parametrize("name", ["build", "build/manifests"])
def test_a_link_inside_the_cache_is_not_followed_out_of_the_project(
    scale: Path, kx: Kx, tmp_path: Path, name: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = scale / ".kernelexp" / name
    shutil.rmtree(link, ignore_errors=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    result = kx("inspect", "scale", "--build", cwd=scale)
    assert result.exit_code == errors.ENVIRONMENT
    assert f".kernelexp/{name} is a link out of the project" in " ".join(result.stderr.split())
    assert list(elsewhere.iterdir()) == []
