"""The first page of a server, kept between its starts: it is made from every record of a project.

It is served again if no file of the project, no module of kernelexp and no variable named in a
record has changed. Files are compared as git compares them: by size, inode and times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kernelexp.evidence import build
from kernelexp.project.problem.files import value_digest
from kernelexp.report.site import inputs
from kernelexp.system.disk import decode

_NAME = "first.json"


class _KeptPage(msgspec.Struct, frozen=True, kw_only=True):
    state: str
    environment: dict[str, str]
    """Digests of the variables that records name."""
    page: bytes


def keep(root: Path, state: str, environment: Mapping[str, str], page: bytes) -> None:
    """Keeps a page with the state() from before it was rendered; not if that is empty."""
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
    same = all(value_digest(name) == was for name, was in kept.environment.items())
    return kept.page if same and kept.state == state else None


def state(root: Path) -> str:
    """Returns a digest of all that a first page may be made from; empty where that is too much."""
    files = inputs.state(root)
    day = f"{datetime.now(UTC):%Y%m%d}"
    return hashlib.sha256(f"{day} {files}".encode()).hexdigest() if files else ""


def _folder(root: Path) -> Path:
    return root / build.CACHE / "pages"
