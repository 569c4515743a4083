"""Files that a compiler or Python would read now instead of those that a record names.

A record says what was read, not what was looked for in vain: a header that was added since, beside
the file that includes it or in the project's folder of headers, is found first, and so is a module
beside problem.py.
"""

from __future__ import annotations

import contextlib
import filecmp
import functools
import importlib.machinery
import os
import re
import site
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernelexp.system import disk, toolchain
from kernelexp.system.toolchain import HEADERS

_INCLUDES = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.M)
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([^#\n]+)", re.M)
_LONGEST = 8 << 20


class Shadows:
    """Files that shadow others in a project as it is now; each file is looked at once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._included: dict[str, tuple[tuple[str, bool], ...]] = {}
        self._modules: dict[str, dict[str, str]] = {}
        self._there: dict[str, bool] = {}

    def of(self, read: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The new file and what it would be taken for, of a record that read these."""
        known = set(read)
        for path in known:
            for name, quoted in self._names(path):
                yield from self._headers(path, name, quoted, known)
            if path.endswith("/problem.py"):
                yield from self._beside(os.path.dirname(path), known)

    def _headers(
        self, path: str, name: str, quoted: bool, known: set[str]
    ) -> Iterator[tuple[str, str]]:
        own = any(item.endswith(f"/{name}") for item in known)
        if not own and not _is_header(name):
            return
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if quoted and beside not in known and self._is_there(beside):
            yield beside, name
        shared = f"{toolchain.INCLUDE}/{name}"
        if not own and self._is_there(shared):
            if not filecmp.cmp(self._root / shared, HEADERS / name, shallow=False):
                yield shared, name

    def _beside(self, folder: str, known: set[str]) -> Iterator[tuple[str, str]]:
        """New modules of a kernel's folder, which is first on the path of its problem.py."""
        for path, name in self._importable(folder).items():
            if path in known:
                continue
            elsewhere = any(item.endswith(f"/{name}.py") for item in known)
            if elsewhere or self._is_imported(name, known) or _is_installed(name):
                yield path, name

    def _importable(self, folder: str) -> dict[str, str]:
        """The names of modules and packages by their paths."""
        if folder not in self._modules:
            self._modules[folder] = {}
            with contextlib.suppress(OSError):
                for entry in sorted(os.listdir(self._root / folder)):
                    path = f"{folder}/{entry}"
                    if self._is_there(f"{path}/__init__.py"):
                        self._modules[folder][f"{path}/__init__.py"] = entry
                    elif entry.endswith(_SUFFIXES) and self._is_there(path):
                        self._modules[folder][path] = entry.partition(".")[0]
        return self._modules[folder]

    def _is_imported(self, name: str, known: set[str]) -> bool:
        word = re.compile(rb"\b" + re.escape(name.encode(errors="surrogateescape")) + rb"\b")
        return any(
            word.search(line)
            for path in known
            if path.endswith(".py")
            for line in _IMPORTS.findall(self._text(path))
        )

    def _names(self, path: str) -> tuple[tuple[str, bool], ...]:
        """Returns the names that a file includes, and whether by quotes."""
        if path not in self._included:
            self._included[path] = tuple(
                (os.fsdecode(name), sign == b'"')
                for sign, name in _INCLUDES.findall(self._text(path))
            )
        return self._included[path]

    def _text(self, path: str) -> bytes:
        file = self._root / path
        if not self._is_there(path) or file.stat().st_size > _LONGEST:
            return b""
        return file.read_bytes()

    def _is_there(self, path: str) -> bool:
        if path not in self._there:
            own = disk.is_own(self._root, path)
            self._there[path] = own and os.path.isfile(self._root / path)
        return self._there[path]


@functools.cache
def _is_header(name: str) -> bool:
    """Whether the package has a header of this name."""
    return (HEADERS / name).is_file()


_SUFFIXES = tuple(importlib.machinery.all_suffixes())


def _is_installed(name: str) -> bool:
    """Whether a problem.py would find a module of this name elsewhere, if not for the new one: not
    what this process has on its own path."""
    if name in sys.builtin_module_names or name.startswith("__"):  # which no file shadows
        return False
    if name in sys.stdlib_module_names or name in ("kernelexp", "warpsim"):
        return True
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    return name.isidentifier() and bool(importlib.machinery.PathFinder.find_spec(name, folders))
