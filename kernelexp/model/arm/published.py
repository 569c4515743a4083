"""Evidence of kind `published`: figures that somebody else stated about a variant."""

from __future__ import annotations

import msgspec


class PublishedPeer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody else's kernel, as it was published next to a variant."""

    name: str
    time_ms: float
    tflops: float | None = None
    notes: str = ""
    """What it does of the variant's work, and how it was chosen."""


class PublishedResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Figures that somebody published about a variant; what was not published is None."""

    time_ms: float | None = None
    time_ms_to: float | None = None
    """The upper end, where a range was published."""
    tflops: float | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    """Stores and loads together."""
    stack_bytes: int | None = None
    approximate: bool = False
    """The publisher wrote these figures with a tilde."""
    peers: tuple[PublishedPeer, ...] = ()
