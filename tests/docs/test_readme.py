"""The README: what it shows was printed, and what it names exists."""

from __future__ import annotations

import re

import pytest
import typer
from support import ROOT

from kernelexp.cli import app

README = (ROOT / "README.md").read_text()
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_the_example_shows_the_page_of_f3_and_the_log() -> None:
    example = (ROOT / "docs/report.md").read_text()
    assert "$ kernelexp run F3 --no-record" in example
    assert "Verdict: UNMEASURED" in example
    assert "| 9bf658a  | Blocked layout" in example


def test_it_begins_with_a_measured_page_of_a_record() -> None:
    assert "$ kernelexp show 20261127T043548Z" in README
    assert "-43.14% (-43.16% to -43.11%)   IMPROVED" in README


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_it(name: str) -> None:
    assert f"`kernelexp {name}" in README or f"`{name}`" in README


def test_it_is_short_enough_to_be_read() -> None:
    assert len(README.split()) <= 1500


def test_every_file_that_it_links_exists() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_its_two_commands_are_single_lines_that_make_their_environment() -> None:
    commands = re.findall(r"^python3 -m venv .*$", README, re.M)
    assert len(commands) == 2
    assert commands[0].endswith("kernelexp run F3")
    assert commands[1].endswith("pytest")
