"""Libraries that the host compiler makes, once per user, for all projects.

They lie in the user's cache folder, under a hash of what they are made from: machines may share a
home. Where that folder can't be used, as with a home that is read-only, they lie in the project's
own cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence import build
from kernelexp.model.errors import EnvironmentFault
from kernelexp.system import disk
from kernelexp.system.process import processes

COMPILERS = ("g++", "c++", "clang++")
LIMIT_S = 180.0


class HostCompiler(msgspec.Struct, frozen=True, kw_only=True):
    """A C++ compiler with the flags of one library."""

    program: str
    flags: tuple[str, ...]
    what: str
    """What it compiles, in sentences."""

    def run(self, *arguments: str) -> None:
        """EnvironmentFault in the compiler's words where it fails."""
        done = processes.run([self.program, *self.flags, *arguments], timeout_s=LIMIT_S)
        if done.returncode != 0:
            raise EnvironmentFault(
                f"{self.program} does not compile {self.what}: {done.stderr.strip()[:2000]}"
            )

    def objects(self, sources: Sequence[Path], folder: Path, *arguments: str) -> dict[Path, str]:
        """Compiles sources beside each other; their objects in `folder`, in the sources' order."""
        paths = {source: f"{folder}/{source.stem}.o" for source in sources}

        def compile_one(source: Path) -> None:
            self.run(*arguments, "-c", str(source), "-o", paths[source])

        # The largest first: one may take half of the time of all.
        largest_first = sorted(sources, key=lambda source: -source.stat().st_size)
        processes.parallel(compile_one, largest_first)
        return paths


def find(what: str, flags: tuple[str, ...]) -> HostCompiler:
    """The compiler for `what`; EnvironmentFault where there is none."""
    program = next(filter(None, map(shutil.which, COMPILERS)), None)
    if program is None:
        raise EnvironmentFault(
            f"{what} has to be compiled, and there is no C++ compiler: install one (Debian, "
            "Ubuntu: apt install g++)."
        )
    return HostCompiler(program=program, flags=flags, what=what)


def digest(files: Iterable[Path], *others: object) -> str:
    """A name for what is made from these files and from whatever else it depends on."""
    key = hashlib.sha256()
    for file in files:
        key.update(file.read_bytes())
    key.update(repr(others).encode())
    return key.hexdigest()[:16]


def library(root: Path, name: str, what: str, make: Callable[[Path], Path]) -> Path:
    """The file or folder `name` of a cache, which `make` leaves in a temporary folder where it is
    not there yet.

    Waits for another process that makes it. EnvironmentFault where no cache can be written.
    """
    usable = folders(root)
    reasons = []
    for folder in usable:
        if (folder / name).exists():
            return folder / name
    for folder in usable:
        try:
            return _made(folder / name, make)
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror}")
    raise EnvironmentFault(f"{what} can't be written ({'; '.join(reasons)}).")


def folders(root: Path) -> list[Path]:
    """Returns the folders where compiled code may be kept and executed, the user's first."""
    return [folder for folder in _folders(root) if not _forbids_execution(folder)]


def _folders(root: Path) -> Iterator[Path]:
    if shared := disk.user_cache():
        yield shared / "native"
    yield root / build.CACHE / "native"


def _forbids_execution(folder: Path) -> bool:
    while not folder.exists():
        folder = folder.parent
    return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)


def _made(path: Path, make: Callable[[Path], Path]) -> Path:
    import filelock  # takes long to load, and the library is there on all but the first call

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with filelock.FileLock(path.with_suffix(".lock")):
        if not path.exists():
            for left in path.parent.glob("*.tmp"):  # by a process that was killed
                if time.time() - left.stat().st_mtime > 2 * LIMIT_S:
                    shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(suffix=".tmp", dir=path.parent) as place:
                whole = make(Path(place))
                disk.sync(whole)
                whole.rename(path)
    return path


def announce(what: str) -> None:
    """Says on standard error why a first command takes long; a pipe, too, is read meanwhile."""
    with contextlib.suppress(OSError, AttributeError):  # nobody reads it, or it is closed
        sys.stderr.write(f"compiling {what}, once for this machine: a minute or so\n")
        sys.stderr.flush()
