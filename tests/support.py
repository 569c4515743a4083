"""What tests import of each other: the repository, the command line's type, edits, processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from kernelexp.logs import records
from kernelexp.model.record import Record

ROOT = Path(__file__).parent.parent

Kx = Callable[..., Result]


TOKEN = "KX_TEST_TOKEN"


def alive(token: str) -> list[int]:
    """The processes that have this value of TOKEN in their environment, zombies left out."""
    result = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"{TOKEN}={token}".encode() in (path / "environ").read_bytes():
                result.append(int(path.name))
        except OSError:
            pass
    return result


def wait_until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Fails where it does not come true in the end. Looks less often the longer it takes: many
    conditions are requests to a process that needs the core itself."""
    begun = time.monotonic()
    while not condition():
        waited = time.monotonic() - begun
        assert waited < seconds
        time.sleep(min(max(0.01, waited / 10), 0.1))


def edit(root: Path, text: str, instead: str) -> None:
    """Replaces the first `text` in a project's file."""
    path = root / "experiments.yaml"
    before = path.read_text()
    assert before.count(text) >= 1, text
    path.write_text(before.replace(text, instead, 1))


def all_records(root: Path) -> tuple[list[Record], list[records.Unreadable]]:
    """Those of all experiments, and what can't be read."""
    folders = sorted({path.parent.name for path in (root / "logs/runs").glob("*/*.json")})
    read = [records.read(root, folder) for folder in folders]
    return [r for good, _ in read for r in good], [u for _, bad in read for u in bad]
