"""The README: what it shows was printed, and what it names exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from support import ROOT, Kx

from kernelexp.cli import app
from kernelexp.model import errors

README = (ROOT / "README.md").read_text()
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_the_example_shows_the_page_of_f3_and_the_log() -> None:
    example = (ROOT / "docs/example.md").read_text()
    assert "$ kernelexp run F3 --no-record" in example
    assert "Verdict: UNMEASURED" in example
    assert "| 9bf658a  | Blocked layout" in example


def test_it_begins_with_a_measured_page_of_a_record() -> None:
    assert "$ kernelexp show 20261121T000044Z" in README
    assert "-2.36% (-2.41% to -2.30%)   IMPROVED" in README


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_it(name: str) -> None:
    assert f"kernelexp {name}" in README or f"`{name}" in README


def test_every_file_that_it_links_exists() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_its_two_commands_are_single_lines_that_make_their_environment() -> None:
    commands = re.findall(r"^python3 -m venv .*$", README, re.M)
    assert len(commands) == 2
    assert commands[0].endswith("kernelexp run F3")
    assert commands[1].endswith("pytest")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The project that the section on one's own kernel shows, file by file."""
    files = re.findall(r"^<!-- (\S+\.\S+) -->\n```\w+\n(.*?)^```$", README, re.M | re.S)
    for name, text in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_its_project_with_a_kernel_of_one_s_own_is_emulated_right(own: Path, kx: Kx) -> None:
    result = kx("run", "E1", "--no-gpu", "--json", cwd=own)
    assert result.exit_code == errors.OK, result.stderr
    (ran,) = json.loads(result.stdout)
    (candidate,) = ran["record"]["candidates"]
    assert candidate["verdict"]["status"] == "UNMEASURED"
    (array,) = candidate["arm"]["emulated"]["arrays"]
    assert (array["name"], array["elements"], array["wrong"]) == ("y", 5000, 0)
