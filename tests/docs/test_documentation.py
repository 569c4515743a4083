"""The documentation: what its pages show can be typed, and all of them are in the site."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from kxdocs import emulator
from support import ROOT

from kernelexp.cli import app

_FOLDERS = (ROOT / "docs", ROOT / "warpsim/docs")
PAGES = sorted(
    [ROOT / "README.md", *(page for folder in _FOLDERS for page in folder.rglob("*.md"))]
)
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
_BLOCK = re.compile(r"^```(?:console|bash)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(kernelexp [a-z]+[^`]*)`")


def commands_of(text: str) -> Iterator[str]:
    """The command lines of kernelexp in a page, in blocks and between backticks."""
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            typed = re.sub(r"^\S*\$ ", "", line).partition(" && ")[2 if " && " in line else 0]
            if typed.startswith("kernelexp "):
                yield typed.partition("  #")[0]
    yield from (" ".join(inline.split()) for inline in _INLINE.findall(text))


def options_of(command: str) -> Iterator[str]:
    try:
        words = shlex.split(command)
    except ValueError:  # an inline example with an apostrophe
        words = command.split()
    for word in words[2:]:
        if re.match(r"--?[A-Za-z]", word):
            yield word.partition("=")[0].rstrip(".,;:")


@pytest.mark.parametrize("page", ["faq.md", "emulator/emulator.md", "emulator/conformance.md"])
def test_a_page_counts_the_correct_kernels_that_are_listed(page: str) -> None:
    listed = emulator.correct_kernels().count("\n| `")
    text = (ROOT / "docs" / page).read_text()
    counted = re.findall(
        r"\b(\d+) (?:correct )?kernels (?:of unusual form|that are correct|is correct)\b", text
    )
    assert counted == [str(listed)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_on_a_page_exists(page: Path) -> None:
    for command in commands_of(page.read_text()):
        name = command.split()[1]
        if not re.fullmatch(r"[a-z]+", name):
            continue  # kernelexp --help, kernelexp COMMAND
        assert name in COMMANDS, command
        known = {
            item
            for option in COMMANDS[name].params
            for item in (*option.opts, *option.secondary_opts)
        } | {"--help", "-h"}
        assert [option for option in options_of(command) if option not in known] == [], command


def test_commands_are_found_in_blocks_and_in_text() -> None:
    text = "```console\nhere$ kernelexp run F3 \\\n    --bad\n```\nand `kernelexp log --check`.\n"
    assert [(c.split()[1], list(options_of(c))) for c in commands_of(text)] == [
        ("run", ["--bad"]),
        ("log", ["--check"]),
    ]


@pytest.mark.parametrize("name", ["tutorial.md", "bringing-a-kernel.md"])
def test_every_console_block_of_a_tutorial_was_printed(name: str) -> None:
    text = (ROOT / "docs" / name).read_text()
    printed = re.sub(r"^<!-- \[\[\[cog.*?\[\[\[end\]\]\] -->$", "", text, flags=re.M | re.S)
    assert "```console" in text
    assert "```console" not in printed


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_a_broken_link_fails_it(tmp_path: Path) -> None:
    def build(source: Path) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "sphinx", "-q", "-E", "-n", "-W", "--keep-going"]
        return subprocess.run(
            [*argv, str(source), str(tmp_path / "site")], capture_output=True, text=True
        )

    done = build(ROOT / "docs")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site/reference/problem.html").read_text()
    assert 'href="../index.html"' in page
    site = "".join(path.read_text() for path in (tmp_path / "site").rglob("*.html"))
    assert re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="https?://[^"]*"', site) == []

    small = tmp_path / "docs"
    small.mkdir()
    for name in ("conf.py", "kxdocs"):
        (small / name).symlink_to(ROOT / "docs" / name)
    (small / "index.md").write_text("# Page\n\n[gone](gone.md), [there](#nowhere)\n")
    done = build(small)
    assert done.returncode != 0
    assert "gone.md" in done.stderr
    assert "nowhere" in done.stderr
