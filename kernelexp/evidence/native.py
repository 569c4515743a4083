"""The compiled part of the emulator, made by the host compiler: once per user, for all projects.

It is compiled for the processor that it runs on, and lies in the user's cache folder, under a hash
of sources, compiler, flags and processor: machines may share a home. Where that folder can't be
used, as with a home that is read-only, it lies in the project's own cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelexp.evidence import build
from kernelexp.model.errors import EnvironmentFault
from kernelexp.system import usercache, wholefile
from kernelexp.system.process import processes
from warpsim import compiled

COMPILERS = ("g++", "c++", "clang++")
LIMIT_S = 180.0
SOURCES = Path(compiled.__file__).parent
PROCESSOR = Path("/proc/cpuinfo")
_TUNED = {"x86_64": ("-march=native", "-mprefer-vector-width=512")}
# None of them lets the compiler reorder or fuse additions.
FLAGS = (
    *("-O3", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
    *_TUNED.get(platform.machine(), ("-mcpu=native",)),
)


def library(root: Path) -> str:
    """Path of the library, empty where this machine can't make it: Python computes the same."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return ""
    sources = sorted(SOURCES.glob("*.cpp"))
    name = f"{_key(compiler, sources)}.so"
    usable = folders(root)
    for folder in usable:
        if (folder / name).is_file():
            return str(folder / name)
    paths = (_make(compiler, sources, folder / name) for folder in usable)
    return next(filter(None, paths), "")


def _key(compiler: str, sources: Sequence[Path]) -> str:
    key = hashlib.sha256()
    for file in (*sources, *sorted(SOURCES.glob("*.hpp")), Path(compiler)):
        key.update(file.read_bytes())
    machine = (platform.machine(), _extensions(), os.confstr("CS_GNU_LIBC_VERSION"))
    key.update(repr((FLAGS, machine)).encode())
    return key.hexdigest()[:16]


def _extensions() -> str:
    """The extensions of its instruction set that this processor has, as Linux lists them."""
    with PROCESSOR.open() as lines:  # of the first of them: Linux takes a while to list all
        return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def folders(root: Path) -> list[Path]:
    """Returns the folders where compiled code may be kept and executed, the user's first."""
    return [folder for folder in _folders(root) if not _forbids_execution(folder)]


def _folders(root: Path) -> Iterator[Path]:
    """Yields the folders where the library may lie, the user's first."""
    if shared := usercache.folder():
        yield shared / "native"
    yield root / build.CACHE / "native"


def _forbids_execution(folder: Path) -> bool:
    while not folder.exists():
        folder = folder.parent
    return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)


def _make(compiler: str, sources: Sequence[Path], path: Path) -> str:
    """Compiles the library, or waits for another process that does; empty where that fails, for
    want of space or permission too."""
    import filelock  # takes long to load, and the library is there on all but the first call

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with filelock.FileLock(path.with_suffix(".lock")):
            return str(path) if path.is_file() or _compile(compiler, sources, path) else ""
    except (OSError, EnvironmentFault, processes.TimedOut):
        return ""


def announce(what: str) -> None:
    """Says on standard error why a first command takes long; a pipe, too, is read meanwhile."""
    with contextlib.suppress(OSError, AttributeError):  # nobody reads it, or it is closed
        sys.stderr.write(f"compiling {what}, once for this machine: a minute or so\n")
        sys.stderr.flush()


def _compile(compiler: str, sources: Sequence[Path], path: Path) -> bool:
    for left in path.parent.glob("*.tmp"):  # by a process that was killed
        if time.time() - left.stat().st_mtime > 2 * LIMIT_S:
            shutil.rmtree(left, ignore_errors=True)
    announce("the emulator")
    with tempfile.TemporaryDirectory(suffix=".tmp", dir=path.parent) as folder:

        def run(*arguments: str) -> bool:
            argv = [compiler, *FLAGS, *arguments]
            return processes.run(argv, timeout_s=LIMIT_S).returncode == 0

        def compile_one(source: Path) -> bool:
            return run("-c", str(source), "-o", f"{folder}/{source.stem}.o")

        # Beside each other, as one of them takes half of the time of all.
        largest_first = sorted(sources, key=lambda source: -source.stat().st_size)
        if not all(processes.parallel(compile_one, largest_first)):
            return False
        whole = Path(folder) / path.name
        objects = [f"{folder}/{source.stem}.o" for source in sources]
        if not run("-shared", *objects, "-o", str(whole)):
            return False
        wholefile.sync(whole)
        whole.replace(path)
        return True
