"""Cheats that were published, each stopped: docs/red-team.md has them as a table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cheats import HONEST, KERNELS, NO_KERNEL, SUBMISSIONS, TIMED
from support import ROOT, TOKEN, alive, wait_until
from timing_cheats import DEFERRED, IN_A_ROW, IN_ONE_CALL, NO_GAIN, ON_GPU, STALE

import kernelexp
from kernelexp.model.arm import Status
from kernelexp.services.tasks import cascade
from kernelexp.services.tasks.assessment import Assessment
from kernelexp.services.tasks.cascade import Assignment
from kernelexp.system.toolchain import Toolchain

pytestmark = pytest.mark.xdist_group("tasks")

FOLDER = ROOT / "tests/projects/tasks/gpumode"
HARNESS = Path(kernelexp.__file__).parent / "services/tasks/formats/compare.py"
KERNEL = ROOT / "docs/examples/tasks"
HEAD = "import os, sys, torch\n\n"

MEAN = """import torch

ROWS = 8192
COLUMNS = 8192


class Model(torch.nn.Module):
    def forward(self, x):
        return x.mean()


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
"""
CONSTANT = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.full((), 0.5)
"""
QUICK = ("results kept by shape",)


def test_the_page_has_the_cheats_that_are_timed() -> None:
    groups = (STALE, IN_ONE_CALL, NO_GAIN, DEFERRED, IN_A_ROW, ON_GPU)
    assert {name for group in groups for name in group} == set(TIMED)
    count = len(SUBMISSIONS) + len(KERNELS) + len(NO_KERNEL) + len(TIMED)
    assert f"our own, {count} with what stops each" in (ROOT / "docs/red-team.md").read_text()


def assess(text: str, tools: Toolchain, folder: Path, limit_s: float = 120) -> Assessment:
    path = folder / "submission.py"
    path.write_text(HEAD + text)
    wanted = Assignment(schedules=0, largest=16, limit_s=limit_s)
    return cascade.assess(FOLDER, path, tools, folder, wanted)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in SUBMISSIONS]
)
def test_a_cheat_is_stopped(name: str, tools: Toolchain, tmp_path: Path) -> None:
    text, reason, *_ = SUBMISSIONS[name]
    limit = 15 if reason == "limit" else 120
    assessed = assess(text, tools, tmp_path, limit)
    assert assessed.status in (Status.INCORRECT, Status.CRASHED, Status.TIMED_OUT), assessed
    assert assessed.score == 0.0
    assert assessed.reason == (reason or assessed.reason)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_cheats_is_stopped(name: str, tools: Toolchain, tmp_path: Path) -> None:
    path = tmp_path / "solve.cu"
    path.write_text(KERNELS[name].text)
    assessed = cascade.assess(KERNEL, path, tools, tmp_path, Assignment(schedules=0))
    assert (assessed.status, assessed.reason) == (Status.INCORRECT, KERNELS[name].reason)


@pytest.mark.slow
@pytest.mark.parametrize("name", NO_KERNEL)
def test_what_has_no_kernel_of_its_own_is_said_to_have_none(
    name: str, tools: Toolchain, tmp_path: Path
) -> None:
    assessed = assess(NO_KERNEL[name].text, tools, tmp_path)
    assert not assessed.kernels
    assert "without a kernel of its own" in assessed.sentence


@pytest.mark.slow
def test_a_constant_that_is_right_at_the_full_size_is_wrong_at_a_reduced_one(
    tools: Toolchain, tmp_path: Path
) -> None:
    problem, solution = tmp_path / "problem.py", tmp_path / "solution.py"
    problem.write_text(MEAN)
    solution.write_text(CONSTANT)
    own = Assignment(schedules=0, largest=0)
    assert cascade.assess(problem, solution, tools, tmp_path, own).score == 1.0
    assessed = cascade.assess(problem, solution, tools, tmp_path, Assignment(schedules=0))
    assert assessed.reason == "wrong_result"


@pytest.mark.slow
def test_the_same_answer_without_a_cheat_is_right(tools: Toolchain, tmp_path: Path) -> None:
    assessed = assess(f"def custom_kernel(data):\n    return {HONEST}\n", tools, tmp_path)
    assert assessed.score == 1.0, assessed.sentence


ATTACH = (
    "import ctypes\n"
    "def attach(pid):\n"
    "    libc = ctypes.CDLL(None, use_errno=True)\n"
    "    if libc.ptrace(0x4206, pid, None, None):\n"
    "        raise OSError(ctypes.get_errno(), 'ptrace')\n"
)
ATTACKS = {
    "edits the harness": f"open({str(HARNESS)!r}, 'a').write('#')",
    "reads the reference's file": f"open({str(FOLDER / 'reference.py')!r}).read()",
    "looks for the problem's folder": "os.listdir(os.path.dirname(os.getcwd()))",
    "opens a connection": "__import__('socket').create_connection(('127.0.0.1', 9), 1)",
    "reads another process's memory": "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)",
    "reads another process's environment": "open(f'/proc/{os.getppid()}/environ').read()",
    "traces another process": "attach(os.getppid())",
    "writes to the user's home": f"open({str(Path.home() / '.kx-was-here')!r}, 'w')",
}


def test_what_would_leave_its_folder_is_denied(tools: Toolchain, tmp_path: Path) -> None:
    before = HARNESS.read_bytes()
    tries = "\n".join(
        f"    try:\n        {line}\n        broken.append({name!r})\n"
        "    except PermissionError: pass"
        for name, line in ATTACKS.items()
    )
    text = (
        f"{ATTACH}def custom_kernel(data):\n    broken = []\n{tries}\n"
        f"    assert not broken, broken\n    return {HONEST}\n"
    )
    assessed = assess(text, tools, tmp_path)
    assert assessed.score == 1.0, assessed.sentence
    assert HARNESS.read_bytes() == before


@pytest.mark.slow
def test_nothing_survives_an_evaluation(
    tools: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = f"survivor-{os.getpid()}"
    monkeypatch.setenv(TOKEN, token)
    text = (
        "def custom_kernel(data):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        __import__('time').sleep(600)\n"
        f"    return {HONEST}\n"
    )
    assess(text, tools, tmp_path)
    wait_until(lambda: not survivors(token), 10)


def survivors(token: str) -> list[int]:
    """Processes that sleep for it: the fork server and the watchdog live as long as this one."""
    return [
        pid
        for pid in alive(token)
        if b"solution_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
