"""What a record was made from, what differs between its variants, and what has changed since."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence import build
from kernelexp.evidence.code import sass_lines
from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.logs import sources
from kernelexp.model.arm import Arm
from kernelexp.model.errors import KernelexpError
from kernelexp.model.record import Record
from kernelexp.report.site import seen


class Texts:
    """Files as records were made from them; each is read and checked once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, str | None] = {}

    def of(self, record: Record, file: str) -> str | None:
        """The file's text when the record was made; None if it is lost."""
        wanted = sources.of_record(record).get(file)
        if wanted is None:
            return None
        if wanted not in self._known:
            try:
                content = sources.content(self._root, record, file)
                self._known[wanted] = content.decode("utf-8", "replace")
            except (KernelexpError, OSError):
                self._known[wanted] = None
        return self._known[wanted]

    def numbered(self, record: Record) -> dict[str, dict[int, str]]:
        """The lines of each of its files that can be had, by path and number."""
        texts = {file: self.of(record, file) for file in sources.of_record(record)}
        return {
            file: dict(enumerate(split(text), 1))
            for file, text in texts.items()
            if text is not None
        }

    def now(self, file: str) -> str:
        """The file's text in the tree; empty where there is none.

        A record may name any file: pages show none from outside of the project.
        """
        path = self._root / file
        try:
            inside = path.resolve().is_relative_to(self._root.resolve())
            return path.read_text("utf-8", "replace") if inside and path.is_file() else ""
        except OSError:
            return ""


def page_of(digest: str) -> str:
    """Returns the name of the page of a file with this SHA-256."""
    return digest[:16]


def split(text: str) -> list[str]:
    """The lines of a text, as editors number them."""
    return text.removesuffix("\n").split("\n")


LINES_MAX = 500
"""Lines of a difference that are shown."""
_ARMS_MAX = 4
_SASS_MAX = 6000
"""Instructions of an entry that a difference is made of: more take seconds."""


class TextDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A unified difference of two texts, without its header."""

    title: str
    lines: tuple[str, ...]
    left_out: int = 0


def since(record: Record, changed: Iterable[str], texts: Texts) -> Iterator[TextDifference]:
    """Yields the changes in the record's files since it was made."""
    for file in changed:
        then = texts.of(record, file)
        if then is not None:
            now = split(texts.now(file))
            yield _difference(f"{file} since run {record.run}", split(then), now)


def compiled(record: Record) -> Iterator[TextDifference]:
    """Yields the differences in the command lines that compile the variants, and in the files
    read."""
    if not record.baseline.source:
        return  # published
    before = _inputs(record.baseline)
    for name, arm in _candidates(record):
        yield _difference(f"What baseline and {name} are compiled from", before, _inputs(arm))


def _candidates(record: Record) -> list[tuple[str, Arm]]:
    return list(record.by_name.items())[1:_ARMS_MAX]


def _inputs(arm: Arm) -> list[str]:
    return [*(f"-D{define}" for define in arm.defines), *arm.flags, *sorted(arm.files)]


class MachineCode(msgspec.Struct, frozen=True, kw_only=True):
    """The machine code of a build."""

    code: tuple[SassInstruction, ...] = ()
    by_place: dict[tuple[str, int], tuple[str, ...]] = {}
    """The instructions of each source line, those of what is inlined there among them; lines by
    file from the project's root and number, none without -lineinfo."""


class Codes:
    """Those of the builds that are still in a project's cache; each is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, MachineCode] = {}

    def of(self, arm: Arm) -> MachineCode:
        """An empty one where the build is no longer there."""
        if arm.build is None or not arm.identity.isalnum():  # a record may hold any text
            return MachineCode()
        if arm.identity not in self._known:
            self._known[arm.identity] = self._read(arm.identity, arm.build.entry)
        return self._known[arm.identity]

    def has(self, arms: Sequence[Arm]) -> bool:
        """Whether builds of all of them are there, without reading any."""
        return all(
            arm.build is not None
            and arm.identity.isalnum()
            and build.folder_of(self._root, arm.identity).is_dir()
            for arm in arms
        )

    def _read(self, identity: str, entry: str) -> MachineCode:
        try:
            kept = build.artefacts(self._root, identity)
            read = sass_lines.read(kept.cubin, kept.sass, entry)
        except KernelexpError:
            return MachineCode()
        code = tuple(
            msgspec.structs.replace(one, source=one.source.relative_to(str(self._root)))
            if one.source
            else one
            for one in read
        )
        by_place: dict[tuple[str, int], dict[int, str]] = defaultdict(dict)
        for one in code:
            for frame in one.source.frames() if one.source else ():
                by_place[frame.file, frame.line][one.offset] = one.text
        texts = {place: tuple(own.values()) for place, own in by_place.items()}
        return MachineCode(code=code, by_place=texts)


def sass(record: Record, codes: Codes) -> Iterator[TextDifference]:
    """Yields the differences in the SASS of baseline and candidates."""
    before = [one.text for one in codes.of(record.baseline).code]
    for name, arm in _candidates(record):
        after = [one.text for one in codes.of(arm).code]
        if before and after and max(len(before), len(after)) <= _SASS_MAX:
            yield _difference(f"SASS of baseline and {name}", before, after)


def seen_by_variants(record: Record, texts: Texts, codes: Codes) -> Iterator[TextDifference]:
    """Yields each source as the variants see it: what its axes stand for, and lines that only one
    has."""
    base = record.baseline
    for name, arm in _candidates(record):
        for file in sorted(base.files.keys() & arm.files.keys()):
            text = texts.of(record, file)
            lines = _seen(split(text), file, (base, arm), codes) if text is not None else ()
            if lines:
                yield _shown(f"{file} as baseline and {name} see it", lines)
        if base.source and arm.source and base.source != arm.source:
            one, other = (texts.of(record, item) for item in (base.source, arm.source))
            if one is not None and other is not None:
                yield _difference(f"{base.source} and {arm.source}", split(one), split(other))


def _seen(text: Sequence[str], file: str, arms: tuple[Arm, Arm], codes: Codes) -> tuple[str, ...]:
    one, other = (dict(_define(define) for define in arm.defines) for arm in arms)
    differing = {n for n in one.keys() | other.keys() if one.get(n) != other.get(n)}
    before: seen.Lines = text
    after: seen.Lines = text
    if any(name in line for line in text for name in differing):
        before, after = (seen.lines(text, defines, differing) for defines in (one, other))
    own, others = ({line for path, line in codes.of(arm).by_place if path == file} for arm in arms)
    if own and others:
        before, after = seen.without_others(before, after, own, others)
    return tuple(seen.difference(before, after))


def _define(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _difference(title: str, before: Sequence[str], after: Sequence[str]) -> TextDifference:
    return _shown(title, list(difflib.unified_diff(before, after, lineterm="", n=3))[2:])


def _shown(title: str, lines: Sequence[str]) -> TextDifference:
    return TextDifference(
        title=title, lines=tuple(lines[:LINES_MAX]), left_out=max(0, len(lines) - LINES_MAX)
    )
