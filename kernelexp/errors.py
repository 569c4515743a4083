"""The mistakes a user can make: one class, one sentence, one exit code each."""

from __future__ import annotations

from typing import ClassVar

# The exit codes of every command. Never a count: a count of 256 would be success.
OK = 0
REGRESSION = 1
USAGE = 2
BUILD = 3
WRONG_RESULT = 4
INCONCLUSIVE = 5
ENVIRONMENT = 6
INTERRUPTED = 130

EXIT_CODES: dict[int, str] = {
    OK: "ok",
    REGRESSION: "a gate found a regression, or a gain that is not locked in",
    USAGE: "usage or configuration",
    BUILD: "a variant does not build",
    WRONG_RESULT: "a kernel gives a wrong result, crashes or hangs",
    INCONCLUSIVE: "the measurement does not decide",
    ENVIRONMENT: "something is missing or broken on this machine",
    INTERRUPTED: "interrupted",
}


class KernelexpError(Exception):
    """A mistake that ends the command with its sentence and its exit code, without a traceback."""

    exit_code: ClassVar[int]


class UsageError(KernelexpError):
    """A command line that can't be carried out."""

    exit_code = USAGE


class ConfigurationError(KernelexpError):
    """Faults in what people write (experiments.yaml, problem.py): all of them, one a line."""

    exit_code = USAGE

    def __init__(self, *faults: str) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class EnvironmentFault(KernelexpError):
    """A tool, driver or file that this machine lacks."""

    exit_code = ENVIRONMENT
