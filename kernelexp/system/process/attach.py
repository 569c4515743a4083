"""Stands for a worker of the fork server: `attach.py SOCKET MODULE`.

Hands its standard streams, environment and folder over, waits, and ends as the worker did: with
its exit code, or by its signal. When this process is killed, the server kills the worker. Only the
standard library, so that it starts in a few milliseconds.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys

NOT_BEGUN = signal.SIGSTKFLT
"""By which this process ends where the server was killed before it forked: nothing else uses it."""


def main() -> None:
    """Exits with the worker's exit code; by SIGKILL where the server was killed with it."""
    link = socket.socket(fileno=int(sys.argv[1]))
    request = {"module": sys.argv[2], "cwd": _folder(), "environ": dict(os.environ)}
    answers = link.makefile("rb")
    try:
        socket.send_fds(link, [b"."], [0, 1, 2])
        link.sendall(json.dumps(request).encode() + b"\0")
        begun = answers.readline()
    except OSError:
        begun = b""
    if not begun:
        # The server can't be imported, which this says; or it was killed before it forked.
        program = (
            "import os, runpy\n"  # as the server, which is started with -m, imports it
            "import kernelexp.system.process.forkserver\n"
            f"os.kill(os.getpid(), {int(NOT_BEGUN)})"
        )
        os.execv(sys.executable, [sys.executable, "-c", program])
    pid = int(answers.readline() or 0)
    answer = answers.readline()
    if pid and not answer:
        _kill(pid)
    code = int(answer or -signal.SIGKILL)
    if code < 0:
        _die(-code)
    os._exit(code)


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _die(number: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the worker has left its own
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pause()


if __name__ == "__main__":
    main()
