"""Which leases have ended, by one watcher's own clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Mapping

LEASE_S = 15.0
LOOKS = 5
"""After a machine has slept, all that it watches seems old; its workers get time to renew."""


class Leases:
    """A lease has a mark that each renewal changes. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[Hashable, float, int]] = {}
        """The mark of each lease, when it was first seen, and how often since."""

    def ended(self, marks: Mapping[str, Hashable]) -> frozenset[str]:
        """Returns those of all current leases whose mark is as it was LEASE_S ago."""
        now = time.monotonic()
        with self._lock:
            self._seen = {key: self._look(key, mark, now) for key, mark in marks.items()}
            return frozenset(
                key
                for key, (_, since, looks) in self._seen.items()
                if now - since >= LEASE_S and looks >= LOOKS
            )

    def _look(self, key: str, mark: Hashable, now: float) -> tuple[Hashable, float, int]:
        known = self._seen.get(key)
        if known is None or known[0] != mark:
            return mark, now, 0
        return mark, known[1], known[2] + 1
