"""Why there is no modelled time."""

from __future__ import annotations

from warpsim.errors import UsageError


class NotModelled(UsageError):
    """Something that the model of time does not cover."""
