"""The mistakes a user can make: one class, one sentence, one exit code each."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence

from kernelexp.model.text import printable, shorten, spelled
from warpsim.errors import UsageError as UsageError
from warpsim.errors import UserError

# The exit codes of every command. Never a count: a count of 256 would be success.
OK = 0
REGRESSION = 1
USAGE = UsageError.exit_code
BUILD = 3
WRONG_RESULT = 4
INCONCLUSIVE = 5
ENVIRONMENT = 6
INTERRUPTED = 130
TERMINATED = 143
BROKEN_PIPE = 141
"""What a shell reports for a process that SIGPIPE ended: `kernelexp log | head -1`."""

SHOWN = 10
"""Faults of one ConfigurationError that its sentence spells out."""

EXIT_CODES: dict[int, str] = {
    OK: "ok",
    REGRESSION: "a gate found a difference, or a record is not reproduced",
    USAGE: "usage or configuration",
    BUILD: "a variant does not build",
    WRONG_RESULT: "a kernel gives a wrong result, crashes or hangs",
    INCONCLUSIVE: "the measurement does not decide",
    ENVIRONMENT: "something is missing or broken on this machine",
    INTERRUPTED: "interrupted",
    BROKEN_PIPE: "the output was closed",
    TERMINATED: "terminated",
}


KernelexpError = UserError
"""A mistake that ends the command with its sentence and its exit code, without a traceback."""


class ConfigurationError(KernelexpError):
    """Faults in what people write (experiments.yaml, problem.py), one per line.

    The sentence has the first ten and how many more there are; `faults` has all.
    """

    exit_code = USAGE

    def __init__(self, *faults: str) -> None:
        shown, more = faults[:SHOWN], len(faults) - SHOWN
        rest = [f"... and {more} more mistake{'s' if more > 1 else ''}"] if more > 0 else []
        super().__init__("\n".join([*shown, *rest]))
        self.faults = faults


class BuildError(KernelexpError):
    """A variant that a command needs and that does not build."""

    exit_code = BUILD


class KernelFault(KernelexpError):
    """A kernel that crashes, hangs or is wrong where a command needs it to be right."""

    exit_code = WRONG_RESULT


class EnvironmentFault(KernelexpError):
    """A tool, driver or file that this machine lacks."""

    exit_code = ENVIRONMENT


# Only writing fails with these.
_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EEXIST, errno.ENOTEMPTY}


def explain(error: OSError) -> str:
    """Says what the operating system refused, in one sentence with the path and no full stop."""
    reason = error.strerror or str(error) or type(error).__name__
    if isinstance(error.filename, str | bytes | os.PathLike):
        name = shorten(printable(os.fsdecode(error.filename)), 200).replace("\n", "\\n")
    elif error.errno in _WRITING:
        name = "a file"
    else:
        return reason
    return f"{name} can't be {'written' if error.errno in _WRITING else 'opened'}: {reason}"


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that does not exist: the nearest that does, and all."""
    names = list(known)
    close = nearest(name, names)
    hint = f"; did you mean {close!r}?" if close else ";"
    return f"{hint} {'K' if close else 'k'}nown: {join(names)}"


def nearest(name: str, known: Sequence[str]) -> str:
    """Returns the known name closest in spelling to an unknown one; empty if there is none."""
    import difflib

    if alike := [item for item in known if item.casefold() == name.casefold()]:
        return alike[0]
    comparable = known if len(name) <= 100 and len(known) <= 300 else []
    bare = {item.lstrip("-"): item for item in comparable}  # dashes would make all options alike
    return next((bare[near] for near in difflib.get_close_matches(name.lstrip("-"), bare, n=1)), "")


def join(names: Iterable[str]) -> str:
    """Names with commas, as many as a sentence holds."""
    names = list(names)
    shown = [shorten(spelled(name)) for name in names[:30]]
    rest = [f"and {len(names) - 30:,} more"] if len(names) > 30 else []
    return ", ".join([*shown, *rest]) or "none"
