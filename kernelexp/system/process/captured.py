"""Input and output of a process: only so much of that is kept.

subprocess.Popen.communicate() keeps all, which a process that prints on and on makes too much.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from typing import IO, Any

from kernelexp.system.process import watchdog

LOOK_S = 1.0
"""Seconds between checks for an exited process whose output is still open."""
READ_BYTES = 1 << 16


class Flooded(Exception):
    """A process has printed more than is kept."""


class Conversation:
    """The input and the output of a process, which may be `most` bytes."""

    def __init__(self, process: subprocess.Popen[bytes], fed: bytes | None, most: int) -> None:
        self._process, self._left = process, most
        self._fed = memoryview(fed or b"")
        self._said: dict[IO[bytes], list[bytes]] = {}

    def until(self, deadline: float, mark: str) -> tuple[bytes, bytes]:
        """Its output and its errors; what it leaves running that holds them open is killed.

        Raises TimeoutExpired, Flooded.
        """
        process = self._process
        assert process.stdout
        assert process.stderr
        self._said = {process.stdout: [], process.stderr: []}
        with selectors.DefaultSelector() as selector:
            for stream in self._said:
                selector.register(stream, selectors.EVENT_READ)
            if process.stdin:
                os.set_blocking(process.stdin.fileno(), False)
                selector.register(process.stdin, selectors.EVENT_WRITE)
            look = time.monotonic() + LOOK_S
            while selector.get_map():
                for key, _ in selector.select(max(0, min(look, deadline) - time.monotonic())):
                    self._advance(selector, key.fileobj)
                if time.monotonic() >= deadline:
                    raise subprocess.TimeoutExpired(process.args, 0)
                if time.monotonic() >= look:
                    look = time.monotonic() + LOOK_S
                    if process.poll() is not None:
                        watchdog.kill(mark, frozenset({process.pid}))
        process.wait(max(0, deadline - time.monotonic()))
        return b"".join(self._said[process.stdout]), b"".join(self._said[process.stderr])

    def _advance(self, selector: selectors.BaseSelector, stream: Any) -> None:
        """Reads or writes what can be now; closes what has ended."""
        if stream in self._said:
            read = os.read(stream.fileno(), READ_BYTES)
            self._said[stream].append(read)
            self._left -= len(read)
            if self._left < 0:
                raise Flooded
            ended = not read
        else:
            try:
                self._fed = self._fed[os.write(stream.fileno(), self._fed) :]
            except BlockingIOError:
                return
            except BrokenPipeError:  # it reads no more
                self._fed = memoryview(b"")
            ended = not self._fed
        if ended:
            selector.unregister(stream)
            stream.close()
