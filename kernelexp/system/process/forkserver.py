"""A process that has imported what is slow, and forks for each worker that runs a project's code.

Importing torch takes 3 s of a slow core, which every emulation would pay. The server's side is
`main`, the caller's is `connection`. In between is a process of its own, attach.py, that stands for
the worker: what kills it kills the worker, and it ends as the worker did.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import random
import selectors
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from kernelexp.system.process import watchdog

READ_BY_IMPORTS = ("LD_", "MKL_", "NUMEXPR_", "OMP_", "OPENBLAS_", "PYTHON", "TORCH_")
"""Variables, by their beginning, that count when a library is loaded: others, another server."""

SECRET = ("KERNELEXP_TOKEN",)
"""Variables that no worker is to see: some execute what nobody vouches for."""

LONGEST_NAME = 256
"""Of a module that is to be loaded before a worker is asked for."""


# ---- the server's side ---------------------------------------------------------------------------


def main() -> None:
    """Forks a worker for every connection that comes on descriptor 0, until that is closed."""
    server = _Server(socket.socket(fileno=os.dup(0)))
    with contextlib.suppress(EOFError):
        while True:
            server.turn()
    server.kill_all()


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._accept)
        self._workers: dict[int, _Worker] = {}

    def turn(self) -> None:
        for key, _ in self._selector.select():
            key.data(key.fileobj)

    def kill_all(self) -> None:
        for pid in list(self._workers):
            self._kill(pid)

    def _accept(self, control: socket.socket) -> None:
        message, fds, _, _ = socket.recv_fds(control, LONGEST_NAME, 1)
        if not message:
            raise EOFError
        if not fds:
            with contextlib.suppress(Exception):  # the worker imports it again
                _import(message.decode())
            return
        link = socket.socket(fileno=fds[0])
        try:
            request, standard = _receive(link)
        except (EOFError, ValueError, OSError):  # who asked was killed meanwhile
            link.close()
            return
        module = _import(request["module"])
        gc.freeze()  # what is imported stays: collections in workers need not go through it
        with contextlib.suppress(OSError):
            link.sendall(b"forks\n")  # from here on it is not asked again
        pid = os.fork()
        if pid == 0:
            self._become(request, standard, module)
        for fd in standard:
            os.close(fd)
        with contextlib.suppress(OSError):
            link.sendall(b"%d\n" % pid)
        ended = os.pidfd_open(pid)
        self._workers[pid] = _Worker(link, ended, request["environ"].get(watchdog.MARK, ""))
        self._selector.register(ended, selectors.EVENT_READ, lambda _: self._report(pid))
        self._selector.register(link, selectors.EVENT_READ, lambda _: self._kill(pid))

    def _become(self, request: dict[str, Any], standard: list[int], module: Any) -> NoReturn:
        """The worker, in the forked process; as if it had been started by who asked."""
        try:
            os.setsid()
            for number, fd in enumerate(standard):
                os.dup2(fd, number)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            os.environ.clear()
            os.environ.update(request["environ"])
            with contextlib.suppress(OSError):  # a folder that is gone
                os.chdir(request["cwd"])
            sys.path[0] = request["cwd"]
            _seed()
            module.main()
        except BaseException:
            traceback.print_exc()
        os._exit(1)

    def _report(self, pid: int) -> None:
        if pid not in self._workers:  # killed in the same turn
            return
        _, status = os.waitpid(pid, 0)
        worker = self._forget(pid)
        with contextlib.suppress(OSError), worker.link:
            worker.link.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))

    def _kill(self, pid: int) -> None:
        if pid in self._workers:  # not reported in the same turn
            worker = self._forget(pid)
            worker.link.close()
            watchdog.kill(worker.mark or "-", frozenset({pid}))
            os.waitpid(pid, 0)

    def _forget(self, pid: int) -> _Worker:
        worker = self._workers.pop(pid)
        self._selector.unregister(worker.ended)
        self._selector.unregister(worker.link)
        os.close(worker.ended)
        return worker


class _Worker:
    def __init__(self, link: socket.socket, ended: int, mark: str) -> None:
        self.link = link
        """To its attach.py; closed from there when that one is killed."""
        self.ended = ended
        self.mark = mark


def _receive(link: socket.socket) -> tuple[dict[str, Any], list[int]]:
    message, standard, _, _ = socket.recv_fds(link, 1, 3)
    if not message or len(standard) != 3:
        raise EOFError
    data = b""
    while not data.endswith(b"\0\0"):
        if not (part := link.recv(1 << 16)):
            raise EOFError
        data += part
    module, folder, *environment = map(os.fsdecode, data[:-2].split(b"\0"))
    variables = (variable.partition("=") for variable in environment)
    environ = {name: value for name, _, value in variables}
    return {"module": module, "cwd": folder, "environ": environ}, standard


def _import(name: str) -> Any:
    """The worker's module, and what it names to be loaded before the fork."""
    module = importlib.import_module(name)
    for module_name in getattr(module, "PRELOAD", ()):
        with contextlib.suppress(Exception):  # the worker imports it again, and says what is wrong
            importlib.import_module(module_name)
    return module


def _seed() -> None:
    """Two workers draw different numbers where a problem.py does not seed its own generator."""
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    if torch := sys.modules.get("torch"):
        torch.seed()


# ---- the caller's side ---------------------------------------------------------------------------


class _Client:
    lock = threading.Lock()
    control: socket.socket | None = None
    key: tuple[tuple[str, str], ...] = ()
    pid = 0


def connection(mark: str) -> socket.socket:
    """A socket for attach.py, which reaches the server; starts one where there is none.

    `mark` is that of the tree to which the server belongs. OSError where no process can be started.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        _tell(mark, lambda control: socket.send_fds(control, [b"."], [theirs.fileno()]))
    return ours


def preload(mark: str, module: str) -> None:
    """Has the server import what a module's workers need, and does not wait; as connection()."""
    _tell(mark, lambda control: control.send(module.encode()))


def _tell(mark: str, send: Callable[[socket.socket], object]) -> None:
    with _Client.lock:
        key = tuple(x for x in sorted(os.environ.items()) if x[0].startswith(READ_BY_IMPORTS))
        if _Client.control is None or _Client.key != key:
            send(_start(mark, key))
            return
        try:
            send(_Client.control)
        except OSError:  # it was killed; the next one may live
            send(_start(mark, key))


def _start(mark: str, key: tuple[tuple[str, str], ...]) -> socket.socket:
    if _Client.control is not None:
        _Client.control.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(_Client.pid, os.WNOHANG)
    _Client.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        _Client.pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "kernelexp.system.process.forkserver"],
            {
                **{name: text for name, text in os.environ.items() if name not in SECRET},
                watchdog.MARK: f"{mark}forkserver/",
            },
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsid=True,
            setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
        )
    _Client.key = key
    return _Client.control


if __name__ == "__main__":
    main()
