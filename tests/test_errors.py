"""Exit codes: one meaning each."""

from __future__ import annotations

from kernelexp import errors
from kernelexp.errors import KernelexpError
from kernelexp.model import Status
from kernelexp.runner import _CODES


def test_every_error_class_has_a_documented_exit_code() -> None:
    assert {each.exit_code for each in KernelexpError.__subclasses__()} <= set(errors.EXIT_CODES)


def test_exit_codes_are_unique_and_fit_a_byte() -> None:
    names = ("OK", "REGRESSION", "USAGE", "BUILD", "WRONG_RESULT", "INCONCLUSIVE", "ENVIRONMENT")
    codes = [getattr(errors, name) for name in (*names, "INTERRUPTED")]
    assert sorted(codes) == sorted(errors.EXIT_CODES)
    assert all(0 <= code < 256 for code in codes)


def test_a_verdict_that_is_an_answer_ends_well() -> None:
    answers = {Status.IMPROVED, Status.REJECTED, Status.NEUTRAL, Status.IMPOSSIBLE}
    assert {status for status in Status if status not in _CODES} == answers | {Status.UNMEASURED}
