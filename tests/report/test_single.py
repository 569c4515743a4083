"""A report in one file: its links stay inside, and one page of it is in sight."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from support import Kx

from kernelexp import project
from kernelexp.model import errors
from kernelexp.report.site import single, site

pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def text(part: Path) -> str:
    loaded = project.load(part, sources=False)
    return single.render(site.ProjectSite(loaded, listings=False)).decode()


def ids(text: str) -> list[str]:
    return re.findall(r'<[^>]* id="([^"]*)"', text)


def test_every_page_is_in_the_file_under_a_name_of_its_own(text: str) -> None:
    names = re.findall(r'<article class="page" id="([^"]*)"', text)
    assert names[0] == "index"
    assert {"experiments-T1", "experiments-S7"} <= set(names)
    assert any(name.startswith("sources-") for name in names)


def test_what_one_file_leaves_out_is_not_called_missing(text: str) -> None:
    assert "Not made yet: time line of a CTA&#39;s warps" in text
    assert "Not made yet: source beside SASS" not in text


def test_no_id_is_there_twice(text: str) -> None:
    assert len(ids(text)) == len(set(ids(text)))


def test_every_link_leads_to_something_in_the_file(text: str) -> None:
    known = set(ids(text))
    links = re.findall(r'<[^>]* href="([^"]*)"', text)
    assert len(links) > 100
    outside = {link for link in links if not link.startswith("#")}
    lost = {link for link in links if unquote(link[1:]) not in known and "kernel=" not in link}
    assert (outside, lost) == (set(), set())


def test_a_file_of_another_is_not_replaced(tmp_path: Path, part: Path, kx: Kx) -> None:
    path = tmp_path / "notes.html"
    path.write_text("mine")
    refused = kx("report", "--single", "--out", str(path), cwd=part)
    assert refused.exit_code == errors.USAGE
    assert "was not written by kernelexp" in refused.stderr
    assert path.read_text() == "mine"


def test_a_pipe_gets_the_page_and_stays_a_pipe(tmp_path: Path, part: Path, kx: Kx) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with (tmp_path / "read").open("wb") as file, subprocess.Popen(["cat", path], stdout=file):
        result = kx("report", "--single", "--out", str(path), cwd=part)
    assert result.exit_code == errors.OK, result.stderr
    assert b'id="experiments-T1"' in (tmp_path / "read").read_bytes()
    assert path.is_fifo()


def test_a_report_s_own_file_is_replaced(tmp_path: Path, part: Path, kx: Kx) -> None:
    path = tmp_path / "one.html"
    for _ in range(2):
        assert kx("report", "--single", "--out", str(path), cwd=part).exit_code == errors.OK
    assert b'id="experiments-T1"' in path.read_bytes()
