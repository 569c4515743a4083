"""Mistakes of the caller: one class, one sentence."""

from __future__ import annotations

from typing import ClassVar

from warpsim.text import printable


class UserError(Exception):
    """A mistake that a user can make, told in one sentence; a command ends with `exit_code`."""

    exit_code: ClassVar[int]

    def __str__(self) -> str:
        # It quotes what others wrote: labels, values, paths, a tool's own words.
        return printable(super().__str__())


class UsageError(UserError):
    """A call or a command line that can't be carried out."""

    exit_code = 2
