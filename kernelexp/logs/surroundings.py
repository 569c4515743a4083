"""Surroundings of a run: the project's git state and the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.measurement import Device
from kernelexp.model.record import Git, HostMachine
from kernelexp.system.device import list_gpus
from kernelexp.system.process import processes

GIT_LIMIT_S = 10.0
_STATUS = (
    *("git", "status", "--porcelain=v2", "--branch", "--untracked-files=normal"),
    *(".", ":(exclude)logs", ":(exclude).kernelexp"),
)


def read_git(root: Path) -> Git | None:
    """Commit and whether files differ from it; None where git does not say in a few seconds.

    Records, the log and the cache do not count: a run is not made from them, and writes them.
    """
    try:
        status = processes.run(
            [*_STATUS, ".", ":(exclude)logs", ":(exclude).kernelexp"],
            cwd=root,
            timeout_s=GIT_LIMIT_S,
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


def read_committed(root: Path, commit: str, name: str) -> bytes | None:
    """A file of the project as a commit has it; None where git does not have it."""
    argv = ["git", "show", f"{commit}:./{name}"]
    try:
        done = processes.run(argv, cwd=root, timeout_s=GIT_LIMIT_S)
    except EnvironmentFault:
        return None
    return done.output if done.returncode == 0 else None


def read_machine() -> HostMachine:
    return HostMachine(
        host=platform.node(),
        cpu=_cpu_model(),
        cores=os.cpu_count() or 0,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        gpus=tuple(_gpu_models()),
    )


def cpu(arch: str) -> Device:
    """This machine's CPU as what programs are timed on that need no GPU; `arch` is theirs."""
    return Device(
        name=_cpu_model(),
        uuid=f"cpu-{platform.node()}",
        arch=arch,
        driver="",
        cuda="",
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        power_limit_w=0.0,
        sm_clock_max_mhz=0,
        memory_clock_max_mhz=0,
    )


def _gpu_models() -> Iterator[str]:
    try:
        yield from (gpu.name for gpu in list_gpus())
    except EnvironmentFault:
        return


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()  # aarch64 kernels name no model
