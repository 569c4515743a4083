"""Processes that talk line by line over a local socket, and the start of a forked one."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping

import msgspec

from kernelexp.model.errors import KernelexpError
from kernelexp.system.process import processes


def send(link: socket.socket, *words: str) -> None:
    link.sendall((" ".join(words) + "\n").encode())


def receive(link: socket.socket, *, spin: bool = False, deadline: float | None = None) -> str:
    """A line; EOFError where the other side is gone. To spin takes a core and 2 us less latency; it
    ends with TimeoutError at the deadline, by the clock of time.perf_counter()."""
    content = b""
    while not content.endswith(b"\n"):
        try:
            part = link.recv(1 << 16, socket.MSG_DONTWAIT if spin else 0)
        except BlockingIOError:
            if deadline is not None and time.perf_counter() > deadline:
                raise TimeoutError from None
            continue
        if not part:
            raise EOFError
        content += part
    return content.decode(errors="replace").rstrip("\n")


POLL_S = 0.5
RUNS_S = 24 * 3600.0


class ProcessGone(Exception):
    """The process has ended; its last words."""


class Link:
    """The process connects when it has started, and is heard from then on."""

    def __init__(self, listener: socket.socket, limit_s: float) -> None:
        self._listener, self._limit_s = listener, limit_s
        self._socket: socket.socket | None = None
        self.ended = threading.Event()
        self.words = ""
        """What it wrote to its standard error; once it has ended."""
        self.end: Callable[[], None] = self.close
        """With all that it started; a second time does nothing."""

    def close(self) -> None:
        self._listener.close()
        if self._socket:
            self._socket.close()

    def send(self, *words: str) -> None:
        with contextlib.suppress(OSError):  # hear() says why it has ended
            send(self._connected(), *words)

    def hear(self, *, spin: bool = False) -> str:
        """A line; ProcessGone, or TimeoutError where it takes longer than the limit."""
        link, deadline = self._connected(), time.perf_counter() + self._limit_s
        while True:
            link.settimeout(None if spin else POLL_S)  # with a limit, Python waits in every recv()
            try:
                return receive(link, spin=spin, deadline=deadline)
            except TimeoutError:
                if time.perf_counter() > deadline:
                    raise
            except (EOFError, OSError):
                self.ended.wait(POLL_S)
                raise ProcessGone(self.words) from None

    def _connected(self) -> socket.socket:
        deadline = time.perf_counter() + self._limit_s
        self._listener.settimeout(POLL_S)
        while self._socket is None:
            try:
                self._socket, _ = self._listener.accept()
            except TimeoutError:
                if self.ended.is_set() or time.perf_counter() > deadline:
                    raise ProcessGone(self.words) from None
        return self._socket


@contextlib.contextmanager
def started(
    module: str, order: msgspec.Struct, environment: Mapping[str, str], limit_s: float
) -> Iterator[Link]:
    """`main` of a module, which reads `order` with the socket to connect to; `limit_s`: of a line.

    It is forked from a process that has imported torch: that takes a tenth of the time, and two of
    them lie at the same addresses, so that their host code differs by less.
    """
    cancelled, own = processes.own_cancellation(), threading.Event()
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as place:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{place}/socket")
        listener.listen(1)
        link = Link(listener, limit_s)
        placed = msgspec.structs.replace(order, socket=f"{place}/socket")

        def run() -> None:
            processes.share_cancellation(own)
            with contextlib.suppress(KernelexpError, KeyboardInterrupt):
                stdin = msgspec.json.encode(placed).decode()
                done = processes.run_forked(
                    module, stdin=stdin, timeout_s=RUNS_S, environment=environment
                )
                link.words = done.stderr.strip()
            link.ended.set()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()

        def end() -> None:
            link.close()
            thread.join(5)
            if not cancelled.is_set() and not link.ended.is_set():
                processes.stop(own)
                thread.join(5)

        link.end = end
        try:
            yield link
        finally:
            end()
