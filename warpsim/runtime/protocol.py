"""Messages of a program's runtime (cudart/channel.hpp): numbers of 64 bits and texts."""

from __future__ import annotations

import enum
import socket
import struct
from collections.abc import Iterable

_HEAD = struct.Struct("<II")
_NUMBER = struct.Struct("<Q")
FILES = 2
"""That come with the first byte: device memory and the states of its bytes."""


class Kind(enum.IntEnum):
    """What a message asks for or tells."""

    HELLO = 1
    MODULE = 2
    PLACE = 3
    KERNEL = 4
    LAUNCH = 5
    ALLOCATED = 6
    FREED = 7
    FINDING = 8
    TENSOR_MAP = 9
    BYE = 10
    UNLOADED = 11
    ORDER = 12
    ACCESS = 13
    REFUSED = 14
    TOUCHED = 15
    SHOWN = 16


class Message:
    """One that has come, read from its beginning."""

    def __init__(self, kind: Kind, content: bytes) -> None:
        self.kind = kind
        self._content = content
        self._at = 0

    def number(self) -> int:
        (value,) = _NUMBER.unpack_from(self._content, self._at)
        self._at += _NUMBER.size
        return int(value)

    def numbers(self, count: int) -> tuple[int, ...]:
        return tuple(self.number() for _ in range(count))

    def raw(self) -> bytes:
        """Bytes with their length before them."""
        size = self.number()
        self._at += size
        return self._content[self._at - size : self._at]

    def text(self) -> str:
        return self.raw().decode(errors="replace")

    def frames(self) -> tuple[int, ...]:
        """Return addresses, innermost first."""
        return self.numbers(self.number())


class Gone(Exception):
    """The program has ended, or closed its connection."""


class Channel:
    """The connection of one program."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def receive_files(self) -> list[int]:
        """The files that the program hands over when it connects."""
        _, files, _, _ = socket.recv_fds(self._connection, 1, FILES)
        if len(files) != FILES:
            raise Gone
        return files

    def receive(self) -> Message:
        kind, size = _HEAD.unpack(self._exactly(_HEAD.size))
        return Message(Kind(kind), self._exactly(size))

    def answer(self, *parts: int | str | bytes) -> None:
        content = b"".join(_encoded(parts))
        try:
            self._connection.sendall(struct.pack("<I", len(content)) + content)
        except OSError:
            raise Gone from None

    def _exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            try:
                part = self._connection.recv(min(size, 1 << 20))
            except OSError:
                raise Gone from None
            if not part:
                raise Gone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _encoded(parts: Iterable[int | str | bytes]) -> Iterable[bytes]:
    for part in parts:
        if isinstance(part, int):
            yield _NUMBER.pack(part)
        else:
            data = part.encode() if isinstance(part, str) else part
            yield _NUMBER.pack(len(data)) + data
