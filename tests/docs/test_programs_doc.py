"""docs/programs.md: its project loads, and its table has every key of a program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import ROOT

from kernelexp import project

TEXT = (ROOT / "docs/programs.md").read_text()


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The project that the page shows, file by file."""
    files = re.findall(r"^<!-- (\S+\.\S+) -->\n```\w+\n(.*?)^```$", TEXT, re.M | re.S)
    for name, text in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_its_project_loads(own: Path) -> None:
    loaded = project.load(own)
    assert list(loaded.experiments) == ["C1"]


def test_its_table_has_every_key() -> None:
    from kernelexp.model.experiment import Program

    keys = re.findall(r"^\| `(\w+)` \|", TEXT, re.M)
    assert sorted(keys) == sorted(Program.__struct_fields__)
