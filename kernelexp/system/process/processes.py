"""The one place that starts processes; it ends them with their children, at any interrupt."""

from __future__ import annotations

import contextlib
import os
import queue
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import msgspec

from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.text import spell_bytes
from kernelexp.system.process import attach, forkserver, watchdog
from kernelexp.system.process.interrupts import Interrupted, call_when_interrupted, raise_if_ending

LIMIT_S = 600.0
"""How long a process may take where the caller sets no limit of its own."""
OUTPUT_MAX = 256 << 20
"""How many bytes a process may print where the caller sets no limit of its own."""
LOOK_S = 1.0
"""Seconds between checks for an exited process whose output is still open."""
READ_BYTES = 1 << 16
JOIN_S = 0.5
WAKE_S = 0.2
_ATTEMPTS = 5

Item = TypeVar("Item")
Result = TypeVar("Result")
_Process: TypeAlias = "subprocess.Popen[bytes]"
OnChange = Callable[[int, Sequence[Item]], None]
"""Called with how many items are done and those that are worked on, in the caller's thread."""


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """A process that has ended."""

    returncode: int
    output: bytes
    """Standard output as it was written."""
    stderr: str

    @property
    def stdout(self) -> str:
        """Standard output as text; bytes that are not UTF-8 are replaced."""
        return self.output.decode(errors="replace")

    @property
    def killed_by(self) -> int:
        """The signal that ended it, or that ended the process it waited for; 0 for none."""
        if self.returncode < 0:
            return -self.returncode
        return self.returncode - 128 if 128 < self.returncode <= 128 + signal.SIGRTMAX else 0


class TimedOut(EnvironmentFault, TimeoutError):
    """A process that was killed because it ran past its limit."""


class TooMuchOutput(EnvironmentFault):
    """A process that was killed because it printed more than is kept."""


class _Running:
    """The processes that this one has started, and the signal that ends it."""

    def __init__(self) -> None:
        # Reentrant: a signal's handler runs in the main thread, which may hold the lock.
        self.lock = threading.RLock()
        self.children: dict[_Process, tuple[threading.Event, str]] = {}
        """What says that nobody waits for it any more, and the mark of its tree."""
        self.stopped: set[_Process] = set()
        self.mark = ""
        """The start of the marks of all trees; empty until the watchdog is there."""


_running = _Running()


class _Thread(threading.local):
    """The state of a thread of parallel(): whether its work was cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()


_thread = _Thread()


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = LIMIT_S,
    stdin: str | None = None,
    link: socket.socket | None = None,
    output_max: int = OUTPUT_MAX,
) -> Completed:
    """Runs a process to its end; on any exception it is killed with all that it has started.

    `env` is added to this process's own; `link` is handed over, and closed here. Raises
    EnvironmentFault if the program can't be started, TimedOut past `timeout_s`, TooMuchOutput past
    `output_max` bytes, Interrupted where stop_all() ended it.
    """
    mark, environment = _marked(env or {})
    with _running.lock:  # who stops all processes knows each that there is
        process = _start(argv, cwd, environment, link, feed=stdin is not None)
        _running.children[process] = (_thread.cancelled, mark)
    try:
        _raise_if_cancelled()
        fed = None if stdin is None else stdin.encode(errors="surrogateescape")
        conversation = _Conversation(argv[0], process, fed, output_max)
        output, errors = conversation.until(time.monotonic() + timeout_s, mark)
        if process in _running.stopped:
            raise_if_ending()
            raise Interrupted(signal.SIGINT)
    except BaseException as error:
        _end(process, mark)
        if isinstance(error, subprocess.TimeoutExpired):
            raise TimedOut(f"{argv[0]} ran past {timeout_s:g} s and was killed.") from None
        raise
    finally:
        _forget(process)
    return Completed(
        returncode=process.returncode, output=output, stderr=errors.decode(errors="replace")
    )


class _Conversation:
    """The input and the output of a process, which may be `most` bytes.

    Popen.communicate() keeps all that a process prints, however much.
    """

    def __init__(self, program: str, process: _Process, fed: bytes | None, most: int) -> None:
        assert process.stdout
        assert process.stderr
        self._program = program
        self._process, self._most, self._left = process, most, most
        self._fed = memoryview(fed or b"")
        self._said: dict[IO[bytes], list[bytes]] = {process.stdout: [], process.stderr: []}

    def until(self, deadline: float, mark: str) -> tuple[bytes, bytes]:
        """Its output and its errors; what it leaves running that holds them open is killed.

        Raises TimeoutExpired, TooMuchOutput.
        """
        process = self._process
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
        output, errors = map(b"".join, self._said.values())
        return output, errors

    def _advance(self, selector: selectors.BaseSelector, stream: Any) -> None:
        """Reads or writes what can be now; closes what has ended."""
        if stream in self._said:
            read = os.read(stream.fileno(), READ_BYTES)
            self._said[stream].append(read)
            self._left -= len(read)
            if self._left < 0:
                raise TooMuchOutput(
                    f"{self._program} printed more than {spell_bytes(self._most)} and was killed."
                )
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


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A process whose input and output were this one's own."""

    returncode: int
    seconds: float


def run_attached(
    argv: Sequence[str],
    *,
    cwd: Path | None,
    env: Mapping[str, str],
    timeout_s: float | None,
    output: int | None,
    meanwhile: Callable[[int], None],
) -> Ended:
    """Runs a process with this one's own terminal, input and errors, as run() does otherwise.

    output: the file that its standard output goes to, if not this process's. meanwhile: called with
    a file that can be read once the process has ended.
    """
    mark, environment = _marked(env)
    begun = time.monotonic()
    try:
        process = subprocess.Popen(argv, cwd=cwd, env=environment, stdout=output)
    except (OSError, ValueError) as error:
        raise _not_started(argv[0], error) from None
    with _running.lock:
        _running.children[process] = (_thread.cancelled, mark)
    limit = threading.Timer(timeout_s or 0, process.kill) if timeout_s else None
    try:
        if limit:
            limit.start()
        handle = os.pidfd_open(process.pid)
        try:
            meanwhile(handle)
        finally:
            os.close(handle)
        process.wait()
    except BaseException:
        _end(process, mark)
        raise
    finally:
        if limit:
            limit.cancel()
        watchdog.kill(mark)  # what it has started ends with it
        _forget(process)
    return Ended(returncode=process.returncode, seconds=time.monotonic() - begun)


def _marked(env: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The mark of a new tree, and the environment of its first process."""
    mark = f"{_start_watchdog()}{uuid.uuid4().hex[:12]}/"
    return mark, {**os.environ, **env, watchdog.MARK: mark}


def _forget(process: _Process) -> None:
    with _running.lock:
        _running.children.pop(process, None)
        _running.stopped.discard(process)


def run_forked(
    module: str, *, stdin: str, timeout_s: float, environment: Mapping[str, str] | None = None
) -> Completed:
    """Runs the `main` of a module in a process of its own, as run() does, without its imports.

    What the module names in PRELOAD is imported once, by a server that lives as long as this
    process does. Where that is killed before it has begun the worker, it is asked again.
    """
    for _ in range(_ATTEMPTS):
        try:
            link = forkserver.connection(_start_watchdog())
        except OSError as error:
            raise _not_started(sys.executable, error) from None
        argv = [sys.executable, "-I", "-S", attach.__file__, str(link.fileno()), module]
        done = run(argv, env=environment, timeout_s=timeout_s, stdin=stdin, link=link)
        if done.returncode != -attach.NOT_BEGUN:
            return done
    raise EnvironmentFault(
        "the process that starts workers is killed again and again: is there enough memory?"
    )


def preload(module: str) -> None:
    """Has that server import what a module names, while this process does something else."""
    with contextlib.suppress(OSError):  # run_forked() says so
        forkserver.preload(_start_watchdog(), module)


def _start(
    argv: Sequence[str],
    cwd: Path | None,
    env: Mapping[str, str],
    link: socket.socket | None,
    feed: bool,
) -> _Process:
    try:
        return subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=[link.fileno()] if link else (),
        )
    except (OSError, ValueError) as error:
        raise _not_started(argv[0], error) from None
    finally:
        if link:
            link.close()


def _not_started(program: str, error: OSError | ValueError) -> EnvironmentFault:
    """A ValueError is a null byte in an argument."""
    why = error.strerror if isinstance(error, OSError) else error
    return EnvironmentFault(f"{program} can't be started: {why}.")


def _end(process: _Process, mark: str) -> None:
    watchdog.kill(mark, frozenset({process.pid}))
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            with contextlib.suppress(OSError):  # what was not yet written to a process that is gone
                stream.close()
    with contextlib.suppress(subprocess.TimeoutExpired):  # it ends when the kernel lets it
        process.wait(watchdog.PATIENCE_S)


def _start_watchdog() -> str:
    """The mark of all that this process starts; a watchdog kills what has it when this one is gone.

    Below the mark of this process itself, so that who started it can kill the whole tree.
    """
    with _running.lock:
        if not _running.mark:
            mark = f"{os.environ.get(watchdog.MARK, '')}{uuid.uuid4().hex[:12]}/"
            heard, _held_open = os.pipe()
            _spawn_watchdog(heard, mark)
            os.close(heard)
            _running.mark = mark
        return _running.mark


def _spawn_watchdog(heard: int, mark: str) -> None:
    try:
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", watchdog.__file__, mark],
            {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, heard, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsid=True,
        )
    except OSError as error:
        raise _not_started(sys.executable, error) from None


def own_cancellation() -> threading.Event:
    """What cancels this thread's work: for `share_cancellation` in threads that it starts."""
    return _thread.cancelled


def share_cancellation(cancelled: threading.Event) -> None:
    """Has what this thread starts end with the work of the thread whose event this is."""
    _thread.cancelled = cancelled


def _raise_if_cancelled() -> None:
    raise_if_ending()
    if _thread.cancelled.is_set():
        raise Interrupted(signal.SIGINT)


def stop_all() -> None:
    """Kills everything that run() has started and waits for; each run() raises Interrupted."""
    with _running.lock:
        children = dict(_running.children)
        _running.stopped.update(children)
    if _running.mark:
        watchdog.kill(_running.mark, frozenset(child.pid for child in children))


def stop(cancelled: threading.Event) -> None:
    """Kills what the threads of one parallel() wait for; they start nothing any more."""
    cancelled.set()
    with _running.lock:
        children = {
            child: mark for child, (event, mark) in _running.children.items() if event is cancelled
        }
        _running.stopped.update(children)
    for child, mark in children.items():
        watchdog.kill(mark, frozenset({child.pid}))


call_when_interrupted(stop_all)


def parallel(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    on_change: OnChange[Item] | None = None,
    workers: int | None = None,
) -> list[Result]:
    """The results of `function` for all items, in their order, by as many threads as cores.

    `on_change` is called before any work, and whenever an item begins or ends. An exception of
    one item ends all the others, as does one in this thread: nothing that runs is waited for.
    """
    return _Parallel(function, items, on_change).run(workers or len(os.sched_getaffinity(0)))


_Event: TypeAlias = tuple[int, bool, Any, BaseException | None]
"""An item's position, whether it has ended rather than begun, its result or its error."""


class _Parallel:
    def __init__(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        on_change: OnChange[Any] | None,
    ) -> None:
        self._function, self._items = function, items
        self._on_change = on_change
        self._waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._cancelled = threading.Event()
        self._results: dict[int, Any] = {}
        self._working: dict[int, Any] = {}

    def run(self, workers: int) -> list[Any]:
        self._say()
        for index in range(len(self._items)):
            self._waiting.put(index)
        # Daemons, and no pool: the interpreter would wait for a pool's threads at its end.
        threads = [
            threading.Thread(target=self._work, daemon=True)
            for _ in range(min(workers, len(self._items)))
        ]
        try:
            for thread in threads:
                thread.start()
            while len(self._results) < len(self._items):
                self._take_event()
        except BaseException:
            stop(self._cancelled)
            deadline = time.monotonic() + JOIN_S
            for thread in threads:
                if thread.ident:
                    thread.join(max(0.0, deadline - time.monotonic()))
            raise
        return [self._results[index] for index in range(len(self._items))]

    def _take_event(self) -> None:
        """Waits in pieces, between which Python calls the handlers of signals.

        A signal that comes after Python last looked for one, and before the thread sleeps, does
        not wake it; nor does one that the kernel gives to another thread.
        """
        event = None
        while event is None:
            with contextlib.suppress(queue.Empty):
                event = self._events.get(timeout=WAKE_S)
        index, ended, result, error = event
        if error is not None:
            raise error
        if ended:
            self._results[index] = result
            del self._working[index]
        else:
            self._working[index] = self._items[index]
        self._say()

    def _say(self) -> None:
        if self._on_change:
            self._on_change(len(self._results), tuple(self._working.values()))

    def _work(self) -> None:
        _thread.cancelled = self._cancelled
        while not self._cancelled.is_set():
            try:
                index = self._waiting.get_nowait()
            except queue.Empty:
                return
            self._events.put((index, False, None, None))
            try:
                self._events.put((index, True, self._function(self._items[index]), None))
            except BaseException as error:  # the caller's thread raises it
                self._events.put((index, True, None, error))
                return
