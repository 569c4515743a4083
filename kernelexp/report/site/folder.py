"""The folder of a report: its own files are replaced or removed, all others are left alone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from kernelexp.model.decoding import decode
from kernelexp.model.errors import UsageError
from kernelexp.report.site.site import FOLDERS, ProjectSite
from kernelexp.system import wholefile

MANIFEST = "kernelexp-report.json"
_OWN = re.compile(rf"(index\.html|log\.json|({'|'.join(sorted(FOLDERS))})/[\w.-]+\.html)")


class _Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a folder that are a report's."""

    files: tuple[str, ...]


def former(folder: Path, force: bool) -> set[str]:
    """The files that an earlier report wrote into the folder; one that is being written is waited
    for, since its list of files comes with them.

    Raises UsageError where the folder holds something but no report, unless `force`.
    """
    if not folder.exists():
        return set()
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name another one with --out.")
    with _locked(folder, fcntl.LOCK_SH):
        return _former(folder, force)


def _former(folder: Path, force: bool) -> set[str]:
    try:
        manifest = decode((folder / MANIFEST).read_bytes(), _Manifest)
    except (FileNotFoundError, msgspec.DecodeError):
        if force or not any(folder.iterdir()):
            return set()
        raise UsageError(
            f"{folder} holds files that kernelexp did not write: name another folder with --out, "
            "or write into it with --force."
        ) from None
    return {path for path in manifest.files if _OWN.fullmatch(path)}


def write(site: ProjectSite, folder: Path, force: bool = False) -> int:
    """Writes every page, removes those of an earlier report that are no more, and returns how
    many there are.

    Raises UsageError, before anything is written, where a page would replace a file that no report
    wrote, unless `force`. Where it ends with an exception, the folder is as it was.
    """
    former(folder, force)
    with _alone(folder), wholefile.FilesTogether() as files:
        return _write(site, folder, force, _former(folder, force), files)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Makes the folder; no other report is written into it until the block ends."""
    paths = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _locked(folder, fcntl.LOCK_EX):
            yield
    except BaseException:
        with contextlib.suppress(OSError):  # another report has written into it since
            for path in paths:
                path.rmdir()
        raise


@contextlib.contextmanager
def _locked(folder: Path, kind: int) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, kind)
        yield
    finally:
        os.close(handle)


def _write(
    site: ProjectSite, folder: Path, force: bool, earlier: set[str], files: wholefile.FilesTogether
) -> int:
    written: set[str] = set()
    for _ in range(2):  # pages of sources are known once those that link to them are rendered
        paths = [path for path in site.paths() if path not in written]
        _require_inside(folder, earlier | set(paths))
        if not force:
            _require_free(folder, [path for path in paths if path not in earlier])
        # So that a kill leaves nothing unlisted.
        _list(folder, earlier | written | set(paths), files)
        for path in paths:
            if (content := site.render(path)) is not None:
                files.write(folder / path, content, durable=False)
                written.add(path)
    for path in earlier - written:
        files.remove(folder / path)
    _list(folder, written, files)
    return len(written)


def _list(folder: Path, paths: set[str], files: wholefile.FilesTogether) -> None:
    manifest = _Manifest(files=tuple(sorted(paths)))
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    files.write(folder / MANIFEST, text + b"\n", durable=False)


def _require_free(folder: Path, paths: Iterable[str]) -> None:
    """UsageError where one of the new paths is taken."""
    for path in paths:
        if os.path.lexists(folder / path):
            raise UsageError(
                f"{folder / path} was not written by kernelexp: move it, or overwrite it with "
                "--force."
            )


def _require_inside(folder: Path, paths: Iterable[str]) -> None:
    """UsageError where a link leads out of the folder."""
    top = folder.resolve()
    for parent in sorted({(folder / path).parent for path in paths}):
        if not parent.resolve().is_relative_to(top):
            raise UsageError(f"{parent} is a link out of {folder}: remove it.")
