"""A project's cache, or a folder of it, that lies on another disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Kx


@pytest.mark.parametrize("name", [".kernelexp", ".kernelexp/build"])
def test_a_linked_folder_is_used_where_it_is(cold: Path, kx: Kx, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (cold / name).mkdir(exist_ok=True)
    (cold / name).rename(elsewhere)
    (cold / name).symlink_to(elsewhere)
    result = kx("inspect", "scale", "--build", cwd=cold)
    assert result.exit_code == 0
    assert list(elsewhere.rglob("kernel.cubin"))
    assert (cold / name).is_symlink()
