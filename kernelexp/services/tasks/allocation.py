"""The library that puts torch's memory where emulated kernels reach it, made once per user."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from kernelexp.evidence import hostcompiler
from kernelexp.evidence.hostcompiler import HostCompiler
from kernelexp.evidence.programs import library
from kernelexp.model.errors import EnvironmentFault
from kernelexp.services.tasks.extensions import HEADERS

SOURCE = HEADERS / "allocator.cpp"
_WHAT = "torch's memory"
_FLAGS = ("-std=c++20", "-O1", "-fPIC", "-shared", "-w")


def find(root: Path, runtime: Path) -> Path:
    """EnvironmentFault where this machine can't make it."""
    compiler = hostcompiler.find(_WHAT, _FLAGS)
    key = hostcompiler.digest((SOURCE,), version("torch"), runtime.name)
    name = f"torch-memory-{key}.so"
    # A process that is confined to reading this file may not read another one that takes its place.
    return hostcompiler.library(
        root, name, _WHAT, lambda folder: _make(compiler, runtime, folder / name)
    )


def _make(compiler: HostCompiler, runtime: Path, path: Path) -> Path:
    torch = _torch()
    include = (str(SOURCE), f"-I{torch / 'include'}", *library.headers())
    link = (f"-L{torch / 'lib'}", "-lc10", f"-L{runtime}", "-lcudart")
    compiler.run(*include, *link, "-o", str(path))
    return path


def _torch() -> Path:
    import importlib.util

    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise EnvironmentFault("torch was not found: install kernelexp with its dependencies.")
    return Path(spec.origin).parent
