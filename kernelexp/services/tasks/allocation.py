"""The library that puts torch's memory where emulated kernels reach it, made once per user."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

import filelock

from kernelexp.evidence import native
from kernelexp.evidence.programs import library
from kernelexp.model.errors import EnvironmentFault
from kernelexp.services.tasks.extensions import HEADERS
from kernelexp.system.process import processes

SOURCE = HEADERS / "allocator.cpp"
LIMIT_S = 180.0


def find(root: Path, runtime: Path) -> Path:
    """EnvironmentFault where this machine can't make it."""
    key = hashlib.sha256(
        SOURCE.read_bytes() + version("torch").encode() + runtime.name.encode()
    ).hexdigest()[:16]
    for folder in native.folders(root):
        path = folder / f"torch-memory-{key}.so"
        if path.is_file():
            return path
    compiler = next(filter(None, map(shutil.which, native.COMPILERS)), None)
    if compiler is None:
        raise EnvironmentFault(
            "torch's memory needs a C++ compiler: install one (Debian, Ubuntu: apt install g++)."
        )
    folder = native.folders(root)[0]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"torch-memory-{key}.so"
    # A process that is confined to reading this file may not read another one that takes its place.
    with filelock.FileLock(path.with_suffix(".lock")):
        return path if path.is_file() else _make(compiler, runtime, path)


def _make(compiler: str, runtime: Path, path: Path) -> Path:
    torch = _torch()
    argv = [compiler, "-std=c++20", "-O1", "-fPIC", "-shared", "-w", str(SOURCE)]
    argv += [f"-I{torch / 'include'}", *library.headers()]
    argv += [f"-L{torch / 'lib'}", "-lc10", f"-L{runtime}", "-lcudart"]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder) / path.name
        done = processes.run([*argv, "-o", str(part)], timeout_s=LIMIT_S)
        if done.returncode != 0:
            raise EnvironmentFault(f"torch's memory does not compile: {done.stderr[-2000:]}")
        os.replace(part, path)
    return path


def _torch() -> Path:
    import importlib.util

    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise EnvironmentFault("torch was not found: install kernelexp with its dependencies.")
    return Path(spec.origin).parent
