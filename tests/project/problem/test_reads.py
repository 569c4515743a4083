"""What problem.py reads besides its folder: a module that kernels share, the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Kx, all_records

from kernelexp.model import errors

SHARED = """import sys
sys.path.insert(0, str(__import__("pathlib").Path(__file__).parents[1]))
from kernelexp.launch import"""


def change(root: Path, text: str, instead: str) -> None:
    path = root / "variants/scale/problem.py"
    before = path.read_text()
    assert text in before
    path.write_text(before.replace(text, instead, 1))


@pytest.fixture
def sharing(scale: Path) -> Path:
    """problem.py takes its factor from a module above its folder, when the reference is made."""
    change(scale, "from kernelexp.launch import", SHARED)
    change(scale, "    yield Chunk(", "    from shared_factor import FACTOR\n\n    yield Chunk(")
    (scale / "variants/shared_factor.py").write_text("FACTOR = 3.0\n")
    return scale


def test_a_module_beside_the_kernels_belongs_to_the_key_of_an_emulation(
    sharing: Path, kx: Kx
) -> None:
    assert kx("emulate", "scale", cwd=sharing).exit_code == errors.OK
    (sharing / "variants/shared_factor.py").write_text("FACTOR = 4.0\n")
    assert kx("emulate", "scale", cwd=sharing).exit_code == errors.WRONG_RESULT


def test_it_is_in_the_record_whose_verdict_is_from_before_it_changed(sharing: Path, kx: Kx) -> None:
    kx("run", "S1", cwd=sharing)
    (record,) = all_records(sharing)[0]
    assert "variants/shared_factor.py" in record.host_files
    (sharing / "variants/shared_factor.py").write_text("FACTOR = 3.0 + 0\n")
    output = " ".join(kx("explain", "S1", cwd=sharing).stdout.split())
    assert "from before these changed: variants/shared_factor.py." in output


def test_an_environment_variable_that_it_reads_does_so_too(
    scale: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(scale, "() * FACTOR", '() * float(__import__("os").getenv("KX_F", 3))')
    kx("run", "S1", cwd=scale)
    (record,) = all_records(scale)[0]
    assert record.environment == {"KX_F": "unset"}
    monkeypatch.setenv("KX_F", "4")
    assert kx("emulate", "scale", cwd=scale).exit_code == errors.WRONG_RESULT
    monkeypatch.setenv("KX_F", "3.0")
    output = " ".join(kx("explain", "S1", cwd=scale).stdout.split())
    assert "from before these changed: the environment variable KX_F." in output
