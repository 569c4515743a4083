"""The library that the driver loads into a program to capture its launches, made by the host
compiler once per user: it is compiled against the CUPTI that is installed."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kernelexp.evidence import hostcompiler
from kernelexp.evidence.hostcompiler import HostCompiler
from kernelexp.evidence.programs import library
from kernelexp.model.errors import EnvironmentFault
from kernelexp.system import toolchain

VARIABLE = "CUDA_INJECTION64_PATH"
"""Names the library to the driver."""
FOLDER = "KERNELEXP_CAPTURE"
"""Names the folder to the library: what it is to do is there, and what it did."""
SOURCES = Path(__file__).parent / "cupti"
_WHAT = "what captures launches"
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall")
_RECORD = re.compile(r"^}\s*(CUpti_ActivityKernel\d+);", re.M)
"""Of a kernel's times, in cupti_activity.h: older ones have a header of their own."""


class Cupti(msgspec.Struct, frozen=True, kw_only=True):
    """CUPTI as it is installed."""

    include: Path
    library: Path
    record: str
    """What the records of kernels are called in this version."""


def make(root: Path) -> Path:
    """The library; EnvironmentFault where there is no driver, no CUPTI or no compiler."""
    _require_driver()
    cupti = find()
    compiler = hostcompiler.find(_WHAT, _FLAGS)
    files = (*sorted(SOURCES.iterdir()), Path(compiler.program), cupti.library, Path(__file__))
    name = f"captor-{hostcompiler.digest(files, str(cupti.library))}.so"
    return hostcompiler.library(
        root, name, _WHAT, lambda folder: compile_to(compiler, cupti, folder / name)
    )


def find() -> Cupti:
    """The package's, else that of nvcc's toolkit; EnvironmentFault where there is none."""
    for include, libraries in _places():
        header = include / "cupti_activity.h"
        libraries_there = sorted(libraries.glob("libcupti.so.[0-9]*"))
        record = _RECORD.search(header.read_text("utf-8")) if header.is_file() else None
        if record and libraries_there:
            return Cupti(include=include, library=libraries_there[0], record=record[1])
    raise EnvironmentFault(
        "capturing launches needs CUPTI: pip install 'kernelexp[capture]' (nvidia-cuda-cupti)."
    )


def _places() -> Iterator[tuple[Path, Path]]:
    """Folders of headers and of libraries."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for folder in sorted(Path(place).glob("cu*")):
            yield folder / "include", folder / "lib"
    toolkit = toolchain.locate_nvcc().parent.parent
    yield toolkit / "extras/CUPTI/include", toolkit / "extras/CUPTI/lib64"
    yield toolkit / "include", toolkit / "lib64"


def _require_driver() -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise EnvironmentFault(
            "this machine has no NVIDIA driver (libcuda.so.1): launches are captured on a GPU; "
            "without one, kernelexp exec runs a program, and adopt --from-program takes its "
            "launches."
        ) from None


def compile_to(compiler: HostCompiler, cupti: Cupti, path: Path) -> Path:
    """EnvironmentFault in the compiler's words where it fails."""
    include = [f"-I{cupti.include}", *library.headers(), f"-DKERNEL_RECORD={cupti.record}"]
    link = (str(cupti.library), f"-Wl,-rpath,{cupti.library.parent}", "-ldl", "-Wl,--no-undefined")
    objects = compiler.objects(sorted(SOURCES.glob("*.cpp")), path.parent, *include)
    compiler.run("-shared", *objects.values(), *link, "-o", str(path))
    return path
