"""Work on several items at once, in forks of this process."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import signal
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

_PR_SET_PDEATHSIG = 1


def each(
    work: Callable[[Item], Made], items: Sequence[Item], processes: int, known: Collection[object]
) -> list[Made]:
    """What `work` makes of each item, in as many processes, this one among them.

    known: objects that results may refer to, as the same objects. What a fork does not bring to an
    end, by an exception too, is done again here, last.
    """
    count = max(1, min(processes, len(items)))
    objects = {id(item): item for item in known}
    forks = [Fork(work, items[first::count], objects) for first in range(1, count)]
    try:
        parts = [[work(item) for item in items[::count]]]
        parts += [fork.answer() for fork in forks]
    finally:
        for fork in forks:
            fork.end()
    for first, part in enumerate(parts):
        part += [work(item) for item in items[first::count][len(part) :]]
    return [parts[index % count][index // count] for index in range(len(items))]


class Fork:
    """A process that works on some items."""

    def __init__(
        self, work: Callable[[Any], Any], items: Sequence[Any], objects: dict[int, object]
    ) -> None:
        self._objects = objects
        self._from, to = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._from)
            os.close(to)
            raise
        if self._pid == 0:
            os.close(self._from)
            self._work(work, items, to)
        os.close(to)

    def _work(self, work: Callable[[Any], Any], items: Sequence[Any], to: int) -> None:
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            made = io.BytesIO()
            _Pickler(made, self._objects).dump([work(item) for item in items])
            with open(to, "wb") as pipe:
                pipe.write(made.getbuffer())
        finally:
            os._exit(0)

    def answer(self) -> list[Any]:
        """What it has made of its items; nothing where it came to no end."""
        with open(self._from, "rb", closefd=False) as pipe:
            content = pipe.read()
        try:
            return _Unpickler(content, self._objects).load() if content else []
        except (EOFError, pickle.UnpicklingError):  # it was killed as it wrote this
            return []

    def end(self) -> None:
        os.close(self._from)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, objects: dict[int, object]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._objects = objects

    def persistent_id(self, item: Any) -> int | None:
        return id(item) if id(item) in self._objects else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, objects: dict[int, object]) -> None:
        super().__init__(io.BytesIO(content))
        self._objects = objects

    def persistent_load(self, number: Any) -> object:
        return self._objects[number]
