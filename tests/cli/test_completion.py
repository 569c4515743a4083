"""What Tab offers: in a bash that reads a terminal, and as zsh and fish ask for it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, edit
from typer.testing import CliRunner

from kernelexp.cli import app
from kernelexp.cli.completion import join_bash_words

slow = pytest.mark.slow


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with `kernelexp`, which is this checkout's."""
    script = tmp_path / "bin/kernelexp"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m kernelexp "$@"\n')
    script.chmod(0o755)
    return script.parent


def environment(program: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{program}:{os.environ['PATH']}", **more}


def ask(program: Path, cwd: Path, **variables: str) -> list[str]:
    result = subprocess.run(
        ["kernelexp"],
        cwd=cwd,
        env=environment(program, **variables),
        capture_output=True,
        text=True,
    )
    assert result.stderr == ""
    return result.stdout.splitlines()


def type_in_bash(program: Path, cwd: Path, keys: str) -> str:
    """The screen of an interactive bash after these keys, from the prompt on."""
    ours, its = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        stdin=its,
        stdout=its,
        stderr=its,
        cwd=cwd,
        env=environment(program, TERM="dumb", HISTFILE=""),
        start_new_session=True,
    )
    os.close(its)
    setup = 'eval "$(_KERNELEXP_COMPLETE=source_bash kernelexp)"; bind "set bell-style none"'
    os.write(ours, f'{setup}; PS1="ready""> "\n'.encode())
    _read_until(ours, "ready> ")
    os.write(ours, f"{keys} # end".encode())
    screen = _read_until(ours, "# end")
    shell.kill()  # the line is not to be run
    shell.wait()
    os.close(ours)
    return screen


def _read_until(terminal: int, mark: str) -> str:
    screen = ""
    while mark not in screen:
        assert select.select([terminal], [], [], 300)[0], screen
        screen += os.read(terminal, 4096).decode()
    return screen


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("run S1 --set order=b\t", "run S1 --set order=backward"),
        pytest.param("run S1 --set=order=f\t", "run S1 --set=order=forward", marks=slow),
        pytest.param("run S1 --set wi\t", "run S1 --set width=", marks=slow),
        pytest.param("build sca\t", "build scale@sm_90a", marks=slow),
        ("build scale@sm_90a:width=2,order=b\t", "build scale@sm_90a:width=2,order=backward"),
    ],
)
def test_bash_completes_behind_its_word_breaks(
    program: Path, scale: Path, keys: str, line: str
) -> None:
    screen = type_in_bash(program, scale, f"kernelexp {keys}")
    assert screen.replace("\b", "").removesuffix("# end").split() == ["kernelexp", *line.split()]


def test_bash_lists_the_values_of_an_axis_and_no_experiments(program: Path, scale: Path) -> None:
    screen = type_in_bash(program, scale, "kernelexp run S1 --set width=\t\t")
    listed = screen.partition("\r\n")[2].split("ready>")[0].split()
    assert listed == ["1", "2", "4"]


def test_words_that_bash_took_apart_are_put_together() -> None:
    result = {
        "_KERNELEXP_COMPLETE": "complete_bash",
        "COMP_WORDS": "kernelexp\nbuild\nscale\n@\nsm_90a\n:\nwidth\n=\n4\n--json",
        "COMP_CWORD": "8",
    }
    join_bash_words(result)
    assert result["COMP_WORDS"].split("\n") == ["kernelexp", "build", "scale@sm_90a:width=4"]
    assert result["COMP_CWORD"] == "2"


def two_targets(scale: Path) -> None:
    edit(
        scale,
        "      sm_90a:\n",
        "      sm_100a:\n        source: scale.cu\n        axes:\n"
        "          width: {values: [8], default: 8}\n          only: {values: [x], default: x}\n"
        "      sm_90a:\n",
    )


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("run S1 --set ", {"width=1", "width=2", "width=4", "order=forward", "order=backward"}),
        ("emulate scale@sm_100a --set ", {"width=8", "only=x"}),
        ("build scale@sm_100a:", {"scale@sm_100a:width=8", "scale@sm_100a:only=x"}),
        ("emulate scale@sm_100a scale@sm_90a --set w", set()),
        ("run --set w", {"width=1", "width=2", "width=4", "width=8"}),
        ("run S", {"S1", "S2"}),
        ("sweep scale@sm_100a ", {"width=*", "width=8", "only=*", "only=x"}),
    ],
)
def test_only_what_the_named_architecture_has_is_offered(
    scale: Path, monkeypatch: pytest.MonkeyPatch, words: str, offered: set[str]
) -> None:
    two_targets(scale)
    monkeypatch.chdir(scale)
    answer = {
        "_KERNELEXP_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": f"kernelexp {words}",
    }
    result = CliRunner(env=answer).invoke(app, [], prog_name="kernelexp")
    lines = result.stdout.splitlines()
    assert {line.partition("\t")[0] for line in lines if line} == offered


def test_the_project_that_is_named_is_the_one_completed(
    program: Path, scale: Path, tmp_path: Path
) -> None:
    lines = ask(
        program,
        tmp_path,
        _KERNELEXP_COMPLETE="complete_zsh",
        _TYPER_COMPLETE_ARGS=f"kernelexp run -C {scale} S",
    )
    assert '"S2":"Two widths"' in "\n".join(lines)


def test_zsh_gets_no_text_that_it_would_execute(program: Path, scale: Path) -> None:
    edit(scale, "title: Two widths", "title: '[/red] \\$(touch PWNED) `id` \"'")
    lines = ask(
        program,
        scale,
        _KERNELEXP_COMPLETE="complete_zsh",
        _TYPER_COMPLETE_ARGS="kernelexp run S2",
    )
    assert lines == ["""_arguments '*: :(("S2":"(/red) (touch PWNED) id "))\'"""]
