"""Which compiler this is: the content of every program that a compilation runs, by a hash.

nvcc is asked what it would run (--dryrun), so that wrapper scripts, -ccbin and the environment need
no rules of ours. Contents are hashed once and remembered by the file's status, because a compiler
has 200 MB.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.build import store
from kernelexp.evidence.build.diagnosis import first_error, quote
from kernelexp.model.errors import EnvironmentFault
from kernelexp.system import toolchain
from kernelexp.system.disk import decode
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain

FILE = "compilers.json"
# A file that was changed so recently may change again within the same tick of its time stamp.
SETTLED_NS = 2_000_000_000

# What nvcc, its profile and the host's preprocessor read besides their arguments: NVIDIA CUDA
# Compiler Driver, "NVCC Environment Variables" and nvcc.profile; GCC, "Environment Variables
# Affecting GCC"; clang, "CCC_OVERRIDE_OPTIONS".
VARIABLES = (
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "INCLUDES",
    "SYSTEM_INCLUDES",
    "CUDAFE_FLAGS",
    "PTXAS_FLAGS",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "SOURCE_DATE_EPOCH",
    "CCC_OVERRIDE_OPTIONS",
    "LD_PRELOAD",
)

_VARIABLE = re.compile(r"^#\$ (\w+)=(.*)$")
_COMMAND = re.compile(r"^#\$ (?!--|\w+=|rm )(.+)$")


class Compiler(msgspec.Struct, frozen=True, kw_only=True):
    """All that compiles a variant with certain flags."""

    digest: str
    """Of the programs' contents, wherever they are."""
    toolkit: str
    """The folder of nvcc's own headers and programs."""


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    """A file's hash, and its status when it had that."""

    status: tuple[int, ...]
    sha256: str


class _Programs(msgspec.Struct, frozen=True, kw_only=True):
    """The programs and files of its own that nvcc runs and reads."""

    path: str
    """Where it looks for programs."""
    words: dict[str, str]
    """The programs that it starts by name, and which files they were."""
    files: list[str]
    toolkit: str


class _Known(msgspec.Struct, kw_only=True):
    """The file in the cache."""

    contents: dict[str, _Content] = {}
    programs: dict[str, _Programs] = {}


# By device and status, whatever the project: a new one has nothing in its cache.
_hashed: dict[tuple[int, ...], str] = {}


def environment() -> dict[str, str]:
    """The variables that change what is compiled, those that are set."""
    return {name: value for name in VARIABLES if (value := os.environ.get(name)) is not None}


def identify(root: Path, cache: Path, tools: Toolchain, flags: Sequence[str]) -> Compiler:
    """The compiler that `tools` is with these flags; EnvironmentFault if nvcc does not tell."""
    known = _read(cache)
    before = msgspec.json.encode(known)
    key = _key(known, tools, flags)
    programs = known.programs.get(key)
    if programs is None or not _is_current(programs):
        programs = known.programs[key] = _discover(root, cache, tools, flags)
    # Sorted and each once: which of them lie at one place, or are links, is no matter.
    contents = {_hash(known, file) for file in (*programs.files, *programs.words.values())}
    digest = hashlib.sha256("".join(sorted(contents)).encode())
    if msgspec.json.encode(known) != before:
        _write(cache, known)
    return Compiler(digest=digest.hexdigest(), toolkit=programs.toolkit)


def _key(known: _Known, tools: Toolchain, flags: Sequence[str]) -> str:
    paths = [tools.nvcc, tools.ptxas, tools.cuobjdump]
    parts = [*paths, _hash(known, tools.nvcc), *flags, os.environ.get("PATH", "")]
    parts += [f"{name}={value}" for name, value in environment().items()]
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


def _is_current(programs: _Programs) -> bool:
    """Whether the same files would be started now, and are all there."""
    return all(_find(word, programs.path) == file for word, file in programs.words.items()) and all(
        Path(file).is_file() for file in programs.files
    )


def _find(word: str, path: str) -> str:
    result = shutil.which(word, path=path)
    return os.path.realpath(result) if result else ""


def _discover(root: Path, cache: Path, tools: Toolchain, flags: Sequence[str]) -> _Programs:
    argv = [tools.nvcc, "--dryrun", *flags, "-ptx", "x.cu", "-o", "x.ptx"]
    env = {"LC_ALL": "C", "TMPDIR": os.path.relpath(cache, root)}
    completed = processes.run(argv, cwd=root, env=env, timeout_s=60)
    if completed.returncode != 0:
        if flags and first_error(completed.stderr):
            return _discover(root, cache, tools, ())  # flags that it refuses: the build will say so
        _explain(tools, completed)
    lines = completed.stderr.splitlines()
    variables = {m[1]: m[2].strip() for line in lines if (m := _VARIABLE.match(line))}
    path = variables.get("PATH", "")
    words: dict[str, str] = {}
    for line in lines:
        if command := _COMMAND.match(line):
            word = _first_word(command[1], variables)
            words[word] = _find(word, path)
    here = variables.get("_HERE_")
    if here is None or not all(words.values()):
        missing = ", ".join(word for word, file in words.items() if not file)
        raise EnvironmentFault(
            f"{tools.nvcc} --dryrun does not answer like nvcc"
            + (f": it names {missing}, which can't be run." if missing else ".")
        )
    top = os.path.realpath(variables.get("TOP", f"{here}/.."))
    files = [*_own_files(tools, here, variables), *_passes(root, list(words), path)]
    return _Programs(path=path, words=words, files=files, toolkit=top)


def _explain(tools: Toolchain, completed: processes.Completed) -> None:
    toolchain.host_compiler()
    raise EnvironmentFault(
        f"{tools.nvcc} --dryrun failed: {quote(completed.stderr + completed.stdout)}"
    )


def _first_word(command: str, variables: dict[str, str]) -> str:
    """The program of a shell command, with nvcc's own variables in their places."""
    for name, value in variables.items():
        command = command.replace(f"${name}/", f"{value}/")
    try:
        return shlex.split(command)[0]
    except (ValueError, IndexError):
        return command.split()[0]


def _own_files(tools: Toolchain, here: str, variables: dict[str, str]) -> Iterator[str]:
    """The programs that are started by their path, and what they read."""
    folder, device = Path(here), Path(variables.get("NVVMIR_LIBRARY_DIR", here))
    beside = Path(tools.cuobjdump).with_name("nvdisasm")
    optional = (folder / "nvcc", folder / "nvcc.profile", folder / "cudafe++", beside)
    yield from (tools.nvcc, tools.ptxas, tools.cuobjdump)
    yield from (str(file) for file in (*optional, *sorted(device.glob("*.bc"))) if file.is_file())


def _passes(root: Path, words: Sequence[str], path: str) -> Iterator[str]:
    """The program that preprocesses for gcc; clang does so itself."""
    for word in words:
        program = shutil.which(word, path=path)
        if program and re.search(r"(gcc|g\+\+|\bcc|c\+\+)(-[\d.]+)?$", program):
            argv = [program, "-print-prog-name=cc1plus"]
            output = processes.run(argv, cwd=root, timeout_s=60).stdout.strip()
            if os.path.isabs(output) and os.path.isfile(output):
                yield os.path.realpath(output)


def _hash(known: _Known, file: str) -> str:
    try:
        status = os.stat(file)
        seen = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        remembered = known.contents.get(file)
        if remembered and remembered.status == seen:
            return remembered.sha256
        sha256 = _hashed.get((status.st_dev, *seen)) or _digest(file)
    except OSError as error:
        raise EnvironmentFault(f"{file} can't be read: {error.strerror}.") from None
    if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > SETTLED_NS:
        known.contents[file] = _Content(status=seen, sha256=sha256)
        _hashed[status.st_dev, *seen] = sha256
    return sha256


def _digest(file: str) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _read(cache: Path) -> _Known:
    try:
        return decode(store.kept(cache, FILE) or b"", _Known)
    except msgspec.DecodeError:
        return _Known()


def _write(cache: Path, known: _Known) -> None:
    try:
        store.keep(cache, FILE, msgspec.json.encode(known))
    except OSError:
        pass  # a cache that can't be written costs time, nothing else
