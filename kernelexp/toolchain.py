"""The compiler and its readers, and which version; the one place that starts processes."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.errors import EnvironmentFault, UsageError

NVCC_VARIABLE = "KERNELEXP_NVCC"


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """A process that has ended."""

    returncode: int
    stdout: str
    stderr: str


class Toolchain(msgspec.Struct, frozen=True, kw_only=True):
    """One CUDA compiler with the tools that read what it made, as absolute paths."""

    nvcc: str
    ptxas: str
    cuobjdump: str
    ninja: str
    version: str
    """The compiler's full version, such as 13.0.88."""


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    stdin: str | None = None,
    on_line: Callable[[str], None] | None = None,
) -> Completed:
    """Runs a process to its end; on any exception its whole process group is killed.

    `on_line` gets each line of standard output as it comes (stdin and timeout_s are not used then).
    Raises EnvironmentFault if the program can't be started, TimeoutError past timeout_s.
    """
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**os.environ, **env} if env else None,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if on_line else subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise EnvironmentFault(f"{argv[0]} can't be started: {error.strerror}.") from None
    with process:
        try:
            if on_line:
                stdout, stderr = _stream(process, on_line), ""
            else:
                stdout, stderr = process.communicate(stdin, timeout_s)
        except BaseException as error:
            _kill_group(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(f"{argv[0]} ran past {timeout_s:g} s") from None
            raise
    return Completed(returncode=process.returncode, stdout=stdout, stderr=stderr)


def _stream(process: subprocess.Popen[str], on_line: Callable[[str], None]) -> str:
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        on_line(line.rstrip("\n"))
    process.wait()
    return "".join(lines)


def _kill_group(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def find(nvcc: str | None, cache: Path) -> Toolchain:
    """The compiler to use: `nvcc`, else $KERNELEXP_NVCC, else the dependency, else the PATH's.

    Its version is kept in the folder `cache`, so that a run which builds nothing starts no nvcc.
    """
    compiler = _locate_nvcc(nvcc)
    return Toolchain(
        nvcc=str(compiler),
        ptxas=str(_beside(compiler, "ptxas")),
        cuobjdump=str(_beside(compiler, "cuobjdump")),
        ninja=locate_ninja(),
        version=_cached_version(compiler, cache / "compilers.json"),
    )


def wheel_bin() -> Path | None:
    """The folder of programs that the compiler's wheels install, where they are installed."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec else []:
        for folder in sorted(Path(root).glob("cu*/bin"), reverse=True):
            if (folder / "nvcc").is_file():
                return folder
    return None


def _locate_nvcc(option: str | None) -> Path:
    asked = option or os.environ.get(NVCC_VARIABLE)
    if asked:
        found = shutil.which(asked)
        if found is None:
            name = "--nvcc" if option else NVCC_VARIABLE
            raise UsageError(f"{name} names {asked}, which is not a program that can be run.")
        return Path(found).resolve()
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
    found = shutil.which(tool, path=os.pathsep.join(map(str, folders))) or shutil.which(tool)
    if found is None:
        raise EnvironmentFault(f"{tool} was not found beside {compiler} nor on the PATH.")
    return Path(found)


@functools.cache
def locate_ninja() -> str:
    """The ninja to build with: the dependency's, else the PATH's."""
    beside_python = Path(sys.executable).parent / "ninja"
    if beside_python.is_file():
        return str(beside_python)
    found = shutil.which("ninja")
    if found is None:
        raise EnvironmentFault("ninja was not found: install kernelexp with its dependencies.")
    return found


def require_host_compiler() -> None:
    """EnvironmentFault where nvcc would not find the compiler that it preprocesses with."""
    if not (os.environ.get("NVCC_CCBIN") or shutil.which("gcc")):
        raise EnvironmentFault(
            "nvcc needs a host compiler to preprocess with, and there is no gcc: install one "
            "(Debian, Ubuntu: apt install g++), or name another in NVCC_CCBIN."
        )


def _cached_version(compiler: Path, cache: Path) -> str:
    status = compiler.stat()
    key = f"{compiler}:{status.st_size}:{status.st_mtime_ns}"
    try:
        known = json.loads(cache.read_text())
    except (OSError, ValueError):
        known = {}
    if key not in known:
        known[key] = compiler_version(compiler)
        cache.parent.mkdir(parents=True, exist_ok=True)
        temporary = cache.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(known))
        temporary.replace(cache)
    return str(known[key])


def compiler_version(compiler: Path) -> str:
    """What `nvcc --version` says, as 13.0.88; EnvironmentFault if it says nothing of the kind."""
    said = run([str(compiler), "--version"])
    match = re.search(r"\bV(\d+\.\d+\.\d+)", said.stdout)
    if said.returncode != 0 or match is None:
        raise EnvironmentFault(f"{compiler} --version does not answer like nvcc.")
    return match.group(1)
