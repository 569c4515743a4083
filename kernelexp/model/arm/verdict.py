"""Outcome of the evidence: a status, and the reason for it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Status(StrEnum):
    """The machine's verdict on candidate against baseline, from the evidence."""

    IMPROVED = "IMPROVED"
    REJECTED = "REJECTED"
    NEUTRAL = "NEUTRAL"
    INCONCLUSIVE = "INCONCLUSIVE"
    INCORRECT = "INCORRECT"
    IMPOSSIBLE = "IMPOSSIBLE"
    BUILD_FAILED = "BUILD_FAILED"
    CRASHED = "CRASHED"
    TIMED_OUT = "TIMED_OUT"
    INVALID = "INVALID"
    UNMEASURED = "UNMEASURED"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A status, a reason code for machines, and the reason as a sentence for people."""

    status: Status
    reason: str
    sentence: str
