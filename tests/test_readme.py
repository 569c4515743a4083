"""The README: what it shows was printed, and what it names exists."""

from __future__ import annotations

import re

import pytest
import typer
from support import ROOT

from kernelexp.cli import app

README = (ROOT / "README.md").read_text()
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_it_shows_the_page_of_f3_and_the_log() -> None:
    assert "$ kernelexp run F3 --no-record" in README
    assert "Verdict: UNMEASURED" in README
    assert "| 9bf658a  | Blocked layout" in README


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
