"""The emulator as users run it, with its compiled loops; test_compiled.py compares with Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from kernelexp.emulator import compiled
from kernelexp.evidence import native


@pytest.fixture(scope="session")
def library(shared: Path) -> Path:
    with FileLock(shared / "native.lock"):
        path = native.library(shared)
    assert path, "the tests need a host compiler, as nvcc does"
    return Path(path)


@pytest.fixture(autouse=True)
def _with_compiled_loops(library: Path) -> Iterator[None]:
    compiled.load(library)
    yield
    compiled.unload()
