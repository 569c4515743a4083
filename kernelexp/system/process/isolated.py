"""Runs a project's code in a process of its own: one message in, one message out.

The worker's side is `serve`, the caller's is `call`. What the code prints goes to the caller's
standard error, labelled. It may call sys.exit, crash or never return: each ends in a sentence with
the place. A worker that is killed from outside (out of memory) is the machine's fault.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

import msgspec

from kernelexp.model.errors import USAGE, ConfigurationError, EnvironmentFault, KernelexpError
from kernelexp.model.text import not_utf8
from kernelexp.system.disk import decode
from kernelexp.system.process import processes

# Beyond the worker's own limit, which names the function: for importing what is slow, and for a
# worker that can't even end itself.
GRACE_S = 120.0
_FRAME = re.compile(r'^  File "([^"]*)", line (\d+) in (\S+)$', re.MULTILINE)
_TIMEOUT = "Timeout ("
OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""Signals that a process does not get for what it does."""
T = TypeVar("T")


class TimeLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A time limit, and the name by which `--limit NAME=TIME` changes it."""

    name: str
    seconds: float
    of: str = ""
    """What takes that long, where it is not the problem.py."""

    def advice(self) -> str:
        return f"allow more with --limit {self.name}={spell_seconds(2 * self.seconds)}"


class _Fault(msgspec.Struct, frozen=True, kw_only=True):
    sentence: str
    exit_code: int


class _Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reply of a worker: one of the four."""

    answer: msgspec.Raw = msgspec.Raw()
    fault: _Fault | None = None
    machine: str = ""
    """What failed outside of problem.py that is not a fault of kernelexp's either."""
    bug: str = ""
    """A traceback of kernelexp's own."""


def spell_seconds(seconds: float) -> str:
    """90 s as the options take it: 90s; whole minutes as 2m."""
    return f"{seconds / 60:g}m" if seconds >= 60 and seconds % 60 == 0 else f"{seconds:g}s"


# ---- the worker's side ---------------------------------------------------------------------------


class Watch:
    """Ends this process where a stage takes longer than its limit, and says where it was."""

    def __init__(self, file: Any) -> None:
        self._file = file

    @contextlib.contextmanager
    def stage(self, limit: TimeLimit) -> Iterator[None]:
        """A part of the work; stages do not nest."""
        os.write(self._file.fileno(), f"{limit.name}\n".encode())
        # By a thread of C code: it ends Python code and libraries alike.
        faulthandler.dump_traceback_later(limit.seconds, exit=True, file=self._file)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def serve(kind: type[T], handle: Callable[[T, Watch], Any]) -> NoReturn:
    """Answers the message on standard input, and ends the process."""
    # Descriptor 1 becomes standard error, so that a print in problem.py (or in a library that it
    # calls) is not part of the answer.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    faulthandler.enable(file=out)
    request = decode(sys.stdin.buffer.read(), kind)
    try:
        answer = handle(request, Watch(out))
        envelope = _Envelope(answer=msgspec.Raw(msgspec.json.encode(answer)))
    except KernelexpError as error:
        envelope = _Envelope(fault=_Fault(sentence=str(error), exit_code=error.exit_code))
    except (ImportError, MemoryError, OSError) as error:  # what is installed, or how much is there
        envelope = _Envelope(machine=f"{type(error).__name__}: {error}")
    except BaseException:
        envelope = _Envelope(bug=traceback.format_exc())
    out.write(msgspec.json.encode(envelope))
    out.flush()
    sys.stdout.flush()
    sys.stderr.flush()
    # Nothing that problem.py registered runs now, and torch is not torn down, which takes 0.3 s.
    os._exit(0)


# ---- the caller's side ---------------------------------------------------------------------------


def call(
    module: str, request: msgspec.Struct, kind: type[T], name: str, limits: tuple[TimeLimit, ...]
) -> T:
    """Returns the answer of a module's `main` to `request`; `name` is the problem.py that it runs.

    ConfigurationError for a fault of problem.py, past a limit too; EnvironmentFault for the
    machine's.
    """
    longest = sum(limit.seconds for limit in limits) + GRACE_S
    try:
        stdin = msgspec.json.encode(request).decode()
    except UnicodeEncodeError as fault:
        raise ConfigurationError(not_utf8(fault.object)) from None
    try:
        done = processes.run_forked(module, stdin=stdin, timeout_s=longest)
    except TimeoutError:
        raise ConfigurationError(
            f"{name}: no answer after {longest:g} s; {limits[0].advice()}."
        ) from None
    if not done.stdout and done.returncode >= 0:  # it did not come to the first stage
        last = done.stderr.strip().rpartition("\n")[2]
        raise EnvironmentFault(f"{name}: the process that was to run it did not start: {last}")
    for line in done.stderr.splitlines():
        print(f"{name}: {line}", file=sys.stderr)
    try:
        envelope = decode(done.stdout.rpartition("\n")[2], _Envelope)
    except msgspec.DecodeError:
        raise ended(done.returncode, done.stdout, name, limits) from None
    if envelope.machine:
        raise EnvironmentFault(
            f"{name}: the process that was to run it failed: {envelope.machine}."
        )
    if envelope.bug:
        raise EnvironmentFault(
            f"kernelexp failed on {name} (a bug in {module}, not in that file):\n{envelope.bug}"
        )
    if envelope.fault:
        error = ConfigurationError if envelope.fault.exit_code == USAGE else EnvironmentFault
        raise error(envelope.fault.sentence)
    if not bytes(envelope.answer):
        raise ended(done.returncode, done.stdout, name, limits)
    return decode(envelope.answer, kind)


def ended(returncode: int, dump: str, name: str, limits: tuple[TimeLimit, ...]) -> KernelexpError:
    """Returns the error for a worker that ended without an answer; `dump` is faulthandler's."""
    place, function = where(dump, name)
    if _TIMEOUT in dump:
        stage = dump.partition(_TIMEOUT)[0].rstrip("\n").rpartition("\n")[2]
        limit = next((limit for limit in limits if limit.name == stage), limits[0])
        words = f"after {spell_seconds(limit.seconds)}; {limit.advice()}."
        if limit.of:
            return EnvironmentFault(f"{limit.of}: the {limit.name} had not ended {words}")
        what = f"{function} had not returned" if function else "it had not done what it was asked"
        return ConfigurationError(f"{place}: {what} {words}")
    if -returncode in OUTSIDE:
        return EnvironmentFault(
            f"{name}: the process that ran it was ended from outside "
            f"({signal.Signals(-returncode).name}), as happens where memory runs out."
        )
    if returncode < 0:
        crash = f"crashed with {signal.Signals(-returncode).name}"
        if not function:
            return EnvironmentFault(f"{name}: the process that ran it {crash}.")
        return ConfigurationError(f"{place}: {function} {crash}.")
    return ConfigurationError(
        f"{name}: it ended its process with exit code {returncode} instead of returning: "
        "raise an exception instead of calling os._exit."
    )


def where(dump: str, name: str) -> tuple[str, str]:
    """Place and function of problem.py in a traceback of faulthandler, innermost frame first."""
    folder = name.removesuffix("problem.py")
    within = folder or f"/{name}"
    frames = [frame for frame in _FRAME.findall(dump) if within in frame[0]]
    if not frames:
        return name, ""
    file, line, _ = frames[0]
    function = frames[-1][2]
    called = "importing it" if function == "<module>" else f"{function}()"
    return f"{folder}{file.rpartition('/')[2]}:{line}", called
