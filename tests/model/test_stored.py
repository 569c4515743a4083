"""Arrays that lie beside a problem.py."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kernelexp.model import stored
from kernelexp.model.errors import ConfigurationError


def test_a_process_reads_an_array_once_and_gives_each_caller_its_own(tmp_path: Path) -> None:
    name = stored.store(tmp_path, struct.pack("<4f", 1, 2, 3, 4))
    problem = str(tmp_path / "problem.py")
    first = stored.read_array(problem, name, "f32", (2, 2))
    first[0, 0] = 7
    (tmp_path / stored.FOLDER / f"{name}.gz").unlink()
    assert stored.read_array(problem, name, "f32", (4,)).tolist() == [1, 2, 3, 4]


def test_a_damaged_array_is_refused(tmp_path: Path) -> None:
    name = stored.store(tmp_path, b"1234")
    path = tmp_path / stored.FOLDER / f"{name}.gz"
    path.write_bytes(path.with_name(f"{stored.store(tmp_path, b'5678')}.gz").read_bytes())
    with pytest.raises(ConfigurationError, match="its content is not what its name says"):
        stored.read_array(str(tmp_path / "problem.py"), name, "u8", (4,))
