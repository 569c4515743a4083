"""SIGKILL at any moment loses nothing and corrupts nothing, and leaves no process behind."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest
from support import ROOT, TOKEN, Kx, alive, all_records, wait_until

from kernelexp.logs import decisions
from kernelexp.model import errors

# A command line on a machine that seems to have a GPU: `CODE FOLDER ARGUMENT...`.
CODE = """
import sys
from pathlib import Path
from kernelexp.system.process import interrupts
interrupts.handle_signals()
import pytest
from fake_gpu import FakeGpu
from kernelexp import cli
gpu = FakeGpu(Path(sys.argv.pop(1)), pytest.MonkeyPatch())
gpu.takes("{1: 1.0, 2: 0.97, 4: 0.9}[width]")
cli.main()
"""
COMMANDS = {
    "run": ("run", "S1", "S2", "--no-gpu"),
    "accept": ("accept", "S1", "--note", "@"),  # another each time: what stands is not written
    "log": ("log", "--write"),
    "sweep": ("sweep", "scale", "width=1,2"),
}


class Victim:
    """A project with records, of which nothing may be lost."""

    def __init__(self, root: Path, kx: Kx, rng: random.Random) -> None:
        self.root, self._kx, self._rng = root, kx, rng
        self._usual_s: dict[str, float] = {}
        self.ended = Counter[str]()
        for words in (("run", "S1", "--no-gpu"), ("reject", "S2"), ("log", "--write")):
            assert kx(*words, cwd=root).exit_code == errors.OK

    @property
    def killed(self) -> int:
        return sum(count for name, count in self.ended.items() if name.endswith("killed"))

    def start(self, name: str, token: str) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
        words = [token if word == "@" else word for word in COMMANDS[name]]
        return subprocess.Popen(
            [sys.executable, "-c", CODE, str(self.root.parent / "locks"), *words],
            cwd=self.root,
            env={**os.environ, TOKEN: token, "PYTHONPATH": paths},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def kill(self, name: str) -> None:
        """Kills the command at a random moment of what it usually takes, and looks at it all."""
        token = uuid.uuid4().hex
        before = self._kept()
        if name not in self._usual_s:
            self.complete(name)
        # What is written is written towards the end.
        moment = self._usual_s[name] * self._rng.random() ** 0.5
        process = self.start(name, token)
        try:
            result = process.communicate(timeout=moment)[1]
            assert process.returncode == errors.OK, result
            self.ended[f"{name}, ended before"] += 1
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.ended[f"{name}, killed"] += 1
        wait_until(lambda: not alive(token))
        after = self._kept()
        assert {path: after.get(path) for path in before} == before
        self.is_whole()

    def complete(self, name: str) -> None:
        """The command once to its end."""
        begun = time.monotonic()
        process = self.start(name, uuid.uuid4().hex)
        result = process.communicate()[1]
        assert process.returncode == errors.OK, result
        self._usual_s[name] = time.monotonic() - begun

    def is_whole(self) -> None:
        """Every file can be read, and the next commands work."""
        assert not all_records(self.root)[1]
        assert not decisions.read_all(self.root)[1]
        rendered = (self.root / "logs/EXPERIMENTS.md").read_text()
        assert rendered.startswith("# Experiment log")
        for words in (("list",), ("log", "--write"), ("log", "--check")):
            result = self._kx(*words, cwd=self.root)
            assert (result.exit_code, result.stderr) == (errors.OK, "")

    def _kept(self) -> dict[Path, bytes]:
        """The records, decisions and kept sources."""
        folders = ("runs", "decisions", "sources")
        paths = (path for name in folders for path in (self.root / "logs" / name).rglob("*"))
        return {
            path: path.read_bytes() for path in paths if path.suffix != ".tmp" and path.is_file()
        }


def test_an_acceptance_that_is_killed_loses_nothing(scale: Path, kx: Kx) -> None:
    victim = Victim(scale, kx, random.Random(1))
    victim.kill("accept")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_50_kills_lose_nothing_and_corrupt_nothing(scale: Path, kx: Kx, part: int) -> None:
    seed = random.SystemRandom().randrange(1 << 31)
    print(f"kills, part {part}: seed {seed}")
    victim = Victim(scale, kx, random.Random(seed))
    for name in itertools.cycle(COMMANDS):
        victim.kill(name)
        if victim.killed >= 50:
            break
    for name in COMMANDS:
        victim.complete(name)
    victim.is_whole()
    leftovers = list(scale.rglob("*.tmp"))
    result, _ = all_records(scale)
    print(
        f"kills, part {part}: {victim.killed} ({dict(victim.ended)}); 0 records lost "
        f"or changed, 0 files unreadable, 0 processes left, 0 following commands failed; "
        f"{len(result)} records and {len(leftovers)} temporary files at the end"
    )
