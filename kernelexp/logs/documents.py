"""JSON files of the logs as they are read: of a known version, or why one can't be believed."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from kernelexp.model.text import spelled

# The largest record committed so far has 210 KB; 16 processes of 24 arms would have 20 MB.
BYTES_MAX = 256 << 20


class _Versioned(Protocol):
    @property
    def version(self) -> int: ...


Document = TypeVar("Document", bound=_Versioned)


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """A file among the records that is none, or that is not to be believed, and why."""

    path: Path
    why: str


class _Version(msgspec.Struct):
    version: int = 0


_version_decoder = msgspec.json.Decoder(_Version)

# The last line of a file: of all before it. No signature: whoever edits a file can work it out.
_DIGEST = re.compile(rb',\n "digest": "([0-9a-f]{64})"\n}\n$')


def sealed(text: str) -> str:
    """A JSON object with a digest of itself, by which an edit is noticed."""
    body = text.rstrip().removesuffix("}").rstrip()
    return f'{body},\n "digest": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def is_edited(data: bytes) -> bool:
    """Whether a file is not as it was written; early versions wrote no digest that would tell."""
    data = data.replace(b"\r\n", b"\n")  # as git checks files out for Windows
    if seal := _DIGEST.search(data, max(0, len(data) - 100)):
        return hashlib.sha256(data[: seal.start()]).hexdigest() != seal[1].decode()
    return b'"digest":' in data


def decode(
    path: str, decoder: msgspec.json.Decoder[Document], newest: int, kind: str
) -> Document | Unreadable:
    """Reads a file of the logs, or says why it is no `kind` of version `newest` or before."""
    content = read(path)
    if isinstance(content, Unreadable):
        return content
    document = parse(content, decoder, newest, kind)
    if isinstance(document, str):
        return Unreadable(path=Path(path), why=document)
    if getattr(document, "edited", False):
        return Unreadable(path=Path(path), why="was edited after it was written")
    return document


def apart(
    documents: Iterable[Document | Unreadable],
) -> tuple[list[Document], list[Unreadable]]:
    """Documents, and files that are none, each in their order."""
    read, unreadable = [], []
    for document in documents:
        if isinstance(document, Unreadable):
            unreadable.append(document)
        else:
            read.append(document)
    return read, unreadable


def parse(
    content: bytes, decoder: msgspec.json.Decoder[Document], newest: int, kind: str
) -> Document | str:
    """The document of a file's content, or why it is none, as the end of a sentence."""
    try:
        document = decoder.decode(content)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return _explain(content, error, newest, kind)
    if document.version > newest:
        return _newer(document.version, newest)
    if is_edited(content) and isinstance(document, msgspec.Struct) and hasattr(document, "edited"):
        return msgspec.structs.replace(document, edited=True)
    return document


def read(path: str) -> bytes | Unreadable:
    """The content of a file of the logs."""
    try:
        return _bytes(path)
    except OSError as error:
        return Unreadable(path=Path(path), why=f"can't be read: {error.strerror}")


def _bytes(path: str) -> bytes:
    """A regular file of the folder itself: a clone may hold a link to anything, or a pipe."""
    # open() costs twice as much; 10,000 records are to be read in under 0.5 s.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > BYTES_MAX:
            raise OSError(0, f"it is not a file of at most {BYTES_MAX >> 20} MiB")
        return os.read(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def _explain(text: bytes, error: Exception, newest: int, kind: str) -> str:
    try:
        version = _version_decoder.decode(text).version
    except msgspec.ValidationError:
        return f"is not a {kind}: {spelled(str(error))}"
    except (msgspec.DecodeError, ValueError, RecursionError):
        return f"is truncated or invalid JSON: {spelled(str(error))}"
    return (
        _newer(version, newest) if version > newest else f"is not a {kind}: {spelled(str(error))}"
    )


def _newer(version: int, newest: int) -> str:
    return f"has version {version}, written by a newer kernelexp (this one reads {newest})"
