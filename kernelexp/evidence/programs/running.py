"""A program is run, and each of its processes that uses the device is served by one of ours."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain
from warpsim import compiled
from warpsim.runtime import containers
from warpsim.runtime.containers import FatImage
from warpsim.runtime.protocol import Channel
from warpsim.runtime.reports import Report
from warpsim.runtime.server import Server, Settings
from warpsim.runtime.triton import SITE

SOCKET, NVCC = "WARPSIM_SOCKET", "WARPSIM_NVCC"
"""Of a program: where its launches go, and what its NVRTC compiles with."""
GRACE_S = 2.0
"""How long a process that serves a program may outlive it."""
REPORT_S = 10.0
"""And how long it has after that to write its report, in the middle of a launch."""
_PR_SET_PDEATHSIG = 1


class ProgramRun(msgspec.Struct, frozen=True, kw_only=True):
    """A program that has ended."""

    returncode: int
    """As Python has it: negative for a signal."""
    seconds: float
    reports: tuple[Report, ...]
    """Of its processes that used the device."""


def run(
    argv: Sequence[str],
    settings: Settings,
    tools: Toolchain,
    library: Path,
    native: str,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    output: int | None = None,
) -> ProgramRun:
    """Runs a program that is linked with the runtime in the folder `library`.

    native: the compiled part of the emulator; empty: Python does it all.
    output: the file that its standard output goes to; None: this process's.
    """
    if native:
        with contextlib.suppress(OSError):  # Python computes the same
            compiled.load(Path(native))
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as place:
        listener = socket.socket(socket.AF_UNIX)
        path = f"{place}/socket"
        listener.bind(path)
        listener.listen()
        supervisor = _Supervisor(listener, Path(place), settings, tools)
        search = [str(library), *filter(None, [os.environ.get("LD_LIBRARY_PATH", "")])]
        modules = [str(SITE), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        added = {
            SOCKET: path,
            NVCC: tools.nvcc,
            "LD_LIBRARY_PATH": ":".join(search),
            "PYTHONPATH": ":".join(modules),
            **(environment or {}),
        }
        with listener, contextlib.ExitStack() as at_end:
            at_end.callback(supervisor.finish)
            ended = processes.run_attached(
                argv,
                cwd=cwd,
                env=added,
                timeout_s=timeout_s,
                output=output,
                meanwhile=supervisor.serve,
            )
        return ProgramRun(
            returncode=ended.returncode, seconds=ended.seconds, reports=supervisor.reports()
        )


class _Supervisor:
    """Accepts connections, and forks a process for each."""

    def __init__(
        self, listener: socket.socket, place: Path, settings: Settings, tools: Toolchain
    ) -> None:
        self._listener = listener
        self._place = place
        self._settings = settings
        self._tools = tools
        self._children: list[int] = []

    def serve(self, ended: int) -> None:
        """Serves until a file can be read: the program has ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(ended, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._listener in ready:
                    self._accept()
                elif ended in ready:
                    return

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        report = self._place / f"{len(self._children)}.report"
        parent = os.getpid()
        child = os.fork()
        if child:
            connection.close()
            self._children.append(child)
            return
        self._listener.close()
        _end_with(parent)
        _work(connection, report, self._settings, _extractor(self._tools, report))

    def finish(self) -> None:
        """The program is gone: what serves it comes to its end too."""
        begun = time.monotonic()
        for child in self._children:
            signals = [(GRACE_S, signal.SIGTERM), (GRACE_S + REPORT_S, signal.SIGKILL)]
            while os.waitpid(child, os.WNOHANG) == (0, 0):
                if signals and time.monotonic() - begun > signals[0][0]:
                    os.kill(child, signals.pop(0)[1])
                time.sleep(0.005)
        self._children.clear()

    def reports(self) -> tuple[Report, ...]:
        files = sorted(self._place.glob("*.report"), key=lambda path: int(path.stem))
        return tuple(msgspec.msgpack.decode(file.read_bytes(), type=Report) for file in files)


def _end_with(parent: int) -> None:
    """Has the kernel kill this process when its parent is gone, even by SIGKILL.

    A fork has no mark in its environment, and holds open the pipe whose end tells the watchdog.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _work(
    connection: socket.socket,
    path: Path,
    settings: Settings,
    extract: Callable[[bytes], list[FatImage]],
) -> None:
    """Runs the forked process; does not return."""
    code = 1
    try:
        # The terminal's Ctrl-C is for the program; when that is gone this ends by itself.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        report = Server(Channel(connection), settings, extract).serve()
        path.write_bytes(msgspec.msgpack.encode(report))
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.write("error: this is a bug in kernelexp: please report the lines above.\n")
    finally:
        sys.stderr.flush()
        os._exit(code)


def _extractor(tools: Toolchain, beside: Path) -> Callable[[bytes], list[FatImage]]:
    """Reads containers with compressed images by cuobjdump."""

    def extract(container: bytes) -> list[FatImage]:
        with tempfile.TemporaryDirectory(dir=beside.parent) as folder:
            file = Path(folder) / "m.fatbin"
            file.write_bytes(container)
            for kind in ("-xptx", "-xelf"):
                argv = [tools.cuobjdump, kind, "all", file.name]
                processes.run(argv, cwd=Path(folder), timeout_s=120)
            return list(_extracted(Path(folder)))

    return extract


def _extracted(folder: Path) -> Iterator[FatImage]:
    for file in sorted(folder.glob("*.ptx")):
        yield containers.ptx_image(file.read_bytes())
    for file in sorted(folder.glob("*.cubin")):
        yield FatImage(is_ptx=False, arch=0, content=file.read_bytes())
