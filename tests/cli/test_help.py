"""Every command in --help is there, and is imported only when it is asked for."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from support import Kx

from kernelexp.cli import app
from kernelexp.cli.app import ALIASES, SUMMARIES, translate
from kernelexp.model import errors

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_command_that_is_listed_has_help_of_its_own(kx: Kx, name: str) -> None:
    result = kx(name, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: root {name} ") or f" {name} " in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_help_lists_each_command_on_one_line(kx: Kx) -> None:
    shown = kx("--help").stdout
    for name, summary in SUMMARIES.items():
        assert any(line.split() == [name, *summary.split()] for line in shown.splitlines())


@pytest.mark.parametrize("name", SUMMARIES)
def test_an_example_is_a_line_to_copy_with_options_that_there_are(kx: Kx, name: str) -> None:
    shown = kx(name, "--help").stdout
    _, _, examples = shown.partition("  For example:\n")
    lines = examples.partition("\n\n")[0].splitlines()
    for line in lines:
        assert line.startswith(f"      kernelexp {name} ")
        options = {
            word.partition("=")[0]
            for word in shlex.split(line)
            if word.startswith("--") and word != "--"
        }
        assert all(f" {option} " in shown.partition("\nOptions:")[2] for option in options)
    assert bool(lines) == ("For example" in (COMMANDS[name].help or ""))


def test_without_a_command_a_short_screen_says_what_to_do_first(kx: Kx) -> None:
    lines = kx().stdout.splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 80
    first = [shlex.split(line)[1] for line in lines if line.startswith("  kernelexp ")]
    assert first == ["doctor", "init", "run"]
    assert "kernelexp --help lists all commands." in lines[-1]


@pytest.mark.parametrize("option", ["-C {}", "--project {}", "--project={}"])
def test_a_project_is_named_before_the_command_or_behind_it(
    kx: Kx, scale: Path, tmp_path: Path, option: str
) -> None:
    given = option.format(scale).split()
    before, behind = kx(*given, "show", cwd=tmp_path), kx("show", *given, cwd=tmp_path)
    assert before.exit_code == 0
    assert before.stdout == behind.stdout


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from kernelexp.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "print(*(m for m in sys.modules if m in ('kernelexp.cli.run', 'kernelexp.cli.log')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "run S1 --margin 0",
            "--margin: 0.0 should be from 0.01 to 100; see kernelexp run --help.",
        ),
        ("run S1 --margin x", "--margin: 'x' should be a number; see kernelexp run --help."),
        ("run S1 --processes 1", "--processes: 1 should be 2 or more; see kernelexp run --help."),
        ("run S1 --l2 warm", "--l2: 'warm' is not one of 'cold', 'hot'; see kernelexp run --help."),
        ("run --bare", "there is no option '--bare'; see kernelexp run --help."),
        (
            "run --marign 3",
            "there is no option '--marign', but there is --margin; see kernelexp run --help.",
        ),
        ("diff", "A is missing; see kernelexp compare --help."),
        ("show F3 F4", "one argument too many: F4; see kernelexp show --help."),
        ("new --row", "--row needs a value; see kernelexp new --help."),
        ("shov F3", "there is no command 'shov', but there is show; see kernelexp --help."),
        ("--bare list", "there is no option '--bare'; see kernelexp --help."),
    ],
)
def test_what_the_command_line_refuses_is_one_sentence(kx: Kx, words: str, sentence: str) -> None:
    result = kx(*words.split())
    assert result.exit_code == errors.USAGE
    assert result.stderr.replace("root", "kernelexp") == f"error: {sentence}\n"
    assert len(sentence) <= 80


@pytest.mark.parametrize("name", ALIASES)
def test_an_old_name_is_not_listed_and_shows_the_help_of_its_new_one(kx: Kx, name: str) -> None:
    assert f"\n  {name} " not in kx("--help").stdout
    shown = kx(name, "--help")
    assert shown.exit_code == 0
    assert shown.stdout == kx(ALIASES[name][0], "--help").stdout


@pytest.mark.parametrize(
    ("words", "today"),
    [
        ("new --from gemm.cu --block 256", "adopt gemm.cu --block 256"),
        ("new --block 256 --from=gemm.ptx", "adopt gemm.ptx --block 256"),
        ("new --from sweep-gemm --row 2", "new --from sweep-gemm --row 2"),
        ("new --from", "new --from"),
        ("evaluate gemm --source=mine.cu", "time --peers gemm --source=mine.cu"),
        ("evaluate task solution.py", "evaluate task solution.py"),
        ("selftest --margin 2", "calibrate --inject 0.5,1,2,5 --margin 2"),
    ],
)
def test_a_command_line_of_an_earlier_version_is_translated(words: str, today: str) -> None:
    assert translate(words.split()) == today.split()
