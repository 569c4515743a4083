"""Where a run ran: the project's git state and the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from kernelexp import toolchain
from kernelexp.errors import EnvironmentFault
from kernelexp.model import Git, Machine


def read_git(root: Path) -> Git | None:
    """Commit and whether files differ from it; None outside a repository or without git."""
    try:
        status = toolchain.run(
            ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=normal", "."],
            cwd=root,
        )
    except EnvironmentFault:
        return None
    if status.returncode != 0:
        return None
    lines = status.stdout.splitlines()
    commit = next((x.split()[2] for x in lines if x.startswith("# branch.oid")), "")
    if commit in ("", "(initial)"):
        return None  # no commit yet
    return Git(commit=commit, dirty=any(not line.startswith("#") for line in lines))


def read_machine() -> Machine:
    return Machine(
        host=platform.node(),
        cpu=_cpu_model(),
        cores=os.cpu_count() or 0,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        gpus=tuple(_gpu_models()),
    )


def _gpu_models() -> Iterator[str]:
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        for line in path.read_text().splitlines():
            if line.startswith("Model:"):
                yield line.partition(":")[2].strip()


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()  # aarch64 kernels name no model
