"""The library that torch's memory is in."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelexp.services.tasks import workplace


def test_it_is_made_once_and_stays_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workplace.hostcompiler, "folders", lambda _: [tmp_path])

    def make(_: str, __: Path, path: Path) -> Path:
        part = path.with_suffix(f".{threading.get_ident()}")
        part.write_bytes(b"")
        time.sleep(0.1)  # as long as a compiler, for the others to look meanwhile
        return part.replace(path)

    monkeypatch.setattr(workplace, "_make_memory", make)

    def found(_: int) -> int:
        return workplace.torch_memory(tmp_path, tmp_path / "runtime").stat().st_ino

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(found, range(8)))) == 1
