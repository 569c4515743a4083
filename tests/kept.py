"""What compilers make of texts, kept by content: for all workers, and for the next run."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from filelock import FileLock
from support import ROOT

from kernelexp.evidence import build
from kernelexp.evidence.build import combined
from kernelexp.evidence.programs import compiling, library
from kernelexp.system.toolchain import Toolchain

_FOLDER = ROOT / build.CACHE / "tests"
_SOURCES = (".cu", ".cuh", ".h", ".hpp")
_UNUSED_S = 3 * 24 * 3600.0
_BUILDS = _FOLDER / f"builds-{time.time() // _UNUSED_S:.0f}"


def output(command: Sequence[str], read: Sequence[Path], make: Callable[[Path], Path]) -> bytes:
    """The file that `make` writes in a folder of its own.

    Kept under the command, its program, and the files and folders of sources in `read`. What a
    test's own folder is read for is not kept, as no other test has that path.
    """
    if any(not place.is_relative_to(ROOT) for place in read):
        with tempfile.TemporaryDirectory() as folder:
            return make(Path(folder)).read_bytes()
    return _path(command, read, make).read_bytes()


def run(
    command: Sequence[str],
    files: Mapping[str, str | bytes],
    written: str = "",
    read: Sequence[Path] = (),
) -> bytes:
    """The file that a command has `written` in a folder with these files, else what it prints."""

    def make(folder: Path) -> Path:
        return _run(command, files, written, folder)

    contents = (hashlib.sha256(repr(item).encode()).hexdigest() for item in files.items())
    return output([*command, *contents], read, make)


def _run(
    command: Sequence[str], files: Mapping[str, str | bytes], written: str, folder: Path
) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    if not written:
        (folder / "printed").write_bytes(done.stdout)
    return folder / (written or "printed")


def listings(cuobjdump: str, cubins: Sequence[bytes]) -> list[str]:
    """What `cuobjdump -sass` prints of each cubin; all are of one architecture.

    One process prints all that are not kept, as it does for builds: nvdisasm takes 0.5 s to begin.
    """
    command = [cuobjdump, "-sass", "k.cubin"]
    keys = [[*command, hashlib.sha256(cubin).hexdigest()] for cubin in cubins]
    others = [
        cubin for cubin, key in zip(cubins, keys, strict=True) if not _place(key, ()).exists()
    ]
    codes = {cubin: code for cubin in others if (code := combined.read(cubin))}
    together: dict[bytes, str] = {}
    if len(codes) > 1:
        with tempfile.TemporaryDirectory() as name:
            whole = combined.combine(list(codes.values()))
            printed = _run(command, {"k.cubin": whole}, "", Path(name)).read_text()
        if parts := combined.separate(printed, list(codes.values())):
            together = dict(zip(codes, parts, strict=True))

    def make(cubin: bytes, folder: Path) -> Path:
        if cubin not in together:
            return _run(command, {"k.cubin": cubin}, "", folder)
        (folder / "printed").write_text(together[cubin])
        return folder / "printed"

    return [
        output(key, (), functools.partial(make, cubin)).decode()
        for cubin, key in zip(cubins, keys, strict=True)
    ]


def program(
    sources: Sequence[Path],
    tools: Toolchain,
    *flags: str,
    arch: str = "sm_90a",
    include: Sequence[Path] = (),
) -> Path:
    """A program that is linked with the emulator's CUDA runtime."""
    flags = (*flags, *(f"-I{folder}" for folder in include))
    runtime = library.folder(ROOT)

    def make(folder: Path) -> Path:
        path = folder / "program"
        compiling.compile_program(sources, flags, tools, runtime, arch, path)
        return path

    command = [tools.nvcc, str(runtime), arch, *flags]
    return _path(command, [*sources, *include, Path(compiling.__file__)], make)


def _path(command: Sequence[str], read: Sequence[Path], make: Callable[[Path], Path]) -> Path:
    path = _place(command, read)
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
                make(Path(folder)).rename(path)
        os.utime(path)
    return path


def _place(command: Sequence[str], read: Sequence[Path]) -> Path:
    """Where the output of a command is kept."""
    program = Path(shutil.which(command[0]) or command[0])
    contents = _contents(program, program.stat().st_mtime_ns)
    key = hashlib.sha256(repr((*command, contents)).encode())
    for place in read:
        for path in sorted(place.rglob("*")) if place.is_dir() else (place,):
            if path == place or path.suffix in _SOURCES:
                key.update(path.read_bytes())
    return _FOLDER / key.hexdigest()[:24]


@functools.cache
def _contents(program: Path, written: int) -> tuple[str, list[tuple[str, int]]]:
    """The program's content, and the sizes of those beside it, which it may run.

    Their times are those of the environment, and CI makes a fresh one for each change.
    """
    with program.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    beside = [path for path in program.resolve().parent.iterdir() if path.is_file()]
    return digest, sorted((path.name, path.stat().st_size) for path in beside)


def share_builds(root: Path) -> None:
    """Has a project find what earlier tests have built and emulated of the same sources.

    Both are found by content, the compiler's and the emulator's own code included. For tests of
    what is said of a kernel; those of builds have caches of their own.
    """
    _BUILDS.mkdir(parents=True, exist_ok=True)
    (root / build.CACHE).mkdir(exist_ok=True)
    (root / build.CACHE / "build").symlink_to(_BUILDS)


def add_earlier_cache(root: Path, emulator: str) -> Callable[[], None]:
    """Gives a project what earlier runs had in the cache of one with the same files.

    They had the same emulator, and the same code took the evidence. Returns what keeps its cache
    for later runs, once it is complete. The compilers are those of this run.
    """
    key = hashlib.sha256(emulator.encode())
    own = (path for path in root.rglob("*") if not path.is_relative_to(root / build.CACHE))
    for path in (*sorted(own), *sorted((ROOT / "kernelexp/evidence").rglob("*.py"))):
        if path.is_file():
            key.update(path.read_bytes())
    earlier = _FOLDER / f"cache-{key.hexdigest()[:24]}"
    compilers = shutil.ignore_patterns("compilers.json")

    def keep() -> None:
        _FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
            copy = shutil.copytree(root / build.CACHE, Path(folder) / "cache", ignore=compilers)
            with contextlib.suppress(OSError):  # another run was first
                Path(copy).rename(earlier)

    if not earlier.exists():
        return keep
    shutil.copytree(earlier, root / build.CACHE, dirs_exist_ok=True)
    return lambda: None


@contextlib.contextmanager
def same_folder(name: str) -> Iterator[Path]:
    """An empty folder that has the same path in each run of this checkout's tests.

    What is adopted names the path of its source, so only there are its builds found again. It lies
    outside the checkout, which is a repository.
    """
    checkout = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
    folder = Path(tempfile.gettempdir()) / f"kernelexp-tests-{checkout}" / name
    folder.parent.mkdir(exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder
        shutil.rmtree(folder)


def tidy() -> None:
    """Removes what no test has read for a while: random kernels are new ones each time."""
    for path in _FOLDER.glob("*"):
        if path.is_file() and time.time() - path.stat().st_mtime > _UNUSED_S:
            path.unlink(missing_ok=True)
        elif path.match("cache-*") and time.time() - path.stat().st_mtime > _UNUSED_S:
            shutil.rmtree(path, ignore_errors=True)
        elif path.match("builds-*") and path != _BUILDS:
            shutil.rmtree(path, ignore_errors=True)
