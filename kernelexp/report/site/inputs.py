"""Digests of the inputs of pages: a report renders only pages whose inputs have changed.

Files are compared as git compares them: by size, inode and times. An experiment's page depends on
its own records and builds, and on all of the project but the records of other experiments.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

import kernelexp
import warpsim
from kernelexp.evidence import build
from kernelexp.evidence.emulate import emulated
from kernelexp.logs import records, sources
from kernelexp.model.record import Record

MANIFEST = "kernelexp-report.json"
_FILES_MAX = 200_000
_APART = frozenset({"experiments.yaml", "experiments", "history", "logs"})
"""Of the top of a project: what a page takes from these is among its own inputs."""
_SHARED = ("profiles", "recounts", "compiled", "imported")
"""Of logs."""


def state(root: Path, apart: frozenset[str] = frozenset()) -> str:
    """Returns a digest of the project's files, but for those `apart` at its top, and of kernelexp's
    own; empty where that are too many."""
    digest = hashlib.sha256()
    packages = (Path(str(package.__file__)).parent for package in (kernelexp, warpsim))
    for count, path in enumerate(
        path for top in (root, *packages) for path in _files(top, apart if top == root else ())
    ):
        if count >= _FILES_MAX:
            return ""
        digest.update(_line(path))
    return digest.hexdigest()


class Inputs:
    """Digests of what the pages of one project are made from."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def of_experiment(self, name: str, shown: Iterable[Record], values: object) -> str:
        """Of an experiment's pages, which are made from its records, among them `shown`, and from
        these values; empty if the project is too large."""
        if not self._shared:
            return ""
        digest = hashlib.sha256(self._shared.encode())
        digest.update(msgspec.json.encode(values, enc_hook=str))
        for path in _files(self._root / records.FOLDER / name):
            digest.update(_line(path))
        for record in shown:
            stored = self._stored.intersection(sources.of_record(record).values())
            digest.update(" ".join(sorted(stored)).encode())
            for arm in build.with_builds_here(self._root, record).arms:
                modelled = self._modelled[emulated.source_digest(arm)]
                for path in (*self._built(arm.identity), *modelled):
                    digest.update(_line(path))
        return digest.hexdigest()[:32]

    def _built(self, identity: str) -> Iterator[str]:
        if identity.isalnum():  # a record may hold any text
            yield from _files(build.folder_of(self._root, identity))

    @functools.cached_property
    def _shared(self) -> str:
        digest = hashlib.sha256()
        for name in _SHARED:
            for path in _files(self._root / "logs" / name):
                digest.update(_line(path))
        own = state(self._root, _APART)
        return f"{own} {digest.hexdigest()}" if own else ""

    @functools.cached_property
    def _stored(self) -> frozenset[str]:
        paths = map(Path, _files(self._root / sources.FOLDER))
        return frozenset(f"{path.parent.name}{path.stem}" for path in paths)

    @functools.cached_property
    def _modelled(self) -> defaultdict[str, list[str]]:
        found = defaultdict[str, list[str]](list)
        for path in _files(self._root / build.CACHE / "modelled"):
            found[os.path.basename(path).partition("-")[0]].append(path)
        return found


def _line(path: str) -> bytes:
    try:
        own = os.lstat(path)
    except OSError:
        return b""
    line = f"{path} {own.st_ino} {own.st_size} {own.st_mtime_ns} {own.st_ctime_ns}\n"
    return os.fsencode(line)


def _files(top: Path, apart: Iterable[str] = ()) -> Iterator[str]:
    """Yields files, none of hidden folders (of git, of caches, of environments) and of reports."""
    for folder, folders, names in os.walk(top):
        if MANIFEST in names and folder != str(top):
            folders.clear()
            continue
        left = set(apart) if folder == str(top) else set()
        folders[:] = sorted(
            x for x in folders if not x.startswith(".") and x != "__pycache__" and x not in left
        )
        yield from (os.path.join(folder, name) for name in sorted(names) if name not in left)
