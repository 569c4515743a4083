"""The folder of a report: its own files are replaced or removed; all others are left alone."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from kernelexp.model.errors import UsageError
from kernelexp.project.problem.files import value_digest
from kernelexp.report.site.inputs import MANIFEST
from kernelexp.report.site.site import FOLDERS, ProjectSite
from kernelexp.system import disk
from kernelexp.system.disk import decode

_OWN = re.compile(rf"(index\.html|log\.json|({'|'.join(sorted(FOLDERS))})/[\w.-]+\.html)")


class _Made(msgspec.Struct, frozen=True):
    """A page as it was written: digests of what it is made from and of its content."""

    inputs: str
    content: str


class _Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a folder that are a report's."""

    files: tuple[str, ...] = ()
    made: dict[str, _Made] = {}
    environment: dict[str, str] = {}
    """Digests of the variables that records name: other values make other pages."""

    def kept(self) -> Mapping[str, _Made]:
        """Pages that may be as they were."""
        same = all(value_digest(name) == was for name, was in self.environment.items())
        return self.made if same else {}


class RenderedPages(msgspec.Struct, frozen=True):
    """How many files a report has, and how many of them are as they were."""

    files: int
    kept: int


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
        return set(_former(folder, force).files)


def _former(folder: Path, force: bool) -> _Manifest:
    try:
        manifest = decode((folder / MANIFEST).read_bytes(), _Manifest)
    except (FileNotFoundError, msgspec.DecodeError):
        if force or not any(folder.iterdir()):
            return _Manifest()
        raise UsageError(
            f"{folder} holds files that kernelexp did not write: name another folder with --out, "
            "or write into it with --force."
        ) from None
    own = tuple(path for path in manifest.files if _OWN.fullmatch(path))
    return msgspec.structs.replace(manifest, files=own)


def write(
    site: ProjectSite, folder: Path, force: bool = False, every: bool = False
) -> RenderedPages:
    """Writes the pages, and removes those of an earlier report that are no more. A page whose
    inputs are those of the earlier report is left as it is, unless `every`.

    Raises UsageError, before anything is written, where a page would replace a file that no report
    wrote, unless `force`. Where it ends with an exception, the folder is as it was.
    """
    former(folder, force)
    with _alone(folder), disk.FilesTogether() as files:
        return _write(site, folder, force, _former(folder, force), files, every)


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
    site: ProjectSite,
    folder: Path,
    force: bool,
    former: _Manifest,
    files: disk.FilesTogether,
    every: bool,
) -> RenderedPages:
    earlier, written, kept = set(former.files), set[str](), 0
    made: dict[str, _Made] = {}
    known = {} if every else former.kept()
    for _ in range(2):  # pages of sources are known once those that link to them are there
        paths = [path for path in site.paths() if path not in written]
        _require_inside(folder, earlier | set(paths))
        if not force:
            _require_free(folder, [path for path in paths if path not in earlier])
        # So that a kill leaves nothing unlisted.
        _list(folder, _Manifest(files=tuple(sorted(earlier | written | set(paths)))), files)
        for path in paths:
            inputs = site.inputs(path)
            content = _kept(folder / path, known.get(path), inputs)
            if content is not None:
                site.link(content)
                kept += 1
            elif (content := site.render(path)) is not None:
                files.write(folder / path, content, durable=False)
            if content is not None:
                written.add(path)
                if inputs:
                    made[path] = _Made(inputs, _digest(content))
    for path in earlier - written:
        files.remove(folder / path)
    named = dict.fromkeys((*former.environment, *site.tree.environment))
    environment = {name: value_digest(name) for name in named}
    manifest = _Manifest(files=tuple(sorted(written)), made=made, environment=environment)
    _list(folder, manifest, files)
    return RenderedPages(len(written), kept)


def _kept(path: Path, made: _Made | None, inputs: str) -> bytes | None:
    """The content of a page that is as it was written, of the same inputs."""
    if made is None or not inputs or made.inputs != inputs:
        return None
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if _digest(content) == made.content else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _list(folder: Path, manifest: _Manifest, files: disk.FilesTogether) -> None:
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
