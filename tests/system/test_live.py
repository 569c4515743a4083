"""What commands are doing right now, as others see it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelexp.system import live
from kernelexp.system.live import Step

BUILDING = Step(phase="building", done=1, total=3, now="stages=4")
KILLED = """
import os, sys
from pathlib import Path
from kernelexp.system import live
with live.published(Path(sys.argv[1]), "kernelexp run F3"):
    os.abort()
"""


def test_the_latest_step_of_each_phase_is_seen_until_the_command_ends(tmp_path: Path) -> None:
    with live.published(tmp_path, "kernelexp run F3") as tell:
        (begun,) = live.read(tmp_path)
        assert (begun.command, begun.steps) == ("kernelexp run F3", ())
        tell(Step(phase="building", done=0, total=3, now="a longer name than the next one has"))
        tell(BUILDING)
        measuring = Step(phase="measuring", done=0, total=4, now="candidate -1.2%")
        tell(measuring)
        assert live.read(tmp_path)[0].steps == (BUILDING, measuring)
    assert live.read(tmp_path) == []
    tell(BUILDING)  # a thread that is late does no harm
    assert live.read(tmp_path) == []


def test_commands_at_the_same_time_are_seen_in_their_order(tmp_path: Path) -> None:
    with live.published(tmp_path, "one"), live.published(tmp_path, "two"):
        assert sorted(item.command for item in live.read(tmp_path)) == ["one", "two"]


def test_a_command_that_was_killed_is_not_seen_and_its_file_removed_by_the_next(
    tmp_path: Path,
) -> None:
    program = [sys.executable, "-c", KILLED, str(tmp_path)]
    assert subprocess.run(program, stderr=subprocess.DEVNULL).returncode != 0
    left = list((tmp_path / live.FOLDER).glob("*.json"))
    assert len(left) == 1
    assert live.read(tmp_path) == []
    with live.published(tmp_path, "the next"):
        assert not left[0].exists()


@pytest.mark.parametrize("kind", ["link", "pipe", "text"])
def test_what_no_command_wrote_is_passed_over(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / live.FOLDER
    folder.mkdir(parents=True)
    path = folder / "1-2.json"
    if kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_text("{")
    assert live.read(tmp_path) == []
    with live.published(tmp_path, "run"):
        assert [item.command for item in live.read(tmp_path)] == ["run"]


def test_a_command_runs_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / ".kernelexp").write_text("a file")
    with live.published(tmp_path, "run") as tell:
        tell(BUILDING)
