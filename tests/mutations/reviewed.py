"""Why nobody needs to find a mutant."""

from __future__ import annotations

from typing import NamedTuple


class Harmless(NamedTuple):
    """Why nobody needs to find a mutant."""

    formal: bool
    reason: str


class Reviewed(NamedTuple):
    """Mutants by a pattern of their keys."""

    pattern: str
    harmless: Harmless


def equivalent(pattern: str, reason: str) -> Reviewed:
    return Reviewed(pattern, Harmless(False, reason))


def formal(pattern: str, reason: str) -> Reviewed:
    return Reviewed(pattern, Harmless(True, reason))
