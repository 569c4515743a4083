"""SASS of code that was disassembled before, in any project of the user.

nvdisasm takes 0.5 s of the 0.9 s of a small build. A comment, a moved line or the time of a file
change a cubin, by its line table, and not its code: what is printed of that is printed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import zlib
from pathlib import Path

from kernelexp.evidence.build import combined, store
from kernelexp.evidence.build.planning import Plan
from kernelexp.system import disk

KEPT = 4_000
"""Listings, of some 10 KB each; the half that was read last stays when there are more."""


def find(plan: Plan, cubin: bytes) -> str | None:
    """Returns what `cuobjdump -res-usage -sass` printed of a cubin with this code, None where it
    has not."""
    folder, name = _folder(), _name(plan, cubin)
    if folder is None or (compressed := store.kept(folder, name)) is None:
        return None
    with contextlib.suppress(OSError):
        os.utime(folder / name)
    return zlib.decompress(compressed).decode("utf-8", "surrogateescape")


def keep(plan: Plan, cubin: bytes, printed: str) -> None:
    """Keeps what find() answers from then on."""
    if (folder := _folder()) is None:
        return
    compressed = zlib.compress(printed.encode("utf-8", "surrogateescape"), 1)
    store.keep(folder, _name(plan, cubin), compressed)
    with contextlib.suppress(OSError):
        _tidy(folder)


def _folder() -> Path | None:
    folder = disk.user_cache()
    return folder / "sass" if folder else None


def _name(plan: Plan, cubin: bytes) -> str:
    """Names what is printed by all that it is printed from, and the programs that print it."""
    parts = (plan.compiler.digest, *combined.without_debug(cubin))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _tidy(folder: Path) -> None:
    if len(os.listdir(folder)) > KEPT:
        oldest = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in oldest[: -KEPT // 2]:
            path.unlink(missing_ok=True)
