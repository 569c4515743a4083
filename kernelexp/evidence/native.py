"""The compiled part of the emulator, made once per machine by the host compiler."""

from __future__ import annotations

import hashlib
import platform
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from kernelexp import build, processes
from kernelexp.errors import EnvironmentFault

FOLDER = f"{build.CACHE}/native"
COMPILERS = ("g++", "c++", "clang++")
LIMIT_S = 60.0
SOURCES = Path(__file__).parent.parent / "emulator" / "compiled"
# None of them lets the compiler reorder or fuse additions.
FLAGS = ("-O3", "-shared", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")


def library(root: Path) -> str:
    """Path of the library, empty where this machine can't make it: Python computes the same."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return ""
    sources = sorted(SOURCES.glob("*.cpp"))
    key = hashlib.sha256()
    for file in (*sources, *sorted(SOURCES.glob("*.hpp"))):
        key.update(file.read_bytes())
    key.update(repr((FLAGS, compiler, platform.node(), platform.machine())).encode())
    path = root / FOLDER / f"{key.hexdigest()[:16]}.so"
    if path.is_file():
        return str(path)
    import filelock  # takes long to load, and the library is there on all but the first call

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The arms are executed side by side: the first makes it, and the others wait.
        with filelock.FileLock(path.with_suffix(".lock")):
            return str(path) if path.is_file() or _compile(compiler, sources, path) else ""
    except (OSError, EnvironmentFault, processes.TimedOut):
        return ""


def _compile(compiler: str, sources: Sequence[Path], path: Path) -> bool:
    temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
    try:
        argv = [compiler, *FLAGS, *map(str, sources), "-o", str(temporary)]
        if processes.run(argv, timeout_s=LIMIT_S).returncode != 0:
            return False
        temporary.replace(path)
        return True
    finally:
        temporary.unlink(missing_ok=True)
