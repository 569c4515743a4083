"""The routes, the server, and its own workers."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import faulthandler
import logging
import os
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from kernelexp.api.service.answers import Door, OneByOne, ServeOptions, guarded, to_json
from kernelexp.api.service.evaluations import Evaluations, WorkerCalls
from kernelexp.api.service.pages import ROUTES, ReportPages, State, describe
from kernelexp.model.errors import EnvironmentFault, KernelexpError
from kernelexp.services.serving.queue import Queue
from kernelexp.services.serving.worker import new_name
from kernelexp.system.process import processes
from kernelexp.system.process.interrupts import Interrupted

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

PAUSES_S = (1.0, 60.0)
"""Before a worker that ended is started again: at first, and at most."""
SWITCH_S = 0.0005
ENDING_S = 10.0
"""For workers that were killed to be gone."""
END_S = 20.0
"""From a signal to the end: 5 s for answers that are on their way, ENDING_S for workers."""
FOREVER_S = 10 * 365 * 86400.0
SILENT_S = 60.0
"""Between two messages that no connection can be accepted."""
WAITING = 512
"""Connections that wait to be accepted."""
NEEDED = "kernelexp serve needs its extra: pip install 'kernelexp[serve]'."
OnMessage = Callable[[str], object]


def serve(options: ServeOptions, say: OnMessage) -> None:
    """Serves until a signal, which ends its workers too. `say` is told what users should know."""
    try:
        import uvicorn
    except ImportError:
        raise EnvironmentFault(NEEDED) from None
    # Each call of SQLite lets go of the interpreter, and waits this long to have it back.
    sys.setswitchinterval(SWITCH_S)
    routes = application(options)
    with _listening(options) as listener:
        config = uvicorn.Config(
            routes, log_level="warning", timeout_graceful_shutdown=5, lifespan="off"
        )
        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).addFilter(Plainly())
        host = f"[{options.host}]" if ":" in options.host else options.host
        say(f"Serving evaluations at http://{host}:{listener.getsockname()[1]}/.")
        server = uvicorn.Server(config)
        end = server.handle_exit

        def end_in_time(number: int, frame: FrameType | None) -> None:
            threading.Thread(target=_end_late, args=(number,), daemon=True).start()
            end(number, frame)

        server.handle_exit = end_in_time  # type: ignore[assignment]
        with _workers(options, say), _hangups(server.handle_exit):
            server.run(sockets=[listener])


def _end_late(number: int) -> None:
    """Ends the process where the way out hangs: one service was still there after 30 s (of 120
    that were then ended to find why, none)."""
    time.sleep(END_S)
    sys.stderr.write(
        f"The service did not end within {END_S:.0f} s of the signal; it waits here:\n"
    )
    faulthandler.dump_traceback(all_threads=True)
    os._exit(128 + number)  # the watchdog kills what is left


@contextlib.contextmanager
def _hangups(end: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """SIGHUP ends the server by its flag, as uvicorn has SIGINT and SIGTERM end it.

    What the command's own handler raises goes nowhere while a request is answered: uvicorn takes
    any exception there for the application's (3 of 10 services went on serving).
    """
    before = signal.getsignal(signal.SIGHUP)
    if before is signal.SIG_IGN:
        yield
        return
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        end(number, frame)

    signal.signal(signal.SIGHUP, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
    if came:
        signal.raise_signal(signal.SIGHUP)


class Plainly(logging.Filter):
    """No traceback where no program is at fault: the service ends, or clients have all of its
    file descriptors (asyncio 3.11 says so up to 2,048 times a second)."""

    def __init__(self) -> None:
        super().__init__()
        self._again = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        ended = isinstance(error, ValueError) and "_start_serving" in record.getMessage()
        if ended or isinstance(error, asyncio.CancelledError | Interrupted):
            return False
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            return True
        now = time.monotonic()
        if now < self._again:
            return False
        self._again = now + SILENT_S
        record.msg, record.args, record.exc_info = f"Connections have to wait: {error}.", (), None
        return True


def _listening(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server(
            (options.host, options.port), family=family, backlog=WAITING, reuse_port=False
        )
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise EnvironmentFault(
            f"port {options.port} of {options.host} can't be had: {why}; choose one with --port."
        ) from None


@contextlib.contextmanager
def _workers(options: ServeOptions, say: OnMessage) -> Iterator[None]:
    """Processes of their own, which are started again when they end; their jobs go on at once."""
    over = threading.Event()
    argv = [sys.executable, "-m", "kernelexp", "serve", "--worker", "--queue"]
    argv.append(str(options.folder))
    queue = Queue(options.folder)

    def keep(device: str) -> None:
        pause = PAUSES_S[0]
        while not over.is_set():
            name = new_name()
            attempts = 1
            try:
                ended = processes.run(
                    [*argv, "--device", device, "--name", name], timeout_s=FOREVER_S
                )
                if ended.returncode > 0 and not over.is_set():
                    say(f"A worker ended: {ended.stderr.strip()[-2000:]}")
                    pause = min(2 * pause, PAUSES_S[1])
            except Interrupted:  # the service ends, and has ended the worker
                attempts = 0
            except KernelexpError as error:
                say(f"A worker ended: {error}")
            with contextlib.suppress(sqlite3.OperationalError):  # else when its lease has ended
                queue.give_back(name, attempts=0 if over.is_set() else attempts)
            over.wait(pause)

    devices = ["none"] * options.workers + list(options.gpus)
    threads = [threading.Thread(target=keep, args=(name,), daemon=True) for name in devices]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        processes.stop_all()
        for thread in threads:
            thread.join(ENDING_S)


def application(options: ServeOptions) -> Starlette:
    """The routes; EnvironmentFault where the extra is missing."""
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError:
        raise EnvironmentFault(NEEDED) from None
    queue, door, write = Queue(options.folder), Door(options.tokens), OneByOne()
    evaluations = Evaluations(options.folder, door, write, options.most)
    state = State(queue, door, evaluations)
    pages = ReportPages(options.project, door)
    table: list[tuple[str, Callable[..., Any], str]] = [
        ("/", _index, "GET"),
        ("/evaluations", evaluations.submit, "POST"),
        ("/evaluations/{id}", evaluations.status, "GET"),
        ("/evaluations/{id}", evaluations.cancel, "DELETE"),
        ("/evaluations/{id}/events", evaluations.events, "GET"),
        ("/queue/{verb}", WorkerCalls(queue, door, write).call, "POST"),
        ("/health", state.health, "GET"),
        ("/metrics", state.metrics, "GET"),
        ("/openapi.json", _openapi, "GET"),
        ("/report/{path:path}", pages.page, "GET"),
    ]
    routes = [Route(path, guarded(item), methods=[verb]) for path, item, verb in table]
    return Starlette(routes=routes, exception_handlers={404: _nothing, 405: _nothing})


async def _nothing(request: Request, _: Exception) -> Response:
    words = f"there is no {request.method} {request.url.path}: GET / lists what there is."
    return to_json({"error": words}, 404)


async def _index(request: Request) -> Response:
    words = {
        f"{verb.upper()} {path}": text
        for path, verbs in ROUTES.items()
        for verb, (text, _) in verbs.items()
    }
    return to_json({**words, "GET /openapi.json": "All of this for other programs."})


async def _openapi(request: Request) -> Response:
    return to_json(describe())
