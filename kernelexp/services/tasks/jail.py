"""Confinement of a solution's processes: the strongest that this machine allows, tried before any
code of a solution runs."""

from __future__ import annotations

import functools
import glob
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kernelexp
import warpsim
from kernelexp.services.tasks.assessment import Confinement, Measure, Where
from kernelexp.system import toolchain
from kernelexp.system.process import confine, processes

_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
_MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/proc/self", "/proc/sys/vm", "/sys/devices/system")
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/zero", "/dev/shm")
_OF_GPU = ("/proc", "/sys", "/etc/nvidia", "/run/nvidia-persistenced")
"""What the driver's libraries read."""
_NAMES = "/proc/self"
"""Where they write the names of their threads, without which they don't start."""
_PACKAGES = [Path(module.__file__ or "").resolve().parent for module in (kernelexp, warpsim)]
_STRENGTHS: tuple[tuple[Measure, ...], ...] = (
    ("files", "sockets", "namespaces", "user"),
    ("files", "sockets", "namespaces"),
    ("files", "sockets", "user"),
    ("files", "sockets"),
    ("files",),
    ("sockets", "namespaces", "user"),
    ("sockets",),
)
"""The strongest first."""
_USERS = 1 << 30
"""From here on no user of a machine is found."""
_NEEDED = (
    "import ctypes, importlib.util as u, kernelexp.services.tasks.extensions; "
    "open(u.find_spec('torch').origin).close(); "
)
_USES_GPU = (
    "d = ctypes.CDLL('libcuda.so.1'); c = ctypes.c_void_p(); "
    "raise SystemExit(d.cuInit(0) or d.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0))"
)
PROBE_S = 60


@functools.cache
def strongest(where: Where) -> Confinement:
    """Returns the strongest confinement in which torch, and on a GPU the driver, still work.

    The emulator's clients keep their user: they reach its socket, and its library, by their names.
    """
    for measures in _STRENGTHS:
        tried = Confinement(where=where, measures=measures)
        if (where == "timed" or "user" not in measures) and _works(tried):
            return tried
    return Confinement(where=where)


def _works(tried: Confinement) -> bool:
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as name:
        place = Path(name)
        user = new_user(tried)
        hand(place, user)
        ordered = order(tried, [], place, [], PROBE_S, user)
        code = _NEEDED + (_USES_GPU if tried.where == "timed" else "")
        argv = command([sys.executable, "-P", "-c", code], ordered)
        environment = {"PYTHONPATH": str(packages(place)), "HOME": name, "TMPDIR": name}
        return processes.run(argv, env=environment, timeout_s=PROBE_S).returncode == 0


def new_user(confinement: Confinement) -> int:
    """One whom nothing belongs to; 0: the process keeps its own."""
    return _USERS + secrets.randbelow(_USERS) if "user" in confinement.measures else 0


def hand(folder: Path, user: int) -> None:
    """Gives a folder, with the folders in it, to a user; 0: leaves it."""
    if user:
        for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            os.chown(path, user, user)


def packages(folder: Path) -> Path:
    """A folder to import this package from: what lies beside it in a clone is not to be read."""
    place = folder / ".packages"
    place.mkdir(exist_ok=True)
    for package in _PACKAGES:
        link = place / package.name
        if not link.is_symlink():
            link.symlink_to(package)
    return place


def order(
    confinement: Confinement,
    read: Sequence[Path],
    write: Path,
    output: Sequence[Path],
    cpu_s: float,
    user: int = 0,
) -> dict[str, Any]:
    """Returns what confine.apply() takes: output and errors go to the two files of `output`."""
    gpu = confinement.where == "timed"
    installed = {sys.prefix, sys.base_prefix, *_compiler_homes(), *(_OF_GPU if gpu else ())}
    cards = [_NAMES, *glob.glob("/dev/nvidia*")] if gpu else []
    return {
        **{name: name in confinement.measures for name in ("files", "sockets", "namespaces")},
        "read": [*_SYSTEM, *_MACHINE, *sorted(installed), *map(str, [*_PACKAGES, *read])],
        "write": [*_DEVICES, *cards, os.path.realpath(write)],
        "output": [os.path.realpath(path) for path in output],
        "limits": {"cpu_s": int(cpu_s) + 1, "core_bytes": 0},
        "user": user,
    }


def command(argv: Sequence[str], ordered: dict[str, Any]) -> list[str]:
    """`argv` confined."""
    return [sys.executable, "-I", "-S", confine.__file__, json.dumps(ordered), *argv]


def _compiler_homes() -> set[str]:
    """Returns where the host's compilers are installed; nvcc is what the caller lets it read."""
    named = [os.environ.get(name, "") for name in ("CC", "CXX")]
    found = map(shutil.which, [toolchain.host_compiler(), *named, "gcc", "g++", "c++", "ninja"])
    programs = {path for path in found if path}
    programs |= {os.path.realpath(path) for path in programs}
    return {str(Path(path).parent.parent) for path in programs} - {"/", str(Path.home())}
