"""The emulator as users run it, with its compiled loops; test_compiled.py compares with Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelexp.emulator import compiled


@pytest.fixture(autouse=True)
def _with_compiled_loops(library: Path) -> Iterator[None]:
    compiled.load(library)
    yield
    compiled.unload()
