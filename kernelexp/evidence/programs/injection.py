"""The library that the driver loads into a program to capture its launches, made by the host
compiler once per user: it is compiled against the CUPTI that is installed."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kernelexp.evidence import native
from kernelexp.evidence.programs import library
from kernelexp.model.errors import EnvironmentFault
from kernelexp.system import toolchain, wholefile
from kernelexp.system.process import processes

VARIABLE = "CUDA_INJECTION64_PATH"
"""Names the library to the driver."""
FOLDER = "KERNELEXP_CAPTURE"
"""Names the folder to the library: what it is to do is there, and what it did."""
SOURCES = Path(__file__).parent / "cupti"
LIMIT_S = 180.0
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
    compiler = next(filter(None, map(shutil.which, native.COMPILERS)), None)
    if compiler is None:
        raise EnvironmentFault(
            "what captures launches has to be compiled, and there is no C++ compiler: install one "
            "(Debian, Ubuntu: apt install g++)."
        )
    name = f"captor-{_key(compiler, cupti)}.so"
    reasons = []
    for folder in native.folders(root):
        try:
            return _made(compiler, cupti, folder / name)
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror}")
    raise EnvironmentFault(f"what captures launches can't be written ({'; '.join(reasons)}).")


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


def _key(compiler: str, cupti: Cupti) -> str:
    key = hashlib.sha256()
    for file in (*sorted(SOURCES.iterdir()), Path(compiler), cupti.library, Path(__file__)):
        key.update(file.read_bytes())
    key.update(str(cupti.library).encode())
    return key.hexdigest()[:16]


def _made(compiler: str, cupti: Cupti, path: Path) -> Path:
    import filelock

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with filelock.FileLock(path.with_suffix(".lock")):
        if not path.is_file():
            with tempfile.TemporaryDirectory(suffix=".tmp", dir=path.parent) as place:
                whole = Path(place) / path.name
                compile_to(compiler, cupti, whole)
                wholefile.sync(whole)
                whole.replace(path)
    return path


def compile_to(compiler: str, cupti: Cupti, path: Path) -> None:
    """EnvironmentFault in the compiler's words where it fails."""
    include = [f"-I{cupti.include}", *library.headers()]
    link = (str(cupti.library), f"-Wl,-rpath,{cupti.library.parent}", "-ldl", "-Wl,--no-undefined")

    def run(*arguments: str) -> None:
        done = processes.run([compiler, *_FLAGS, *arguments], timeout_s=LIMIT_S)
        if done.returncode != 0:
            raise EnvironmentFault(
                f"{compiler} does not compile what captures launches: {done.stderr.strip()[:2000]}"
            )

    def compile_one(source: Path) -> None:
        record = f"-DKERNEL_RECORD={cupti.record}"
        run(*include, record, "-c", str(source), "-o", str(path.with_name(f"{source.stem}.o")))

    sources = sorted(SOURCES.glob("*.cpp"))
    processes.parallel(compile_one, sources)
    objects = [str(path.with_name(f"{source.stem}.o")) for source in sources]
    run("-shared", *objects, *link, "-o", str(path))
