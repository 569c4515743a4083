"""An arm that is timed: its process, and the clock, which is this one's."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.model.arm.verdict import Status
from kernelexp.model.errors import EnvironmentFault, KernelexpError
from kernelexp.services.tasks import failing
from kernelexp.services.tasks.arm_process import ArmOrder, receive, send
from kernelexp.services.tasks.failing import TaskFailed
from kernelexp.system.process import processes

SOLUTION = "solution"
POLL_S = 0.5


class SolutionTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A call for each of several sets of inputs."""

    ready_s: float
    """From when its inputs were named to when it had them, before the clock."""
    call_s: float
    """Of all calls together."""
    digests: tuple[int, ...]


class TimedArmProcess:
    """Its answers are files in a folder; what it was asked for is in `kept`."""

    def __init__(
        self,
        name: str,
        listener: socket.socket,
        ended: threading.Event,
        words: Sequence[str],
        answers: Path,
        limit_s: float,
    ) -> None:
        self.name, self._listener, self._answers = name, listener, answers
        self._ended, self._words, self._limit_s = ended, words, limit_s
        self._link = socket.socket(socket.AF_UNIX)
        self.end: Callable[[], None] = self.close
        """With all that it started; a second time does nothing."""

    def close(self) -> None:
        self._listener.close()
        self._link.close()

    def begin_to_open(self) -> None:
        """Its libraries may be loaded; from here on its solution's code runs."""
        self._connect()
        with contextlib.suppress(OSError):  # wait_until_open() says why it has ended
            send(self._link, "open")

    def _connect(self) -> None:
        self._link.close()
        self._listener.settimeout(POLL_S)
        deadline = time.perf_counter() + self._limit_s
        while True:
            try:
                self._link, _ = self._listener.accept()
                return
            except TimeoutError:
                if self._ended.is_set() or time.perf_counter() > deadline:
                    self._fail(Status.CRASHED, "ended", f"its process ended{self._last_words()}.")

    def wait_until_open(self) -> None:
        self._hear()

    def turn(
        self, inputs: Sequence[Path], *, keep: Mapping[int, str] | None = None
    ) -> SolutionTurn:
        """A call with each file of inputs, which it has not seen before; `keep`: names for answers
        by the place of their inputs."""
        send(self._link, "warm")
        self._hear()
        begun = time.perf_counter()
        send(self._link, json.dumps([str(path) for path in inputs]))
        self._hear()
        ready = time.perf_counter()
        send(self._link, "go")
        words = self._hear(spin=True)[1:]
        done = time.perf_counter()
        wanted = [[place, str(self._answers / name)] for place, name in (keep or {}).items()]
        send(self._link, json.dumps(wanted))
        self._hear()
        digests = tuple(int(w) if w.lstrip("-").isdigit() else 0 for w in words[: len(inputs)])
        return SolutionTurn(ready_s=ready - begun, call_s=done - ready, digests=digests)

    def _hear(self, *, spin: bool = False) -> list[str]:
        deadline = time.perf_counter() + self._limit_s
        while True:
            self._link.settimeout(POLL_S)
            try:
                line = _spun(self._link, deadline) if spin else receive(self._link)
            except TimeoutError:
                if time.perf_counter() > deadline:
                    words = f"a call had not ended after {self._limit_s:g} s."
                    self._fail(Status.TIMED_OUT, "limit", words)
                continue
            except (EOFError, OSError):
                self._fail(Status.CRASHED, "ended", f"its process ended{self._last_words()}.")
            word, _, rest = line.partition(" ")
            if word == "failed":
                raise self._raised(rest)
            return [word, *rest.split()]

    def _fail(self, status: Status, reason: str, words: str) -> None:
        if self.name != SOLUTION:
            raise EnvironmentFault(f"the {self.name} can't be timed: {words}")
        raise TaskFailed(status, reason, f"on the GPU: {words}")

    def _last_words(self) -> str:
        path = self._answers / "errors"
        words = path.read_text(errors="replace").strip() if path.is_file() else ""
        words = words or "".join(self._words).strip()
        return f": {words.splitlines()[-1][:300]}" if words else " in the middle of a call"

    def _raised(self, told: str) -> Exception:
        try:
            content = json.loads(told)
        except ValueError:
            content = {}
        if self.name != SOLUTION:
            return EnvironmentFault(f"the {self.name} can't be timed: {content.get('sentence')}")
        if content.get("error") == "build":
            words = str(content["sentence"])[:2000]
            return TaskFailed(Status.BUILD_FAILED, "compile", words)
        return failing.raised(content)


def _spun(link: socket.socket, deadline: float) -> str:
    link.setblocking(False)
    content = b""
    while not content.endswith(b"\n"):
        try:
            part = link.recv(1 << 16)
        except BlockingIOError:
            if time.perf_counter() > deadline:
                raise TimeoutError from None
            continue
        if not part:
            raise EOFError
        content += part
    return content.decode(errors="replace").rstrip("\n")


@contextlib.contextmanager
def opened(
    order: ArmOrder, answers: Path, environment: Mapping[str, str], limit_s: float
) -> Iterator[TimedArmProcess]:
    """The process of an arm, which waits to be opened.

    It is forked from one that has imported torch: that takes a tenth of the time, and the arms of a
    process lie at the same addresses, so that their host code differs by less.
    """
    cancelled, own, ended = processes.own_cancellation(), threading.Event(), threading.Event()

    def run() -> None:
        processes.share_cancellation(own)
        with contextlib.suppress(KernelexpError, KeyboardInterrupt):
            done = processes.run_forked(
                "kernelexp.services.tasks.arm_process",
                stdin=msgspec.json.encode(placed).decode(),
                timeout_s=60 * limit_s,
                environment=environment,
            )
            words.append(done.stderr)
        ended.set()

    words: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as place:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{place}/socket")
        listener.listen(1)
        placed = msgspec.structs.replace(order, socket=f"{place}/socket")
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        arm = TimedArmProcess(order.arm, listener, ended, words, answers, limit_s)

        def end() -> None:
            arm.close()
            thread.join(5)
            if not cancelled.is_set() and not ended.is_set():
                processes.stop(own)
                thread.join(5)

        arm.end = end
        try:
            yield arm
        finally:
            end()


def hand_over(own: Path, given: Path, place: int) -> Path:
    """A set of inputs put where the arms can read it, under a name that says nothing."""
    name = secrets.token_hex(8)
    for suffix in (".json", ".bin"):
        os.link(own / f"set-{place}{suffix}", given / f"{name}{suffix}")
    return given / name
