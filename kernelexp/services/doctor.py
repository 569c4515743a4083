"""Inventory of this machine: what it has, in which version, and what that allows."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.model import errors
from kernelexp.model.errors import EnvironmentFault, KernelexpError
from kernelexp.system import toolchain
from kernelexp.system.device import list_gpus
from kernelexp.system.process import processes


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the machine."""

    name: str
    found: str
    """Version and place; empty where it is missing."""
    allows: str
    """What it is for, and where it is missing what to do."""
    needed: bool = False
    """Without it no variant is built."""


def examine(nvcc: str | None, start: Path) -> list[Fact]:
    """All the facts; the missing ones are facts too."""
    return [
        _compiler(nvcc, start),
        _host_compiler(),
        *_gpus(),
        _fact("ncu", _ncu, "profiles on a GPU", "part of the CUDA toolkit and of Nsight Compute"),
        _fact("torch", _torch, "inputs, references and peers", "pip install torch"),
        _fact("git", _git, "puts the commit into every record", "install git"),
    ]


def exit_code(facts: Sequence[Fact]) -> int:
    """ENVIRONMENT where something is missing that a build needs."""
    missing = any(fact.needed and not fact.found for fact in facts)
    return errors.ENVIRONMENT if missing else errors.OK


def _fact(
    name: str, look: Callable[[], str], allows: str, cure: str, *, needed: bool = False
) -> Fact:
    try:
        result = look()
    except (KernelexpError, TimeoutError, OSError) as error:
        result, cure = "", str(error)
    words = allows if result else f"{allows}: {cure}"
    return Fact(name=name, found=result, allows=words, needed=needed)


def _compiler(nvcc: str | None, start: Path) -> Fact:
    def look() -> str:
        cache = project.find(start).parent / build.CACHE
        tools = toolchain.find(nvcc, cache)
        return f"{tools.version} ({_shorten(tools.nvcc)})"

    return _fact("nvcc", look, "compiles variants", "pip install nvidia-cuda-nvcc", needed=True)


def _host_compiler() -> Fact:
    return _fact(
        "host compiler",
        lambda: _version(os.environ.get("NVCC_CCBIN", "gcc"), r"(\d+\.\d+\.\d+)"),
        "nvcc preprocesses with it",
        "install g++ (Debian, Ubuntu: apt install g++)",
        needed=True,
    )


def _ncu() -> str:
    return _version("ncu", r"Version ([\d.]+)")


def _git() -> str:
    return _version("git", r"version ([\d.]+)")


def _torch() -> str:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _gpus() -> Iterator[Fact]:
    """A fact for each GPU, with the driver; one that says why there is none."""
    try:
        gpus = list_gpus()
        why = "none is in this machine"
    except EnvironmentFault as fault:
        gpus, why = (), str(fault)
    for index, gpu in enumerate(gpus):
        memory = f"{gpu.memory_bytes / 2**30:.0f} GiB"
        yield Fact(
            name=f"GPU {index}",
            found=f"{gpu.name}, {memory}, driver {gpu.driver} (CUDA {gpu.cuda})",
            allows=f"times variants for {gpu.arch}",
        )
    if not gpus:
        yield Fact(name="GPU", found="", allows=f"times variants: {why}")


def _version(program: str, pattern: str) -> str:
    path = shutil.which(program)
    if path is None:
        return ""
    match = re.search(pattern, processes.run([path, "--version"], timeout_s=20).stdout)
    return f"{match.group(1)} ({path})" if match else path


def _shorten(path: str) -> str:
    """A path in the user's home with a tilde."""
    home = str(Path.home())
    return path.replace(home, "~", 1) if home != "/" else path
