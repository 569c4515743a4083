"""The files of a problem.py: what it says may depend on each file in its folder and below."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from kernelexp.model.errors import ConfigurationError
from kernelexp.project.problem import reads
from kernelexp.system import disk

# The compiler says which sources it read; prose is for people, and copies are an editor's.
_OTHERS = (*reads.SOURCES, ".md", ".rst", "~", "#")


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
    used = reads.noted(root, kernel, own)
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
    names = reads.noted(root, kernel, _own(root, kernel)).environment
    return {name: reads.value_digest(name) for name in names}


def key(root: Path, kernel: str) -> str:
    """All that problem.py's answers depend on, as far as it is known."""
    used = reads.noted(root, kernel, _own(root, kernel))
    outside = {name: _sha256(Path(name)) for name in used.files if Path(name).is_file()}
    known = digests(root, kernel)
    if (root / _counts(kernel)).is_file():  # it may have sizes
        known[_counts(kernel)] = _sha256(root / _counts(kernel))
    if used == reads.Used():
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


def note(root: Path, kernel: str, used: reads.Used) -> None:
    """Keeps what a process that ran problem.py read."""
    reads.note(root, kernel, _own(root, kernel), used)


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
