"""What pages are printed with: commands in a folder of their own, whose exit codes are checked."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
import transcript


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a page gets."""
    blocks: list[str] = []
    monkeypatch.setitem(sys.modules, "cog", types.SimpleNamespace(outl=blocks.append))
    return blocks


def test_commands_follow_each_other_in_one_folder(tmp_path: Path, written: list[str]) -> None:
    page = transcript.Transcript(tmp_path)
    page.show("mkdir -p sub", "cd sub", "echo text > file", "cat file")
    assert written == [
        "```console\n$ mkdir -p sub\n$ cd sub\n$ echo text > file\n$ cat file\ntext\n```"
    ]


def test_a_command_that_ends_with_another_code_ends_the_page(tmp_path: Path) -> None:
    page = transcript.Transcript(tmp_path)
    with pytest.raises(SystemExit, match="false ended with 1, not 0"):
        page.show("false")


def test_standard_error_is_shown_where_a_mistake_is_expected(
    tmp_path: Path, written: list[str]
) -> None:
    page = transcript.Transcript(tmp_path)
    page.show("echo mistake >&2; exit 3", code=3)
    assert "mistake" in written[0].splitlines()


def test_the_name_of_a_run_is_always_the_same_and_a_cut_is_marked(
    tmp_path: Path, written: list[str]
) -> None:
    page = transcript.Transcript(tmp_path)
    page.show(
        "seq 3", "cat <(echo first) <(echo 20991231T235959Z-0123abcd) <(seq 2)", lines=slice(1, 2)
    )
    assert written[0].splitlines()[-4:] == ["...", "20261122T120000Z-5f0c2a91", "...", "```"]


def test_a_long_command_is_broken_before_options_as_a_shell_allows(
    tmp_path: Path, written: list[str]
) -> None:
    long = "true " + " ".join(f"--option-{n}=value" for n in range(9))
    transcript.Transcript(tmp_path).show(long)
    lines = written[0].splitlines()[1:-1]
    assert max(map(len, lines)) <= transcript.WIDTH + 2
    assert " ".join(line.removesuffix(" \\").strip() for line in lines) == f"$ {long}"
