"""The process of problem.py: whatever happens there is a fault of one kernel, with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from asking import NAME, ask, change
from support import Kx

from kernelexp.model import errors
from kernelexp.model.errors import ConfigurationError, EnvironmentFault
from kernelexp.system.process import isolated

BUDGET = "return Budget(threads=THREADS, dynamic_smem_bytes=0)"


def run(kx: Kx, root: Path) -> str:
    """Standard error of a run that a fault of problem.py ends."""
    result = kx("run", "S1", "--no-emulate", "--no-record", cwd=root)
    assert result.exit_code == errors.USAGE
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("instead", "words"),
    [
        ("import sys; sys.exit(0)", f"{NAME}:36: it calls sys.exit(0)"),
        ("import os; os._exit(0)", f"{NAME}: it ended its process with exit code 0"),
        ("import os; os._exit(9)", f"{NAME}: it ended its process with exit code 9"),
        ("import os; os.abort()", f"{NAME}:36: budget() crashed with SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", f"{NAME}:36: budget() crashed with SIGSEGV"),
        ("return Budget(threads='many', dynamic_smem_bytes=0)", "budget(): it returns a Budget"),
        ("return [][1]", f"{NAME}:36: IndexError: list index out of range"),
    ],
)
def test_whatever_problem_py_does_is_its_fault_with_its_line(
    scale: Path, kx: Kx, instead: str, words: str
) -> None:
    change(scale, (BUDGET, instead))
    assert words in run(kx, scale)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ((BUDGET, "while True: pass"), f"{NAME}:36: budget() had not returned after 1s; allow"),
        ((BUDGET, "import time; time.sleep(99)"), f"{NAME}:36: budget() had not returned"),
        (("THREADS = 256", "THREADS = 256\nwhile 1: pass"), f"{NAME}:9: importing it had not"),
    ],
)
def test_what_does_not_return_is_named_with_its_limit(
    scale: Path, edit: tuple[str, str], words: str
) -> None:
    change(scale, edit)
    with pytest.raises(ConfigurationError) as caught:
        ask(scale, timeout_s=1.0)
    assert words in str(caught.value)
    assert "with --limit problem=2s" in str(caught.value)


def test_what_it_prints_is_labelled_and_no_part_of_the_answer(
    scale: Path, kx: Kx, capfd: pytest.CaptureFixture[str]
) -> None:
    change(scale, (BUDGET, f"print('hello'); import os; os.write(1, b'raw\\n'); {BUDGET}"))
    result = kx("run", "S1", "--no-emulate", "--no-record", "--json", cwd=scale)
    assert result.exit_code == errors.OK
    assert json.loads(result.stdout)
    lines = (result.stderr + capfd.readouterr().err).splitlines()
    assert f"{NAME}: hello" in lines
    assert f"{NAME}: raw" in lines


def test_a_process_killed_from_outside_is_the_machines_fault(scale: Path) -> None:
    change(scale, (BUDGET, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    with pytest.raises(EnvironmentFault, match=r"ended from outside \(SIGKILL\)"):
        ask(scale)


@pytest.mark.parametrize(
    ("module", "words"), [("runpy", "did not start"), ("torch", "failed: Mod")]
)
def test_what_can_not_be_loaded_is_the_machines_fault(
    cold: Path, tmp_path: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch, module: str, words: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.modules['{module}'] = None")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    result = kx("emulate", "scale@sm_90a", cwd=cold)
    assert result.exit_code == errors.ENVIRONMENT
    assert f"error: {NAME}: the process that was to run it {words}" in result.stderr
    assert "Traceback" not in result.stderr


def test_memory_that_runs_out_is_the_machines_fault(scale: Path) -> None:
    change(scale, (BUDGET, "raise MemoryError('8 EiB')"))
    with pytest.raises(EnvironmentFault, match=rf"{NAME}:36: this machine has not enough memory"):
        ask(scale)


def test_asking_loads_no_torch(scale: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_FRESH", "1")  # a server that has not emulated anything yet
    change(scale, (BUDGET, f"import sys; assert 'torch' not in sys.modules; {BUDGET}"))
    assert ask(scale).points[0].budget


@pytest.mark.parametrize(("seconds", "text"), [(60, "1m"), (90, "90s"), (120, "2m"), (0.5, "0.5s")])
def test_limits_are_spelled_as_the_option_takes_them(seconds: float, text: str) -> None:
    assert isolated.spell_seconds(seconds) == text
