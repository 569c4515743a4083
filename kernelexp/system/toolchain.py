"""The CUDA compiler and the programs that read what it made: which ones, and which version."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.system.process import processes

NVCC_VARIABLE = "KERNELEXP_NVCC"
INCLUDE = "variants/include"
"""The folder of the headers that the kernels of a project share, from its root."""
HEADERS = Path(__file__).parent / "include"
"""The headers that come with the package; every build finds them after the project's own."""


class Toolchain(msgspec.Struct, frozen=True, kw_only=True):
    """One CUDA compiler with the tools that read what it made, as absolute paths."""

    nvcc: str
    ptxas: str
    cuobjdump: str
    version: str
    """The compiler's full version, such as 13.0.88."""
    confined_to: str = ""
    """The folder that the sources must lie in, which is all that is read besides the compiler, the
    package's headers and the system's programs; empty: whatever the source includes is read."""


def find(nvcc: str | None, cache: Path) -> Toolchain:
    """The compiler to use: `nvcc`, else $KERNELEXP_NVCC, else the dependency, else the PATH's.

    Its version is kept in the folder `cache`, so that a run which builds nothing starts no nvcc.
    """
    compiler = locate_nvcc(nvcc)
    return Toolchain(
        nvcc=str(compiler),
        ptxas=str(_beside(compiler, "ptxas")),
        cuobjdump=str(_beside(compiler, "cuobjdump")),
        version=read_version(compiler, cache / "version.json"),
    )


def wheel_bin() -> Path | None:
    """The folder of programs that the compiler's wheels install, where they are installed."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec else []:
        for folder in sorted(Path(root).glob("cu*/bin"), reverse=True):
            if (folder / "nvcc").is_file():
                return folder
    return None


def locate_nvcc(option: str | None = None) -> Path:
    """Returns nvcc's path, without what it lies behind; UsageError, EnvironmentFault."""
    wanted = option or os.environ.get(NVCC_VARIABLE)
    if wanted:
        path = shutil.which(wanted)
        if path is None:
            name = "--nvcc" if option else NVCC_VARIABLE
            raise UsageError(f"{name} names {wanted}, which is not a program that can be run.")
        return Path(path).resolve()
    wheels = wheel_bin()
    if wheels is not None:
        return wheels / "nvcc"
    on_path = shutil.which("nvcc")
    if on_path is None:
        raise EnvironmentFault(
            "no CUDA compiler was found: install kernelexp with its dependencies "
            f"(nvidia-cuda-nvcc), or name an nvcc with --nvcc or {NVCC_VARIABLE}."
        )
    return Path(on_path).resolve()


def _beside(compiler: Path, tool: str) -> Path:
    """`tool` of the compiler's own folder, else of the wheels, else of the PATH."""
    folders = [compiler.parent]
    wheels = wheel_bin()
    if wheels is not None:
        folders.append(wheels)
    path = shutil.which(tool, path=os.pathsep.join(map(str, folders))) or shutil.which(tool)
    if path is None:
        raise EnvironmentFault(f"{tool} was found neither next to {compiler} nor on the PATH.")
    return Path(path)


def host_compiler() -> str:
    """The compiler that nvcc preprocesses with; EnvironmentFault where there is none."""
    named = os.environ.get("NVCC_CCBIN", "gcc")
    program = str(Path(named) / "gcc") if Path(named).is_dir() else named
    if shutil.which(program) is None:
        raise EnvironmentFault(
            f"nvcc needs a host compiler to preprocess with, and there is no {program}: install "
            "one (Debian, Ubuntu: apt install g++), or name another in NVCC_CCBIN."
        )
    return program


def read_version(compiler: Path, cache: Path) -> str:
    """The version of an nvcc, such as 13.0.88; that of a program is kept in the file `cache`.

    A script's is asked for each time: what it runs may change while the script stays as it is.
    """
    status = compiler.stat()
    key = f"{compiler}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
    with compiler.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return compiler_version(compiler)
    try:
        known = json.loads(cache.read_text())[key]
        if isinstance(known, str):
            return known
    except (OSError, ValueError, LookupError, TypeError):
        pass
    version = compiler_version(compiler)
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(json.dumps({key: version}))  # half of it is as none
    except OSError:
        pass  # it is asked again the next time
    return version


def compiler_version(compiler: Path) -> str:
    """Returns the version that `nvcc --version` says, as 13.0.88; EnvironmentFault if it says
    none."""
    done = processes.run([str(compiler), "--version"], timeout_s=60)
    match = re.search(r"\bV(\d+\.\d+\.\d+)", done.stdout)
    if done.returncode != 0 or match is None:
        raise EnvironmentFault(f"{compiler} --version does not answer like nvcc.")
    return match.group(1)


TORCH, PYTHON = "{torch}", "{python}"
"""What experiments.yaml writes for the folders where PyTorch and Python have their headers."""


def torch_headers() -> Path | None:
    """Returns the headers of the PyTorch that is installed beside this package."""
    spec = importlib.util.find_spec("torch")
    folder = Path(spec.origin).parent / "include" if spec and spec.origin else None
    return folder if folder and folder.is_dir() else None


def python_headers() -> Path:
    return Path(sysconfig.get_path("include"))


def expanded(flags: Sequence[str]) -> tuple[str, ...]:
    """Flags with these folders in them; EnvironmentFault where PyTorch is not installed."""
    if not any(TORCH in flag or PYTHON in flag for flag in flags):
        return tuple(flags)
    folder = torch_headers()
    if folder is None and any(TORCH in flag for flag in flags):
        raise EnvironmentFault(f"flags name {TORCH}, the headers of PyTorch: pip install torch.")
    return tuple(
        flag.replace(TORCH, str(folder)).replace(PYTHON, str(python_headers())) for flag in flags
    )


_PREFIX = "kx_"


def exports_of(path: Path) -> dict[str, int]:
    """The figures that a compiled source exports: its constants kx_NAME of 4 bytes, by NAME."""
    from elftools.elf.elffile import ELFFile

    exports = {}
    with path.open("rb") as file:
        elf: Any = ELFFile(file)
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            if symbol.name.startswith(_PREFIX) and symbol["st_size"] == 4:
                section = elf.get_section(symbol["st_shndx"])
                first = symbol["st_value"]
                # A figure of 0 is placed in .nv.global, which has no bytes in the file.
                data = b"" if section["sh_type"] == "SHT_NOBITS" else section.data()
                value = int.from_bytes(data[first : first + 4], "little")
                exports[symbol.name.removeprefix(_PREFIX)] = value
    return dict(sorted(exports.items()))
