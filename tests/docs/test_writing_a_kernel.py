"""The page on writing a kernel: the project that it shows is emulated right."""

from __future__ import annotations

import json
import re
from pathlib import Path

import kept
import pytest
from support import ROOT, Kx

from kernelexp.model import errors

PAGE = (ROOT / "docs/writing-a-kernel.md").read_text()


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The project that the page shows, file by file."""
    files = re.findall(r"^<!-- (\S+\.\S+) -->\n```\w+\n(.*?)^```$", PAGE, re.M | re.S)
    for name, text in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    kept.share_builds(tmp_path)
    return tmp_path


def test_its_project_is_emulated_right(own: Path, kx: Kx) -> None:
    result = kx("run", "E1", "--no-gpu", "--json", cwd=own)
    assert result.exit_code == errors.OK, result.stderr
    (ran,) = json.loads(result.stdout)
    (candidate,) = ran["record"]["candidates"]
    assert candidate["verdict"]["status"] == "UNMEASURED"
    (array,) = candidate["arm"]["emulated"]["arrays"]
    assert (array["name"], array["elements"], array["wrong"]) == ("y", 5000, 0)
