"""The command that starts a solution's process: it can open its own folders and what it is run
with, and write to one folder only."""

from __future__ import annotations

import functools
import glob
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import kernelexp
import warpsim
from kernelexp.system import toolchain
from kernelexp.system.process import confine, processes

_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
_MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/proc/self", "/proc/sys/vm", "/sys/devices/system")
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/zero", "/dev/shm")
_OF_GPU = ("/proc", "/sys", "/etc/nvidia", "/run/nvidia-persistenced")
"""What the driver's libraries read."""
_PACKAGES = [Path(module.__file__ or "").resolve().parent for module in (kernelexp, warpsim)]


def can_confine() -> bool:
    return confine.version() > 0


@functools.cache
def can_confine_gpu() -> bool:
    """Whether a confined process can use the GPU, which takes more than this module may know."""
    if not can_confine():
        return False
    code = "import ctypes; d = ctypes.CDLL('libcuda.so.1'); c = ctypes.c_void_p(); "
    code += "raise SystemExit(d.cuInit(0) or d.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0))"
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as place:
        argv = command([sys.executable, "-c", code], [], Path(place), [], 60, gpu=True)
        return processes.run(argv, timeout_s=60).returncode == 0


def packages(folder: Path) -> Path:
    """A folder to import this package from: what lies beside it in a clone is not to be read."""
    place = folder / ".packages"
    place.mkdir(exist_ok=True)
    for package in _PACKAGES:
        link = place / package.name
        if not link.is_symlink():
            link.symlink_to(package)
    return place


def command(
    argv: Sequence[str],
    read: Sequence[Path],
    write: Path,
    output: Sequence[Path],
    cpu_s: float,
    *,
    gpu: bool = False,
) -> list[str]:
    """`argv` confined; its standard output and errors go to the two files of `output`."""
    installed = {sys.prefix, sys.base_prefix, *_compiler_homes(), *(_OF_GPU if gpu else ())}
    cards = glob.glob("/dev/nvidia*") if gpu else []
    order = {
        "read": [*_SYSTEM, *_MACHINE, *sorted(installed), *map(str, [*_PACKAGES, *read])],
        "write": [*_DEVICES, *cards, os.path.realpath(write)],
        "output": [os.path.realpath(path) for path in output],
        "limits": {"cpu_s": int(cpu_s) + 1, "core_bytes": 0},
    }
    return [sys.executable, "-I", "-S", confine.__file__, json.dumps(order), *argv]


def _compiler_homes() -> list[str]:
    """Where the host's compiler was installed; nvcc is what the caller lets it read."""
    host = shutil.which(toolchain.host_compiler())
    return [str(Path(os.path.realpath(host)).parent.parent)] if host else []
