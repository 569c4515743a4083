"""Progress of a long piece of work, as a service reports it to whoever displays it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

Phase: TypeAlias = Literal["building", "emulating", "modelling", "measuring", "profiling"]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One report; the first comes before any work is done, with `done` 0."""

    phase: Phase
    done: int
    total: int
    now: str = ""
    """What is worked on at this moment, such as a variant's label."""


OnProgress: TypeAlias = Callable[[Step], None]


class Joined:
    """Several pieces of work of the same kind at the same time, told as one."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._tell = on_progress
        self._lock = threading.Lock()
        self._latest: dict[object, Step] = {}

    def of(self, piece: object) -> OnProgress | None:
        """Takes the steps of one piece of work, from any thread."""
        if self._tell is None:
            return None
        tell = self._tell

        def note(step: Step) -> None:
            with self._lock:
                self._latest[piece] = step
                done = sum(item.done for item in self._latest.values())
                total = sum(item.total for item in self._latest.values())
                tell(Step(phase=step.phase, done=done, total=total, now=step.now))

        return note
