"""The first page of a server, kept between its starts: it is made from every record of a project.

It is served again where no file of the project, no module of kernelexp and no variable that a
record names has changed, by what git goes by too: size, inode and times of each file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import kernelexp
import warpsim
from kernelexp.evidence import build
from kernelexp.model.decoding import decode
from kernelexp.project.problem import reads

_NAME = "first.json"
_FILES_MAX = 200_000


class _KeptPage(msgspec.Struct, frozen=True, kw_only=True):
    state: str
    environment: dict[str, str]
    """Digests of the variables that records name."""
    page: bytes


def keep(root: Path, state: str, environment: Mapping[str, str], page: bytes) -> None:
    """Keeps a page that was made from what state() said before; an empty state is never kept."""
    if state:
        kept = _KeptPage(state=state, environment=dict(environment), page=page)
        try:
            build.keep(_folder(root), _NAME, msgspec.json.encode(kept))
        except OSError:
            return  # a project that can't be written can be read


def kept(root: Path, state: str) -> bytes | None:
    """The page that was kept in this state; None where there is none."""
    content = build.kept(_folder(root), _NAME) if state else None
    if content is None:
        return None
    kept = decode(content, _KeptPage)
    same = all(reads.value_digest(name) == was for name, was in kept.environment.items())
    return kept.page if same and kept.state == state else None


def state(root: Path) -> str:
    """Returns a digest of all that a first page may be made from; empty where that is too much."""
    digest = hashlib.sha256(f"{datetime.now(UTC):%Y%m%d}".encode())
    count = 0
    packages = (Path(str(package.__file__)).parent for package in (kernelexp, warpsim))
    for top in (root, *packages):
        for path in _files(top):
            count += 1
            if count > _FILES_MAX:
                return ""
            try:
                own = os.lstat(path)
            except OSError:
                continue
            line = f"{path} {own.st_ino} {own.st_size} {own.st_mtime_ns} {own.st_ctime_ns}\n"
            digest.update(os.fsencode(line))
    return digest.hexdigest()


def _files(top: Path) -> Iterator[str]:
    """Yields files, none of hidden folders: of git, of caches, of environments."""
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(x for x in folders if not x.startswith(".") and x != "__pycache__")
        for name in sorted(names):
            yield os.path.join(folder, name)


def _folder(root: Path) -> Path:
    return root / build.CACHE / "pages"
