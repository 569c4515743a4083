"""Exit codes: one meaning each."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelexp.judge.verdict import _CODES
from kernelexp.model import errors
from kernelexp.model.arm import Status
from kernelexp.model.errors import KernelexpError, explain


def test_every_error_class_has_a_documented_exit_code() -> None:
    assert {item.exit_code for item in KernelexpError.__subclasses__()} <= set(errors.EXIT_CODES)


@pytest.mark.parametrize("kind", KernelexpError.__subclasses__())
def test_a_sentence_shows_what_does_not_print_in_what_it_quotes(kind: type[KernelexpError]) -> None:
    assert str(kind("scale: \ufeffwidth\x1b[2J")) == "scale: \\ufeffwidth\\x1b[2J"


def test_exit_codes_are_unique_and_fit_a_byte() -> None:
    names = ("OK", "REGRESSION", "USAGE", "BUILD", "WRONG_RESULT", "INCONCLUSIVE", "ENVIRONMENT")
    codes = [getattr(errors, name) for name in (*names, "INTERRUPTED", "BROKEN_PIPE", "TERMINATED")]
    assert sorted(codes) == sorted(errors.EXIT_CODES)
    assert all(0 <= code < 256 for code in codes)


def test_a_verdict_that_is_an_answer_ends_well() -> None:
    answers = {Status.IMPROVED, Status.REJECTED, Status.NEUTRAL, Status.IMPOSSIBLE}
    assert {status for status in Status if status not in _CODES} == answers | {Status.UNMEASURED}


def raised(action: Callable[[], object]) -> OSError:
    with pytest.raises(OSError) as caught:  # noqa: PT011, which one is what the tests are about
        action()
    return caught.value


def test_an_error_of_the_system_is_a_sentence_with_the_path(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert explain(raised(missing.read_text)) == (
        f"{missing} can't be opened: No such file or directory"
    )
    assert explain(raised(tmp_path.mkdir)) == f"{tmp_path} can't be written: File exists"
    assert explain(raised(lambda: (tmp_path / "a\x1b\nb").read_text())) == (
        f"{tmp_path}/a\\x1b\\nb can't be opened: No such file or directory"
    )


def test_a_full_disk_and_a_time_limit_need_no_path() -> None:
    assert explain(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) == (
        "a file can't be written: No space left on device"
    )
    assert explain(TimeoutError("nvcc ran past 5 s")) == "nvcc ran past 5 s"


def test_a_sentence_names_the_nearest_and_as_many_as_it_holds() -> None:
    known = [f"S{number}" for number in range(40)]
    result = errors.suggest("S399", known)
    assert result.startswith("; did you mean 'S39'? Known: S0, S1,")
    assert result.endswith(", S29, and 10 more")
    assert errors.suggest("x", []) == "; known: none"


def test_a_name_that_does_not_print_is_spelled_out() -> None:
    assert errors.suggest("x", ["a\tb", "c\nd", "\xa0"]) == "; known: a\\tb, c\\nd, \\xa0"
