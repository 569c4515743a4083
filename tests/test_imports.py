"""What starts fast stays fast: heavy modules load where they are needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "torch",
    "numpy",
    "scipy",
    "resvg_py",
    "rich.table",
    "jsonschema",
    "elftools",
    "yaml",
    "msgspec",
    "kernelexp.evidence.emulate.emulation_worker",
    "kernelexp.evidence.measure.measure",
    "kernelexp.dossier.full_counts",
)


def loaded_after(code: str) -> set[str]:
    tell = f"import sys\n{code}\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", tell], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_the_command_line_itself_loads_nothing_heavy() -> None:
    assert loaded_after("import kernelexp.cli") == set()


@pytest.mark.parametrize(
    "module",
    [
        "logs.records",
        "report.log.logbook",
        "services.kernel_logs",
        "report.runs.sweep",  # of a log with sweeps
        "report.document.document",
        "project",
        "services.run.runner",  # where all evidence is kept
    ],
)
def test_the_log_and_a_run_of_kept_evidence_load_neither_torch_nor_numpy(module: str) -> None:
    assert not loaded_after(f"import kernelexp.{module}") & {"torch", "numpy", "jsonschema"}


def test_a_run_loads_what_executes_and_measures_only_where_it_does() -> None:
    loaded = loaded_after("import kernelexp.services.run.runner")
    assert not {name for name in loaded if name.startswith("kernelexp.")}


def test_an_interrupt_while_modules_are_imported_is_no_traceback(tmp_path: Path) -> None:
    slow = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"
    (tmp_path / "typer.py").write_text(slow)
    command = [sys.executable, "-m", "kernelexp", "list"]
    ended = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    assert (ended.returncode, ended.stderr) == (130, "interrupted\n")
