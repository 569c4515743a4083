"""Sources to a program that is linked with the emulator's CUDA runtime."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.programs.library import HEADERS
from kernelexp.model.errors import BuildError
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain

LIMIT_S = 900.0


def link_flags(library: Path, arch: str, flags: Sequence[str] = ()) -> list[str]:
    """Returns the flags of nvcc besides a program's own.

    They ask for line tables, so that findings name source lines, and for images that are not
    compressed, which take no tool to read. The emulator's headers come last: where NVIDIA's are
    installed, those are included.
    """
    return [*_card_flags(flags, arch), *_besides(library)]


def _generates(arch: str, *, machine_code: bool) -> str:
    """Returns the value of -gencode: PTX of the card, which is executed. `-arch=sm_90a` would ask
    for PTX of any card too, which has no `wgmma`."""
    virtual = arch.replace("sm", "compute")
    codes = f"[{arch},{virtual}]" if machine_code else virtual
    return f"arch={virtual},code={codes}"


def _besides(library: Path) -> list[str]:
    return [
        *("-lineinfo", "-Xcompiler=-g1", "-compress-mode=none"),
        *("-cudart=shared", f"-L{library}", "-isystem", str(library / HEADERS)),
    ]


_GENERATES = ("-gencode", "--generate-code")
_NAMES_CARD = ("-arch", "--gpu-architecture", *_GENERATES)


def _card_flags(flags: Sequence[str], arch: str) -> list[str]:
    """Returns the flags that set the architecture beside a program's own: PTX, where these may ask
    for machine code alone."""
    if any(flag.startswith(_GENERATES) for flag in flags):
        return [f"-gencode={_generates(arch, machine_code=False)}"]
    if any(flag.startswith(_NAMES_CARD) for flag in flags):
        return []
    return [f"-gencode={_generates(arch, machine_code=True)}"]


def absent_package(words: str) -> str:
    """Says what to install for a header that nvcc does not find; "" for unknown packages."""
    if re.search(r"\bcurand\w*\.h: No such file", words):
        return "\ncuRAND's headers come with `pip install 'kernelexp[curand]'`"
    return ""


def compile_program(
    sources: Sequence[Path],
    flags: Sequence[str],
    tools: Toolchain,
    library: Path,
    arch: str,
    path: Path,
) -> str:
    """Leaves the program at `made`; nvcc's warnings. BuildError in nvcc's own words."""
    own = [] if any(flag.startswith("-O") for flag in flags) else ["-O2"]
    own += [] if any("-std" in flag for flag in flags) else ["-std=c++17"]
    argv = [tools.nvcc, *link_flags(library, arch, flags), *own, *flags]
    argv += [*map(str, sources), "-o", str(path)]
    done = processes.run(argv, timeout_s=LIMIT_S)
    if done.returncode != 0 or not path.is_file():
        words = (done.stderr or done.stdout).strip()
        raise BuildError(f"the program does not compile:\n{words}{absent_package(words)}")
    return done.stderr.strip()


class CompilerCall(msgspec.Struct, frozen=True, kw_only=True):
    """nvcc, as a program is compiled with it."""

    folder: Path
    arguments: tuple[str, ...]
    """Sources among them."""

    def compiles(self, source: Path) -> bool:
        wanted = source.resolve()
        return any((self.folder / argument).resolve() == wanted for argument in self.arguments)


_CALLS = "calls"
_WRAPPER = """#!/bin/sh
# nvcc, as kernelexp exec has a build use it: linked with the emulator's CUDA runtime.
printf '%s\\0' "$PWD" "$@" >> {calls}; printf '\\n' >> {calls}
case " $*" in *" -gencode"*|*" --generate-code"*) set -- "$@" {ptx};; esac
exec {nvcc} "$@" {flags}
"""


def build_environment(folder: Path, tools: Toolchain, library: Path, arch: str) -> dict[str, str]:
    """Has a build of the user's own (make, cmake) compile and link for the emulator.

    It finds an nvcc in `folder` that adds to the flags that it is given, as for compile_program().
    """
    wrapper = folder / "nvcc"
    ptx = f"-gencode={_generates(arch, machine_code=False)}"
    words = {"nvcc": shlex.quote(tools.nvcc), "flags": shlex.join(_besides(library)), "ptx": ptx}
    wrapper.write_text(_WRAPPER.format(calls=shlex.quote(str(folder / _CALLS)), **words))
    wrapper.chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ.get('PATH', '')}",
        "CUDACXX": str(wrapper),
        "NVCC": str(wrapper),
        "LD_LIBRARY_PATH": f"{library}:{os.environ.get('LD_LIBRARY_PATH', '')}",
    }


def calls(folder: Path) -> tuple[CompilerCall, ...]:
    """Reads the calls that a build made to the nvcc of build_environment(), in that order."""
    path = folder / _CALLS
    lines = path.read_text(errors="replace").split("\0\n") if path.is_file() else []
    words = [line.split("\0") for line in lines if line]
    return tuple(CompilerCall(folder=Path(at), arguments=tuple(rest)) for at, *rest in words)
