"""Time limits for one piece of work, after which it is ended; `--limit` changes each."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits in seconds; the names without `_s` are those of `--limit`."""

    build_s: float = 600.0
    """One step of the compiler for one variant."""
    emulation_s: float = 900.0
    """One variant under all schedules."""
    problem_s: float = 60.0
    """One function of problem.py, its import included."""
    run_s: float = 600.0
    """One run of a program that has a main of its own."""
    profile_s: float = 300.0
    """One pass of ncu over one variant."""
