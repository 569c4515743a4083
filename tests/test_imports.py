"""What starts fast stays fast: heavy modules load where they are needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "numpy",
    "scipy",
    "matplotlib",
    "rich.table",
    "jsonschema",
    "elftools",
    "yaml",
    "msgspec",
)


def loaded_after(code: str) -> set[str]:
    tell = f"import sys\n{code}\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    said = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True)
    return set(said.stdout.split())


def test_the_command_line_itself_loads_nothing_heavy() -> None:
    assert loaded_after("import kernelexp.cli") == set()


@pytest.mark.parametrize("module", ["records", "report.log", "report.markdown", "project"])
def test_the_log_loads_neither_torch_nor_numpy(module: str) -> None:
    assert not loaded_after(f"import kernelexp.{module}") & {"torch", "numpy", "jsonschema"}
