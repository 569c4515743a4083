"""A process that is timed from outside: it has a solution, the reference or nothing, and no clock.

A turn is a call for each of several sets of inputs, which nobody has seen before, at the addresses
of the last ones. Before it come the same calls with the last inputs: after a pause a call of 70 us
took 205 us on an H200. `go` starts the clock of the other process; what ends it is a message with a
digest of each whole answer, which nothing has that is lazy, unfinished or on a stream that nobody
waited for. Then the process is asked for some of the answers, or for none.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

import kernelexp
from kernelexp.model.decoding import decode
from kernelexp.services.tasks import formats, wire
from kernelexp.services.tasks.solution_process import explained, refreshed
from kernelexp.services.tasks.task import Call, Task
from kernelexp.system.process import confine

PRELOAD = ("torch",)
FLUSHED = 512 << 20
"""Bytes that are written before each turn: more than any L2 holds."""


class ArmOrder(msgspec.Struct, frozen=True, kw_only=True):
    """How such a process is started."""

    arm: str
    """solution, reference, nothing."""
    folder: str
    """The files of its side, and what it is prepared with."""
    like: str
    """An answer in zeros, for the arm that does nothing."""
    device: str
    core: int = -1
    """The one that its calls are made on; -1: any."""
    confine: dict[str, Any] = {}
    """What confines it; empty: nothing does."""
    socket: str = ""
    """Where the clock listens."""


def main() -> None:
    """On standard input: an ArmOrder as JSON."""
    order = decode(sys.stdin.read(), ArmOrder)
    link = socket.socket(socket.AF_UNIX)
    link.connect(order.socket)
    os.chdir(order.folder)
    sys.path[0] = str(Path(kernelexp.__file__).parents[1])
    sys.dont_write_bytecode = True
    if order.confine:
        confine.apply(order.confine)
    try:
        device = _Device(order.device)
        receive(link)  # "open": until then nothing but this package's code runs
        device.reserve()  # before the solution can replace what it is made of
        with device.default():
            call = _opened(order)
        if order.core >= 0:
            os.sched_setaffinity(0, {order.core})
        send(link, "opened")
        _serve(link, call, device, order.arm == "nothing")
    except EOFError:
        pass
    except BaseException as error:
        send(link, "failed", json.dumps(explained(error)))
    os._exit(0)


def send(link: socket.socket, *words: str) -> None:
    link.sendall((" ".join(words) + "\n").encode())


def receive(link: socket.socket, *, spin: bool = False) -> str:
    """A line; EOFError where the other side is gone. To spin takes a core and 2 us less latency."""
    content = b""
    while not content.endswith(b"\n"):
        try:
            part = link.recv(1 << 16, socket.MSG_DONTWAIT if spin else 0)
        except BlockingIOError:
            continue
        if not part:
            raise EOFError
        content += part
    return content.decode().rstrip("\n")


def _opened(order: ArmOrder) -> Call:
    folder = Path(order.folder)
    task = decode((folder / "task.json").read_bytes(), Task)
    prepared = wire.read(folder / "prepared", order.device)
    form = formats.named(task.format)
    if order.arm == "nothing":
        answer = wire.read(Path(order.like), order.device)
        return lambda _: answer
    if order.arm == "reference":
        return form.open_reference(task, folder, prepared)
    return form.open_solution(task, folder, prepared)


def _serve(link: socket.socket, call: Call, device: _Device, idle: bool) -> None:
    slots: list[Any] = []
    gc.disable()
    while True:
        receive(link)
        gc.collect()
        _calls(call, slots, device)
        send(link, "warm")
        paths = json.loads(receive(link))
        slots = [
            refreshed(old, wire.read(Path(path), device.name))
            for old, path in itertools.zip_longest(slots, paths)
        ]
        device.flush()
        if idle:  # its answer lies in L2, as one does that was just written
            wire.digest(call({}))
        device.synchronize()
        send(link, "ready")
        receive(link, spin=True)
        answers, digests = _calls(call, slots, device)
        send(link, "done", *map(str, digests))
        for index, path in json.loads(receive(link)):
            wire.write(Path(path), answers[index])
        send(link, "over")


def _calls(call: Call, slots: Sequence[Any], device: _Device) -> tuple[list[Any], list[int]]:
    """Answers, as they were when the next call began, and their digests.

    Between both it waits: what the digests take would hide what the calls take.
    """
    answers = [wire.copied(call(dict(slot))) for slot in slots]
    device.synchronize()
    return answers, wire.digests(answers)


class _Device:
    """What a turn needs of the GPU, kept from before any solution's code has run."""

    def __init__(self, name: str) -> None:
        import torch

        self.name = name
        self.synchronize: Callable[[], object] = lambda: None
        self._flush: Callable[[], object] = lambda: None
        if name != "cuda":
            torch.set_num_threads(1)
            return
        torch.cuda.init()
        torch.cuda.current_stream().synchronize()  # which makes the context, in half a second

    def reserve(self) -> None:
        """Memory is taken when it is needed: processes that wait for their turn have none."""
        import torch

        if self.name != "cuda":
            return
        buffer = torch.empty(FLUSHED, dtype=torch.uint8, device=self.name)
        driver = ctypes.CDLL("libcuda.so.1")
        address, size = ctypes.c_void_p(buffer.data_ptr()), ctypes.c_size_t(FLUSHED)
        self._kept = buffer

        def flush() -> None:
            driver.cuCtxResetPersistingL2Cache()
            driver.cuMemsetD8_v2(address, ctypes.c_ubyte(1), size)

        self._flush, self.synchronize = flush, driver.cuCtxSynchronize

    def flush(self) -> None:
        self._flush()

    def default(self) -> Any:
        """While a model is made, its weights lie there."""
        import torch

        return torch.device(self.name)


if __name__ == "__main__":
    main()
