"""The files of a problem.py: those in its folder and below, and what it reads elsewhere.

Elsewhere are modules and data, names in folders, the environment; of processes that it starts, only
files that their command lines name are known. A worker that ran it says so, as a compiler's depfile
does. It is noted beside the builds for the problem as it is, and belongs to the key of all that is
kept of it from then on.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from stat import S_ISREG
from types import FrameType, ModuleType
from typing import Any

import msgspec

import kernelexp
import warpsim
from kernelexp.model.errors import ConfigurationError
from kernelexp.system import disk
from kernelexp.system.disk import decode

_NOTES = ".kernelexp/problems"
SOURCES = (".cu", ".cuh", ".h", ".hpp", ".inl")
"""Ends of the names of files that the compiler says whether it read."""
_ENVIRONMENT = {"os.py", "<frozen os>", "<frozen _collections_abc>", "_collections_abc.py"}
"""Where os.environ is implemented: who read it is beyond these frames."""

_PACKAGES = [Path(package.__file__).parent for package in (kernelexp, warpsim) if package.__file__]
_PYTHON = f"{sys.platlibdir}/python{sys.version_info.major}.{sys.version_info.minor}"
# Not sysconfig's: it works out all of its paths for each that is asked for, which took most of the
# time of a process that loads a small problem.py.
_INSTALLED = tuple(
    f"{place}/" for place in (Path(os.__file__).parent, Path(sys.exec_prefix, _PYTHON), *_PACKAGES)
)
"""Folders of Python and of kernelexp."""


class Used(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reads of one process."""

    files: tuple[str, ...] = ()
    """Modules that are not installed, and data, by path from the root; others by their whole path.
    Those of the repository that it looked for in vain too: one made later is another answer."""
    folders: tuple[str, ...] = ()
    """Folders whose names it listed, and links that it followed, by their whole paths."""
    environment: tuple[str, ...] = ()
    """Names of variables, set or not."""


# ---- in the process that runs it -----------------------------------------------------------------

_read: set[tuple[str, str]] = set()
"""Variables with the files of code that read them."""
_opened: set[str] = set()
_written: set[str] = set()
_listed: set[str] = set()
"""Whole paths of files and folders."""
_known: frozenset[str] = frozenset()
"""Modules that were there before."""


def begin() -> None:
    """Begins to attribute imports, and reads of the environment, to the problem."""
    global _known
    if not _known:
        _known = frozenset(sys.modules)
        sys.addaudithook(_hear)
        for name in ("stat", "lstat"):  # which have no audit event, nor has readlink
            setattr(os, name, _looking(getattr(os, name)))
        setattr(os, "readlink", _following(os.readlink))  # noqa: B010
    kind = type(os.environ)
    if getattr(kind.__getitem__, "__module__", "") != __name__:
        setattr(kind, "__getitem__", _noting(kind.__getitem__))  # noqa: B010


def _noting(plain: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def __getitem__(self: Any, name: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename.rpartition("/")[2] in _ENVIRONMENT:
            frame = frame.f_back
        if isinstance(name, str) and not is_installed(frame.f_code.co_filename):
            _read.add((name, frame.f_code.co_filename))
        return plain(self, name)

    return __getitem__


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit events of Python's: they come before what they tell of, whoever asks for it."""
    if event == "open":
        path, mode, flags = arguments
        writes = any(sign in mode for sign in "wax") if isinstance(mode, str) else flags & _WRITES
        _note(_written if writes else _opened, path)
    elif event in ("os.listdir", "os.scandir"):
        if sys._getframe(1).f_code.co_filename.startswith(_IMPORTS):
            return  # of a folder of sys.path: what is imported is known by itself
        _note(_listed, "." if arguments[0] is None else arguments[0])
    elif event in ("ctypes.dlopen", "sqlite3.connect"):
        _note(_opened, arguments[0])
    elif event == "subprocess.Popen":
        _, words, folder, _ = arguments
        for word in _words(words):
            path = os.path.join(os.fsdecode(folder or "."), word)
            with contextlib.suppress(OSError, ValueError):
                if S_ISREG(_stat(path).st_mode):
                    _note(_opened, path)


_WRITES = os.O_WRONLY | os.O_CREAT
_IMPORTS = "<frozen importlib"
_stat = os.stat


def _words(command: Any) -> list[str]:
    """Splits a command line into words, including those of a shell's script."""
    words = [command] if isinstance(command, str | bytes) else list(command)
    return [part for word in words for part in (os.fsdecode(word), *os.fsdecode(word).split())]


def _looking(plain: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    def stat(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        try:
            result = plain(path, *arguments, **options)
        except OSError:
            _note(_opened, path)
            raise
        if S_ISREG(result.st_mode):
            _note(_opened, path)
        return result

    return stat


def _following(plain: Callable[..., Any]) -> Callable[..., Any]:
    def readlink(path: Any, *arguments: Any, **options: Any) -> Any:
        _note(_listed, path)
        return plain(path, *arguments, **options)

    return readlink


def _note(where: set[str], path: Any) -> None:
    """A path that the problem's code, or what it calls, has named."""
    try:
        whole = os.path.abspath(os.fsdecode(path))
    except (TypeError, ValueError):
        return  # a descriptor, or no path at all
    if not is_installed(whole) and not _PASSING.search(whole) and _is_asked_for():
        where.add(whole)


_PASSING = re.compile(r"^/(dev|proc|sys)/|/(__pycache__|\.kernelexp|\.cache|:memory:)(/|$)|\0")
"""Devices, and what is made again where it is missing."""


def _is_asked_for() -> bool:
    """Whether code that is not installed is among the callers."""
    frame: FrameType | None = sys._getframe(2)
    while frame:
        if frame.f_globals.get("__name__") != "__main__":
            if not is_installed(frame.f_code.co_filename):
                return True
        frame = frame.f_back
    return False


def used(root: Path, kernel: str) -> Used:
    """Returns the reads of the kernel's problem.py so far."""
    folder = root / "variants" / kernel
    modules = (module for name, module in list(sys.modules.items()) if name not in _known)
    paths = {path for module in modules if (path := _path(module)) and not is_installed(path)}
    data = {path for path in set(_opened - _written) if not Path(path).is_dir()}
    files = {
        name
        for path in paths | data
        if not _is_below(path, folder) or path.endswith(SOURCES)
        if (name := disk.own_name(root, path) or (path if Path(path).exists() else ""))
    }
    variables = {name for name, _ in set(_read)}
    return Used(
        files=tuple(sorted(files)),
        folders=tuple(
            sorted(
                path for path in set(_listed) if not _is_below(path, folder) or os.path.islink(path)
            )
        ),
        environment=tuple(sorted(variables)),
    )


def _path(module: ModuleType) -> str:
    path = getattr(module, "__file__", None)
    return path if isinstance(path, str) and os.path.isabs(path) else ""


def _is_below(path: str, folder: Path) -> bool:
    return any(Path(path).is_relative_to(file) for file in (folder, folder.resolve()))


@functools.cache
def is_installed(path: str) -> bool:
    """Whether code is of Python, of an installed package, or kernelexp's own."""
    if "site-packages" in path or "dist-packages" in path or not os.path.isabs(path):
        return True
    return path.startswith(_INSTALLED)


# ---- in the process that keeps evidence ----------------------------------------------------------


def note(root: Path, kernel: str, used: Used) -> None:
    """Keeps what a process that ran problem.py read."""
    if used == Used():
        return
    content = msgspec.json.encode(used)
    name = hashlib.sha256(content).hexdigest()[:12]
    with contextlib.suppress(OSError):
        folder = _folder(root, kernel, _own(root, kernel))
        if not (folder / f"{name}.json").exists():
            folder.mkdir(parents=True, exist_ok=True)
            disk.write(folder / f"{name}.json", content)


def noted(root: Path, kernel: str, own: Mapping[str, str]) -> Used:
    """All that processes have read of it."""
    every = list(_notes(_folder(root, kernel, own)))
    return Used(
        files=tuple(sorted({name for item in every for name in item.files})),
        folders=tuple(sorted({name for item in every for name in item.folders})),
        environment=tuple(sorted({name for item in every for name in item.environment})),
    )


def _notes(folder: Path) -> Iterator[Used]:
    for path in folder.glob("*.json"):
        with contextlib.suppress(OSError, msgspec.DecodeError):
            yield decode(path.read_bytes(), Used)


def _folder(root: Path, kernel: str, own: Mapping[str, str]) -> Path:
    digest = hashlib.sha256(repr(sorted(own.items())).encode()).hexdigest()[:12]
    return root / _NOTES / f"{kernel}-{digest}"


def value_digest(name: str) -> str:
    """Returns a digest of an environment variable's value: records do not have the value itself."""
    value = os.environ.get(name)
    return "unset" if value is None else hashlib.sha256(value.encode()).hexdigest()


# The compiler says which sources it read; prose is for people, and copies are an editor's.
_OTHERS = (*SOURCES, ".md", ".rst", "~", "#")


COUNTS = "counts.py"
"""What counts are scaled by: no measurement depends on it, so that no verdict does."""


def find(root: Path, kernel: str) -> list[Path]:
    """Modules and data in a kernel's folder, in the order of their paths."""
    every = below(root, root / "variants" / kernel)
    return [path for path in every if not path.name.endswith(_OTHERS)]


def below(root: Path, folder: Path) -> list[Path]:
    """Every file below a folder, hidden ones left out, in the order of their paths.

    A link to a folder is followed where that lies in the project: code that kernels share.
    """
    return sorted(_below(folder, (root.resolve(), folder.resolve()), frozenset()))


def _below(folder: Path, within: tuple[Path, ...], above: frozenset[Path]) -> Iterator[Path]:
    real = folder.resolve()
    if real in above or not any(map(real.is_relative_to, within)):
        return
    with contextlib.suppress(PermissionError, FileNotFoundError):
        for path in folder.iterdir():
            if path.name.startswith((".", "__pycache__")):
                continue
            if path.is_dir():
                yield from _below(path, within, above | {real})
            elif path.is_file():
                yield path


def digests(root: Path, kernel: str) -> dict[str, str]:
    """SHA-256 of each of them, and of the modules of the repository that were read with them, by
    path from the root; empty for what problem.py looked for in vain. A folder whose names it
    listed ends with a slash and has theirs.
    """
    own = _own(root, kernel)
    used = noted(root, kernel, own)
    others = [name for name in used.files if disk.is_own(root, name)]
    known = own | {name: _present(root / name) for name in others if not (root / name).is_dir()}
    for folder in used.folders:
        if (name := disk.own_name(root, folder)) and disk.is_own(root, name):
            known[f"{name}/"] = names_digest(folder)
    return {name: digest for name, digest in known.items() if name != _counts(kernel)}


def names_digest(folder: str) -> str:
    """Returns a digest of the names in a folder that are not hidden, or of where a link leads."""
    names = [name for name in _names(folder) if not name.startswith((".", "__pycache__"))]
    return hashlib.sha256("\n".join(names).encode(errors="surrogateescape")).hexdigest()


def _counts(kernel: str) -> str:
    return f"variants/{kernel}/{COUNTS}"


def _own(root: Path, kernel: str) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): _sha256(path) for path in find(root, kernel)}


def environment(root: Path, kernel: str) -> dict[str, str]:
    """SHA-256 of the environment variables that problem.py reads, by name."""
    names = noted(root, kernel, _own(root, kernel)).environment
    return {name: value_digest(name) for name in names}


def key(root: Path, kernel: str) -> str:
    """All that problem.py's answers depend on, as far as it is known."""
    used = noted(root, kernel, _own(root, kernel))
    outside = {name: _sha256(Path(name)) for name in used.files if Path(name).is_file()}
    known = digests(root, kernel)
    if (root / _counts(kernel)).is_file():  # it may have sizes
        known[_counts(kernel)] = _sha256(root / _counts(kernel))
    if used == Used():
        return f"{known}"
    listed = {name: _names(name) for name in used.folders}
    return f"{known} {environment(root, kernel)} {outside}{listed or ''}"


def _names(folder: str) -> list[str]:
    names = [f"-> {os.readlink(folder)}"] if os.path.islink(folder) else []
    with contextlib.suppress(OSError):
        names += sorted(os.listdir(folder))
    return names


def _present(path: Path) -> str:
    return _sha256(path) if path.is_file() else ""


def place(problem: str) -> tuple[Path, str] | None:
    """The project's root and the kernel of a problem.py; None of one that is elsewhere."""
    folder = Path(problem).absolute().parent
    return (folder.parent.parent, folder.name) if folder.parent.name == "variants" else None


def _sha256(path: Path) -> str:
    state = path.stat()
    return _digest(str(path), state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@functools.lru_cache(maxsize=4096)
def _digest(path: str, *_state: int) -> str:
    """Once for as long as the file is what it was: weights may have gigabytes."""
    with Path(path).open("rb") as file:  # data may be larger than memory
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse_changes(root: Path, kernel: str, before: Mapping[str, str], during: str) -> None:
    """ConfigurationError where a file is not what it was: who knows what was read of it?

    `during` is what it changed during, as in "while E1 ran". A file that is new does not count:
    problem.py itself may have made it.
    """
    now = digests(root, kernel)
    for name, digest in before.items():
        if digest and not name.endswith("/") and now.get(name) != digest:
            what = "changed" if now.get(name) else "went away"
            raise ConfigurationError(
                f"{name} {what} {during}, so that nothing was recorded: run it again."
            )
