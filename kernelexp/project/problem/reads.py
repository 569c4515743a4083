"""What a problem.py read besides the files of its folder: modules elsewhere, the environment.

A worker that ran it says so, as a compiler's depfile does. It is noted beside the builds for the
problem as it is, and belongs to the key of all that is kept of it from then on.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

import kernelexp
import warpsim
from kernelexp.model.decoding import decode
from kernelexp.system import ownfiles, wholefile

_NOTES = ".kernelexp/problems"
_ENVIRONMENT = {"os.py", "<frozen os>", "<frozen _collections_abc>", "_collections_abc.py"}
"""Where os.environ is implemented: who read it is beyond these frames."""


class Used(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """By one process."""

    files: tuple[str, ...] = ()
    """Modules that are not installed, by path from the root; others by their whole path."""
    environment: tuple[str, ...] = ()
    """Names of variables, set or not."""


# ---- in the process that runs it -----------------------------------------------------------------

_read: set[tuple[str, str]] = set()
"""Variables with the files of code that read them."""
_known: frozenset[str] = frozenset()
"""Modules that were there before."""


def begin() -> None:
    """From here on what is imported, and read of the environment, is the problem's."""
    global _known
    _known = _known or frozenset(sys.modules)
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


def used(root: Path, kernel: str) -> Used:
    """What it has read so far."""
    folder = root / "variants" / kernel
    modules = (module for name, module in list(sys.modules.items()) if name not in _known)
    paths = {path for module in modules if (path := _path(module)) and not is_installed(path)}
    files = {ownfiles.name(root, path) or path for path in paths if not _is_below(path, folder)}
    variables = {name for name, _ in _read}
    return Used(files=tuple(sorted(files)), environment=tuple(sorted(variables)))


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
    own = [
        str(Path(module_type.__file__).parent)
        for module_type in (kernelexp, warpsim)
        if module_type.__file__
    ]
    places = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), *own}
    return any(path.startswith(f"{place}/") for place in places)


# ---- in the process that keeps evidence ----------------------------------------------------------


def note(root: Path, kernel: str, own: Mapping[str, str], found: Used) -> None:
    """Keeps what a process read of the problem with these files of its own."""
    if found == Used():
        return
    content = msgspec.json.encode(found)
    name = hashlib.sha256(content).hexdigest()[:12]
    with contextlib.suppress(OSError):
        folder = _folder(root, kernel, own)
        if not (folder / f"{name}.json").exists():
            folder.mkdir(parents=True, exist_ok=True)
            wholefile.write(folder / f"{name}.json", content)


def noted(root: Path, kernel: str, own: Mapping[str, str]) -> Used:
    """All that processes have read of it."""
    every = list(_notes(_folder(root, kernel, own)))
    return Used(
        files=tuple(sorted({name for item in every for name in item.files})),
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
    """Of an environment variable's value: records do not have the value itself."""
    value = os.environ.get(name)
    return "unset" if value is None else hashlib.sha256(value.encode()).hexdigest()
