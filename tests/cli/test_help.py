"""Every command in --help is there, and is imported only when it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support import Kx

from kernelexp.cli.commands import SUMMARIES


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


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from kernelexp.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "print(*(m for m in sys.modules if m in ('kernelexp.cli.run', 'kernelexp.cli.log')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""
