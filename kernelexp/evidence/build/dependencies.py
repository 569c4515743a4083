"""Files that a compilation read, as the compiler reports them, and may read the next time.

A manifest remembers, for one variant's arguments, the files of earlier compilations with their
hashes. Where all are unchanged, the output is known without starting a process.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

# What a text may ask the preprocessor for besides files: the answer is not a dependency.
ASKS = re.compile(rb"__has_(?:include|embed)|__(?:DATE|TIME|TIMESTAMP)__")
_SEPARATOR = re.compile(r"(?<!\\)\s+")
_ESCAPED = re.compile(r"\\([ #])|\$(?=\$)")
_OPTION = re.compile(
    r"^-{1,2}(?:I|isystem|iquote|idirafter|include-path|system-include|isysroot)?[=,]?"
)
_SYSTEM = "/usr/"
LONGEST_NAME = 4
"""Folders of an #include's name that are looked for elsewhere."""


class CachedCompilation(msgspec.Struct, frozen=True, kw_only=True):
    """One compilation's inputs, and the build that came of it."""

    identity: str
    read: dict[str, str]
    """SHA-256 by path, from the project's root where it is below it, in the order of reading."""
    passed_over: tuple[str, ...]
    """Files of the same names in folders that are searched too, which were not taken."""
    preprocessed: str = ""
    """Hash of the preprocessed text, where the sources ask for what is not a dependency."""


class Files:
    """The content of files and folders, each looked at once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._hashes: dict[str, str] = {}
        self._names: dict[str, frozenset[str]] = {}

    def sha256(self, path: str) -> str:
        """The hash of a file; empty where it can't be read."""
        if path not in self._hashes:
            try:
                content = (self._root / path).read_bytes()
                self._hashes[path] = hashlib.sha256(content).hexdigest()
            except OSError:
                self._hashes[path] = ""
        return self._hashes[path]

    def names(self, folder: str) -> frozenset[str]:
        """Returns the names in a folder; nothing where there is none."""
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(self._root / folder))
            except OSError:
                self._names[folder] = frozenset()
        return self._names[folder]

    def is_file(self, path: str) -> bool:
        return (self._root / path).is_file()

    def ask(self, paths: Iterable[str]) -> bool:
        """Whether one of these texts asks for what is in no dependency."""
        return any(ASKS.search((self._root / path).read_bytes()) for path in paths)

    def changed_since(self, paths: Iterable[str], start_ns: int, toolkit: str) -> dict[str, int]:
        """Returns when each of these files changed that did so at `start_ns` or later; 0 if it is
        gone.

        By the time that nobody can set, but for the compiler's own: package managers link those.
        """
        result = {}
        for path in paths:
            try:
                status = (self._root / path).stat()
                changed = status.st_ctime_ns if is_own(path, toolkit) else status.st_mtime_ns
            except OSError:
                changed = 0
            if changed == 0 or changed >= start_ns:
                result[path] = changed
        return result


def parse(text: str) -> list[str] | None:
    """The prerequisites of the one rule in a dependency file of gcc, clang or nvcc; None if it is
    cut short.

    nvcc escapes spaces, and nothing else.
    """
    target, colon, rest = text.partition(": ")
    if not colon or not target or not rest.endswith("\n") or rest.endswith("\\\n"):
        return None
    words = _SEPARATOR.split(rest.replace("\\\n", "\n").strip())
    return [_ESCAPED.sub(r"\1", word) for word in words if word]


def tidy(root: str, path: str) -> str:
    """A path from the project's root where it is below it, else in full; `..` is worked out.

    Links are left as they are, so that a name keeps meaning the same when one is changed.
    """
    whole = os.path.normpath(os.path.join(root, path))
    return whole[len(root) + 1 :] if whole.startswith(f"{root}/") else whole


def belongs_to_project(path: str) -> bool:
    return not os.path.isabs(path)


def is_own(path: str, toolkit: str) -> bool:
    """Whether people edit this file: it is neither the compiler's nor the system's."""
    return not path.startswith((_SYSTEM, f"{toolkit}/"))


def searched(
    root: str,
    read: Iterable[str],
    toolkit: str,
    flags: Sequence[str],
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    """The folders in which another file of an included name would be taken or passed over."""
    folders = dict.fromkeys(os.path.dirname(path) for path in read if is_own(path, toolkit))
    words = list(flags)
    for name, value in environment.items():
        words += value.split(":") if name.endswith("PATH") else _words(value)
    for word in words:
        for part in re.split("[,=]", _OPTION.sub("", word)):
            if part and not part.startswith("-"):
                folders[tidy(root, _OPTION.sub("", part))] = None
    return tuple(folders)


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()


def passed_over(
    files: Files, read: Mapping[str, str], folders: Iterable[str], toolkit: str
) -> tuple[str, ...]:
    """The files in `folders` that an #include of a file in `read` could name too."""
    by_first: dict[str, set[str]] = {}
    for path in read:
        parts = path.split("/")
        for length in range(1, min(LONGEST_NAME, len(parts)) + 1):
            by_first.setdefault(parts[-length], set()).add("/".join(parts[-length:]))
    result = set()
    for folder in folders:
        for first in by_first.keys() & files.names(folder):
            for name in by_first[first]:
                path = os.path.join(folder, name)
                if path not in read and is_own(path, toolkit) and files.is_file(path):
                    result.add(path)
    return tuple(sorted(result))


def is_unchanged(
    files: Files, entry: CachedCompilation, folders: Sequence[str], toolkit: str
) -> bool:
    """Whether a compilation would read now what it read then."""
    if any(files.sha256(path) != sha256 for path, sha256 in entry.read.items()):
        return False
    return passed_over(files, entry.read, folders, toolkit) == entry.passed_over


def content_of_arguments(root: Path, files: Files, words: Iterable[str]) -> list[str]:
    """The hashes of the files that arguments name: option files, specs, host compilers."""
    result = []
    for word in words:
        for part in re.split("[,=]", word):
            path = part.removeprefix("@")
            if path and (root / path).is_file():
                result.append(files.sha256(path))
    return result
