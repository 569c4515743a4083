"""Files that somebody profiled elsewhere to profiled evidence of one launch."""

from __future__ import annotations

import codecs
import hashlib
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.profile import merging, pages
from kernelexp.evidence.profile.merging import ProfiledLaunch, ProfilingSession, bare, merge
from kernelexp.model.arm import ProfiledEvidence
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.model.text import printable

BYTES_MAX = 4 << 30
_HEAD = 4096
_SESSION_MAX = 1 << 20
_TIME = "gpu__time_duration.sum"
# A report of ncu begins so.
_REPORT = b"NVR\0"
_GZIP = b"\x1f\x8b"
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


_NO_LAUNCH = f"is a session page, and has no launch: {pages.PRINT}."


class ImportedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of the files, and where it is from."""

    evidence: ProfiledEvidence
    source: str
    """Each file's name with its SHA-256, and the launch where there were several."""
    lost: tuple[str, ...] = ()
    """What could not be read, a sentence each."""


def read(
    files: Sequence[Path], kernel: str = "", launch: int | None = None, ncu: str | None = None
) -> ImportedLaunch:
    """The launch that several files of ncu are about: reports, or CSV of raw, details and source.

    `kernel` is a regular expression that the name of its kernel matches, `launch` its number from 1
    among those. UsageError where a file is not a profile, or where several launches are left;
    EnvironmentFault where a report needs an ncu that is not there.
    """
    page, digests = _read(files, ncu)
    launches, chosen = page.launches, _choose(page.launches, kernel, launch)
    sources = [f"{printable(path.name)} (SHA-256 {digests[path]})" for path in files]
    if len(launches) > 1:
        sources.append(f"launch {launches.index(chosen) + 1} of {len(launches)}")
    return ImportedLaunch(evidence=chosen.evidence, source=", ".join(sources), lost=page.lost)


def read_file(path: Path, ncu: str | None = None) -> pages.Page:
    """All launches of one file of ncu; raises as read() does."""
    return _read([path], ncu)[0]


def _read(files: Sequence[Path], ncu: str | None) -> tuple[pages.Page, dict[Path, str]]:
    """The launches of files that are about the same ones, and each file's SHA-256."""
    contents: list[pages.Page | ProfilingSession] = []
    digests = {}
    for path in files:
        digests[path], head = _hash(path)
        contents += _contents(path, head, ncu)
    read = [content for content in contents if isinstance(content, pages.Page)]
    if not read:
        raise UsageError(f"{printable(files[0].name)} {_NO_LAUNCH}")
    sessions = [content for content in contents if isinstance(content, ProfilingSession)]
    launches = merge([page.launches for page in read])
    lost = (words for page in read for words in page.lost)
    page = pages.Page(
        launches=tuple(_complete(launch, sessions) for launch in launches), lost=tuple(lost)
    )
    return page, digests


def _complete(launch: ProfiledLaunch, sessions: Sequence[ProfilingSession]) -> ProfiledLaunch:
    evidence = launch.evidence
    for session in sessions:
        evidence = merging.complete(evidence, session)
    return msgspec.structs.replace(launch, evidence=evidence)


def _hash(path: Path) -> tuple[str, bytes]:
    """SHA-256 and the first bytes of a regular file."""
    name = printable(str(path))
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{name} is not a regular file: save the page to one and name that.")
        if status.st_size > BYTES_MAX:
            raise UsageError(f"{name} has more than {BYTES_MAX >> 30} GiB: {pages.PRINT}.")
        with path.open("rb") as file:
            head = file.read(_HEAD)
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest(), head
    except OSError as error:
        raise UsageError(f"{name} can't be read: {error.strerror}.") from None


def _contents(
    path: Path, head: bytes, named: str | None
) -> Iterator[pages.Page | ProfilingSession]:
    """The pages of a file, and how it was recorded if it says that."""
    if head.startswith(_REPORT) or path.suffix == ".ncu-rep":
        from kernelexp.evidence.profile import ncu as programs  # starts processes; pages need none

        try:
            ncu = programs.find(named)
        except EnvironmentFault:
            raise EnvironmentFault(
                f"{printable(path.name)} is a report, which only ncu can read, and ncu is not on "
                "the PATH: print its pages where ncu is (ncu --import REPORT.ncu-rep --csv --page "
                "raw --print-units base > raw.csv; also details and source), and import these."
            ) from None
        yield from programs.read_report(ncu, path.absolute(), programs.REPORT, path.name)
        yield programs.read_session(ncu, path.absolute())
        return
    if head.startswith(_GZIP):
        raise UsageError(f"{printable(path.name)} is compressed: unpack it (gunzip) first.")
    encoding = next((_MARKS[mark] for mark in _MARKS if head.startswith(mark)), "utf-8")
    with path.open(encoding=encoding, errors="replace", newline=None) as lines:
        if merging.is_page(head.decode(encoding, "ignore").replace("\r", "")):
            yield merging.read(lines.read(_SESSION_MAX))
            return
        yield pages.parse(lines, path.name)


def _choose(launches: Sequence[ProfiledLaunch], kernel: str, number: int | None) -> ProfiledLaunch:
    try:
        pattern = re.compile(kernel)
    except re.error as error:
        raise UsageError(f"--kernel {kernel!r} is not a regular expression: {error}.") from None
    fitting = [launch for launch in launches if pattern.search(launch.evidence.entry)]
    if not fitting:
        names = ", ".join(dict.fromkeys(bare(launch.evidence.entry) for launch in launches))
        raise UsageError(f"no launch is of a kernel that matches {kernel!r}: there are {names}.")
    if number is not None and not 1 <= number <= len(fitting):
        raise UsageError(f"--launch {number} should be from 1 to {len(fitting)}.")
    if number is None and len(fitting) > 1:
        listed = "\n".join(f"  {at}  {_spell(item)}" for at, item in enumerate(fitting[:20], 1))
        more = f"\n  ... and {len(fitting) - 20} more" if len(fitting) > 20 else ""
        raise UsageError(
            f"there are {len(fitting)} launches: choose one with --launch N, or with --kernel "
            f"REGEX.\n{listed}{more}"
        )
    return fitting[(number or 1) - 1]


def _spell(launch: ProfiledLaunch) -> str:
    evidence = launch.evidence
    parts = [printable(bare(evidence.entry)) or "(no name)"]
    if evidence.grid and evidence.block:
        parts.append(f"{evidence.grid} x {evidence.block}")
    time = evidence.figures.get(_TIME)
    if isinstance(time, float):
        parts.append(f"{time / 1000:,.2f} us")
    return "  ".join(parts)
