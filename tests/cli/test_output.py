"""Where the output goes: a full disk, a closed pipe, a console that is not UTF-8."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from support import edit

from kernelexp.model import errors

PROGRAM = [sys.executable, "-m", "kernelexp"]


def run(
    words: str, cwd: Path, stdout: int | IO[str] = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *words.split()],
        cwd=cwd,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("words", ["list", "list --json", "log", "--version", "run --help"])
def test_a_full_disk_is_a_sentence(scale: Path, words: str) -> None:
    with open("/dev/full", "w") as full:
        done = run(words, scale, stdout=full)
    assert done.returncode == errors.ENVIRONMENT
    assert done.stderr == b"error: a file can't be written: No space left on device.\n"


@pytest.mark.parametrize("words", ["list", "list --json", "log", "--version", "run --help"])
def test_a_reader_that_has_enough_ends_a_command_quietly(scale: Path, words: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        done = run(words, scale, stdout=pipe)
    assert done.returncode == errors.BROKEN_PIPE
    assert done.stderr == b""


@pytest.mark.parametrize("words", ["show nothing", "list --bare"])
def test_a_message_that_nobody_reads_leaves_the_exit_code_as_it_is(scale: Path, words: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        command = [sys.executable, "-m", "kernelexp", *words.split()]
        done = subprocess.run(command, cwd=scale, stdout=pipe, stderr=pipe)
    assert done.returncode == errors.USAGE


def test_a_closed_output_is_no_traceback(scale: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m kernelexp show >&-"], cwd=scale, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_console_that_is_not_utf8_gets_replacements(scale: Path) -> None:
    edit(scale, "title: Two widths", "title: Zwölf → 12")
    done = run("list", scale, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert b"Zw?lf ? 12" in done.stdout


def test_json_is_utf8_whatever_the_console_is(scale: Path) -> None:
    edit(scale, "title: Two widths", "title: Zwölf → 12")
    done = run("list --json", scale, PYTHONIOENCODING="ascii")
    assert (
        json.loads(done.stdout.decode("utf-8"))["experiments"]["S2"]["experiment"]["title"]
        == "Zwölf → 12"
    )


def test_a_bug_of_kernelexp_is_no_regression() -> None:
    """1 says that a gate found a difference."""
    code = "from kernelexp import cli, __main__\ncli.main = lambda: 1 / 0\n__main__.main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == errors.ENVIRONMENT
    assert "ZeroDivisionError" in ended.stderr
    assert ended.stderr.endswith(
        "error: this is a bug in kernelexp: please report the lines above.\n"
    )


def test_a_folder_that_is_a_file_is_a_sentence_with_its_path(scale: Path) -> None:
    (scale / "logs").write_text("")
    done = run("log --write", scale)
    assert done.returncode == errors.ENVIRONMENT
    assert done.stderr.startswith(b"error: ")
    assert b"Traceback" not in done.stderr
    assert str(scale / "logs").encode() in done.stderr


def test_a_terminal_has_sentences_broken_between_words_and_a_pipe_has_them_whole(
    scale: Path,
) -> None:
    words = f"show {'x' * 30} --project {scale}"
    whole = run(words, scale).stderr.decode()
    assert whole.count("\n") == 1
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", closefd=True) as terminal:
        subprocess.run(
            [*PROGRAM, *words.split()], stderr=theirs, env={**os.environ, "COLUMNS": "60"}
        )
        os.close(theirs)
        shown = os.read(terminal.fileno(), 4096).decode()
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 60
    assert " ".join(shown.split()) == " ".join(whole.split())
