"""A run that is ended during a build leaves no process and no half of anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from compilers import Plant
from support import TOKEN, alive, wait_until

RUN = [sys.executable, "-m", "kernelexp", "build", "scale@sm_90a", "scale@sm_90a:width=2"]
slow = pytest.mark.slow


def start(scale: Path, planted: Plant) -> tuple[subprocess.Popen[str], str]:
    """A build whose cicc hangs, with a child in a session of its own, as soon as it does."""
    tools = planted("nvvm/bin/cicc", f"setsid sleep 1000 & echo > {scale}/hangs; sleep 1000")
    token = uuid.uuid4().hex
    process = subprocess.Popen(
        [*RUN, "--nvcc", tools.nvcc],
        cwd=scale,
        env={**os.environ, TOKEN: token},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until((scale / "hangs").exists)
    return process, token


def is_clean(scale: Path) -> bool:
    """Whether the next run builds, and leaves nothing that is not a build."""
    subprocess.run(RUN, cwd=scale, check=True, stdout=subprocess.DEVNULL)
    names = [path.name for path in (scale / ".kernelexp/build").iterdir()]
    return not [name for name in names if name.startswith("tmp")] and len(names) == 4


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=slow),
        pytest.param(signal.SIGHUP, marks=slow),
    ],
)
def test_a_signal_ends_a_build_with_its_code_and_all_its_processes(
    scale: Path, planted: Plant, number: signal.Signals
) -> None:
    process, token = start(scale, planted)
    process.send_signal(number)
    assert process.communicate(timeout=60)[1] == "interrupted\n"
    assert process.returncode == 128 + number
    wait_until(lambda: not alive(token))
    assert not list((scale / ".kernelexp/build").glob("tmp*"))
    assert is_clean(scale)


def test_a_build_that_is_killed_leaves_no_process_and_the_next_one_is_right(
    scale: Path, planted: Plant
) -> None:
    process, token = start(scale, planted)
    process.kill()
    process.communicate()
    wait_until(lambda: not alive(token))
    assert list((scale / ".kernelexp/build").glob("tmp*"))
    assert is_clean(scale)


@slow
@pytest.mark.parametrize("moment", range(12))
def test_a_build_that_is_killed_at_any_moment_is_followed_by_a_right_one(
    scale: Path, moment: int
) -> None:
    token = uuid.uuid4().hex
    process = subprocess.Popen(
        RUN, cwd=scale, env={**os.environ, TOKEN: token}, stdout=subprocess.DEVNULL
    )
    try:
        process.wait(0.25 * moment)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    wait_until(lambda: not alive(token))
    assert is_clean(scale)
