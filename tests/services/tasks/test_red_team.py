"""Cheats that were published, each stopped: docs/evaluate.md has them as a table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support import ROOT, TOKEN, alive, wait_until

import kernelexp
from kernelexp.model.arm.verdict import Status
from kernelexp.services.tasks import cascade
from kernelexp.services.tasks.assessment import Assessment
from kernelexp.services.tasks.cascade import Assignment
from kernelexp.system.toolchain import Toolchain

pytestmark = pytest.mark.xdist_group("tasks")

FOLDER = ROOT / "tests/projects/tasks/gpumode"
HARNESS = Path(kernelexp.__file__).parent / "services/tasks/formats/compare.py"
HEAD = "import os, sys, torch\n\n"
HONEST = "torch.cumsum(data[0], dim=1)"

CHEATS = {
    "a timer and a comparison patched behind the rule's back": (
        "vars(torch)['allclose'] = lambda *_, **__: True\n"
        "vars(torch.cuda)['Event'] = None\n"
        "def custom_kernel(data):\n    return torch.zeros_like(data[0])\n",
        "wrong_result",
    ),
    "the reference imported": (
        "from reference import check_implementation\n"
        "def custom_kernel(data):\n    return data[0]\n",
        "raised",
    ),
    "results kept by shape": (
        "kept = {}\n"
        "def custom_kernel(data):\n"
        f"    return kept.setdefault(data[0].shape, {HONEST})\n",
        "stale",
    ),
    "inputs recognised by their address": (
        "kept = {}\n"
        "def custom_kernel(data):\n"
        f"    return kept.setdefault(data[0].data_ptr(), {HONEST})\n",
        "stale",
    ),
    "answers of the published seeds": (
        "def custom_kernel(data):\n"
        "    n = data[0].shape[0]\n"
        "    x = torch.randn(n, n, generator=torch.Generator().manual_seed(1))\n"
        "    return torch.cumsum(x, dim=1)\n",
        "wrong_result",
    ),
    "not a number": (
        "def custom_kernel(data):\n    return torch.full_like(data[0], float('nan'))\n",
        "wrong_result",
    ),
    "memory that may hold the reference's result": (
        "def custom_kernel(data):\n    return torch.empty_like(data[0])\n",
        "wrong_result",
    ),
    "the inputs changed, so that any answer is right": (
        "def custom_kernel(data):\n    return data[0].zero_()\n",
        "wrong_result",
    ),
    "a tensor that equals everything": (
        "class Liar(torch.Tensor):\n"
        "    __eq__ = lambda self, other: True\n"
        "    __torch_function__ = classmethod(lambda *_, **__: True)\n"
        "def custom_kernel(data):\n"
        "    return torch.zeros_like(data[0]).as_subclass(Liar)\n",
        "",
    ),
    "an exit before the work, with a report of success": (
        "def custom_kernel(data):\n"
        "    open(sys.argv[3] + '/told.json', 'w').write('{\"built\": true}')\n"
        "    os._exit(0)\n",
        "wrong_result",
    ),
    "an endless loop": ("def custom_kernel(data):\n    while True: pass\n", "limit"),
}
"""A submission, and the reason that stops it; empty: any."""
QUICK = ("results kept by shape",)


def assess(text: str, tools: Toolchain, folder: Path, limit_s: float = 60) -> Assessment:
    path = folder / "submission.py"
    path.write_text(HEAD + text)
    wanted = Assignment(schedules=0, largest=16, limit_s=limit_s)
    return cascade.assess(FOLDER, path, tools, folder, wanted)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in CHEATS]
)
def test_a_cheat_is_stopped(name: str, tools: Toolchain, tmp_path: Path) -> None:
    text, reason = CHEATS[name]
    limit = 15 if reason == "limit" else 120
    assessed = assess(text, tools, tmp_path, limit)
    assert assessed.status in (Status.INCORRECT, Status.CRASHED, Status.TIMED_OUT), assessed
    assert assessed.score == 0.0
    assert assessed.reason == (reason or assessed.reason)


@pytest.mark.slow
def test_the_same_answer_without_a_cheat_is_right(tools: Toolchain, tmp_path: Path) -> None:
    assessed = assess(f"def custom_kernel(data):\n    return {HONEST}\n", tools, tmp_path)
    assert assessed.score == 1.0, assessed.sentence


ATTACKS = {
    "edits the harness": f"open({str(HARNESS)!r}, 'a').write('#')",
    "reads the reference's file": f"open({str(FOLDER / 'reference.py')!r}).read()",
    "looks for the problem's folder": "os.listdir(os.path.dirname(os.getcwd()))",
    "opens a connection": "__import__('socket').create_connection(('127.0.0.1', 9), 1)",
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
        f"def custom_kernel(data):\n    broken = []\n{tries}\n"
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
