"""Stands for a worker of the fork server: `attach.py SOCKET MODULE`.

Hands its standard streams, environment and folder over, waits, and ends as the worker did: with
its exit code, or by its signal. When this process is killed, the server kills the worker.

Every worker waits for this process to start, so that it imports next to nothing: it takes 16 ms, of
which the interpreter has 14; with json, signal and socket it took 42.
"""

from __future__ import annotations

import _socket
import os
import sys

NOT_BEGUN = 16
"""SIGSTKFLT, by which this process ends where the server was killed before it forked: nothing else
uses it."""
_SIGKILL, _SIGSTOP = 9, 19


def main() -> None:
    """Exits with the worker's exit code; by SIGKILL where the server was killed with it."""
    link = _socket.socket(fileno=int(sys.argv[1]))
    environment = (name + b"=" + value for name, value in os.environb.items())
    request = (os.fsencode(sys.argv[2]), os.fsencode(_folder()), *environment)
    standard = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    try:
        link.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, standard)])
        link.sendall(b"\0".join(request) + b"\0\0")
        begun = _read_line(link)
    except OSError:
        begun = b""
    if not begun:
        # The server can't be imported, which this says; or it was killed before it forked.
        program = (
            "import os, runpy\n"  # as the server, which is started with -m, imports it
            "import kernelexp.system.process.forkserver\n"
            f"os.kill(os.getpid(), {NOT_BEGUN})"
        )
        os.execv(sys.executable, [sys.executable, "-c", program])
    pid = int(_read_line(link) or 0)
    answer = _read_line(link)
    if pid and not answer:
        _kill(pid)
    code = int(answer or -_SIGKILL)
    if code < 0:
        _die(-code)
    os._exit(code)


def _read_line(link: _socket.socket) -> bytes:
    """The server's next line; empty where it has gone."""
    line = b""
    while not line.endswith(b"\n"):
        if not (byte := link.recv(1)):
            return b""
        line += byte
    return line


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, _SIGKILL)
    except ProcessLookupError:
        pass


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _die(number: int) -> None:
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the worker has left its own
    if number not in (_SIGKILL, _SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pause()


if __name__ == "__main__":
    main()
