"""A process that is timed from outside: it has a solution, the reference or nothing, and no clock.

A turn is a call for each of several sets of inputs, which nobody has seen before, at the addresses
of the last ones. Before it come the same calls with the last inputs: after a pause a call of 70 us
took 205 us on an H200. `go` starts the clock of the other process, and brings what was held back of
the first call's inputs; `next` asks for the next call's, when a call is done. What ends the clock
is a message with a digest of each whole answer, which nothing has that is lazy, unfinished or on a
stream that nobody waited for. Then the process is asked for some of the answers, or for none.

Short calls are made in a row, which is waited for at its end: `go` brings what was held back of a
few calls' inputs, drawn by chance. Before each of these it is put in, and a part of the answer
before is taken: both in the order of the stream, so that no call can be done earlier or later.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import itertools
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

import kernelexp
from kernelexp.services.tasks import formats, wire
from kernelexp.services.tasks.solution_process import explained
from kernelexp.services.tasks.task import Call, Task
from kernelexp.services.tasks.timing import shared
from kernelexp.services.tasks.timing.linked import receive, send
from kernelexp.services.tasks.timing.shared import SharedMemory
from kernelexp.system.disk import decode
from kernelexp.system.process import confine

PRELOAD = ("torch",)
FLUSHED = 512 << 20
"""Bytes that are written before each turn: more than any L2 holds."""
PAGE = 2 << 20
"""Bytes that an entry of a GPU's TLB maps, at most: a byte of each page is read before a turn. A
program's own kernels have just written its inputs; another process's leave none of them there."""
LARGE = 1 << 30
"""Bytes of a set of inputs beside which an answer does not stay in torch's cache: three arms and
the bank share the card, and KernelBench's largest sets have 8.6 GB."""
SETTLES_S = 0.02
"""Waited when memory was given back: for 15 ms after it, by whichever process, a digest of 7.5 GB
took 2,850 to 3,370 us on an H100, and 2,460 to 2,600 us from then on."""


_Parts = list[tuple[int, bytes]]
"""What was held back of a set: places, and what belongs there."""


class ArmOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order that starts an arm's process."""

    arm: str
    """solution, reference, nothing."""
    folder: str
    """The files of its side, and what it is prepared with."""
    answers: str
    """The folder that memory is shared in, where there is no GPU."""
    device: str
    core: int = -1
    """The one that its calls are made on; -1: any."""
    confine: dict[str, Any] = {}
    """What confines it; empty: nothing does."""
    socket: str = ""
    """Where the clock listens."""


def main() -> None:
    """Runs the arm of an ArmOrder, as JSON on standard input."""
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
        memory = shared.of(order.device, Path(order.answers))
        with device.default():
            call = _opened(order)
        if order.core >= 0:
            os.sched_setaffinity(0, {order.core})
        send(link, "opened")
        _serve(link, call, device, memory, order.arm == "nothing")
    except EOFError:
        pass
    except BaseException as error:
        send(link, "failed", msgspec.json.encode(explained(error)).decode())
    os._exit(0)


def _opened(order: ArmOrder) -> Call:
    folder = Path(order.folder)
    task = decode((folder / "task.json").read_bytes(), Task)
    prepared = wire.read(folder / "prepared", order.device)
    form = formats.named(task.format)
    if order.arm == "nothing":
        return lambda _: []
    if order.arm == "reference":
        return form.open_reference(task, folder, prepared)
    return form.open_solution(task, folder, prepared)


def _serve(
    link: socket.socket, call: Call, device: _Device, memory: SharedMemory, idle: bool
) -> None:
    slots = _Slots(memory)
    likeness = _Likeness(device.name)
    in_a_row = False
    gc.disable()
    while True:
        receive(link)
        gc.collect()
        if in_a_row:
            _row(call, slots.arguments, {}, device)
        else:
            _calls(call, slots.arguments, device, len(slots.arguments) > 1)
        send(link, "warm")
        trees, like, in_a_row = json.loads(receive(link))
        send(link, "slots", json.dumps(slots.place(trees)))
        receive(link, spin=True)  # a core that sleeps meanwhile is slow when the clock begins
        slots.touch()
        device.flush()
        if idle:  # its answer lies in L2, as one does that was just written
            call = likeness.call(like, len(trees) if in_a_row else 1)
        device.synchronize()
        send(link, "ready")
        held = receive(link, spin=True)
        samples: list[Callable[[], bytes]] = []
        if in_a_row:
            looks = slots.looks(held, samples)
            answers, digests = _row(call, slots.arguments, looks, device)
        else:
            answers, digests = _calls(call, slots.complete(held, link), device, len(trees) > 1)
        send(link, "done", *map(str, digests))
        kept = slots.keep([answers[index] for index in json.loads(receive(link))])
        device.synchronize()
        answers = []
        if max(size for _, size in trees) > LARGE:
            device.tidy()
            time.sleep(SETTLES_S)
        send(link, "over", json.dumps([kept, [sample().hex() for sample in samples]]))


def _calls(
    call: Call, sets: Iterable[Any], device: _Device, several: bool
) -> tuple[list[Any], list[int]]:
    """Answers, as they were when the next call began, and their digests.

    Each call is waited for, as its caller waits who needs the answer. Without that, work on the GPU
    hid what the messages between two calls take, which is subtracted: a sum of 210 MB took 59 us on
    an H100, which reads them in 63 us.
    """
    answers, early = [], {}
    for index, arguments in enumerate(sets):
        answer = call(dict(arguments))
        device.synchronize()
        answers.append(wire.copied(answer) if several else answer)  # one alone may be large
        if several and not _are_plain([answer]):  # its copy may be no more than a promise
            early[index] = wire.digest(answers[-1])
    device.synchronize()
    late = iter(wire.digests([a for index, a in enumerate(answers) if index not in early]))
    return answers, [early[i] if i in early else next(late) for i in range(len(answers))]


def _row(
    call: Call,
    sets: Sequence[Any],
    looks: Mapping[int, Callable[[list[Any]], None]],
    device: _Device,
) -> tuple[list[Any], list[int]]:
    """Answers to calls that follow each other as they are launched, and their digests; none where
    code of the solution's would run when they are looked at.

    Nothing else is done between most calls. What is subtracted would be hidden by work on the GPU:
    of a row of 4 ms that is 4 x 6 us at most.
    """
    answers: list[Any] = []
    for index, arguments in enumerate(sets):
        if index in looks:
            looks[index](answers)
        answers.append(call(dict(arguments)))
    device.synchronize()
    return answers, wire.digests(answers) if _are_plain(answers) else []


def _are_plain(answers: Sequence[Any]) -> bool:
    import torch

    modes = torch._C._len_torch_function_stack() + torch._C._len_torch_dispatch_stack()
    return not modes and all(map(wire.is_plain, answers))


class _Slots:
    """The places of sets of inputs, at addresses that stay."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._slots: list[tuple[str, int, Any]] = []
        self._trees: list[Any] = []
        self._kept: list[str] = []
        self.arguments: list[Any] = []

    def place(self, wanted: Sequence[tuple[Any, int]]) -> list[tuple[str, int]]:
        """Lays sets out, each a layout and its bytes: where they are to be put."""
        for name in self._kept:
            self._memory.release(name)
        self._kept = []
        if len(wanted) != len(self._slots) or any(
            size > slot[1] for (_, size), slot in zip(wanted, self._slots, strict=True)
        ):
            self._renew([size for _, size in wanted])
        for index, (tree, _) in enumerate(wanted):
            if tree != self._trees[index]:
                self._trees[index] = tree
                self.arguments[index] = wire.views(tree, self._slots[index][2])
        return [(name, size) for name, size, _ in self._slots]

    def touch(self) -> None:
        """Has the GPU find all pages."""
        for _, _, flat in self._slots:
            flat[::PAGE].sum()

    def _renew(self, sizes: Sequence[int]) -> None:
        self._trees, self.arguments = [None] * len(sizes), [None] * len(sizes)
        while self._slots:
            self._memory.release(self._slots.pop()[0])
        for size in sizes:
            name, flat = self._memory.make(size)
            self._slots.append((name, size, flat))

    def complete(self, first: str, link: socket.socket) -> Iterator[Any]:
        """Each set, when what was held back of it was put in; more is asked for after each call."""
        for index, arguments in enumerate(self.arguments):
            if index:
                send(link, "next")
            _, _, held = (receive(link, spin=True) if index else first).partition(" ")
            self._put_in(index, _parts(held))
            yield arguments

    def looks(
        self, message: str, samples: list[Callable[[], bytes]]
    ) -> dict[int, Callable[[list[Any]], None]]:
        """Returns the actions before some calls of a row, given the answers so far."""

        def look(index: int, number: int, parts: _Parts, answers: list[Any]) -> None:
            if answers:
                samples.append(self._sample(answers[-1], number))
            self._put_in(index, parts)

        return {
            index: functools.partial(look, index, number, _parts(held))
            for index, number, held in json.loads(message.partition(" ")[2])
        }

    def _put_in(self, index: int, parts: _Parts) -> None:
        for at, content in parts:
            self._memory.write(self._slots[index][2], at, content)

    def _sample(self, answer: Any, number: int) -> Callable[[], bytes]:
        found = shared.place(answer, number) if _are_plain([answer]) else None
        if found is None:
            return bytes
        tensor, at, count = found
        return self._memory.take(tensor.data_ptr() + at, count)

    def keep(self, answers: Sequence[Any]) -> tuple[Any, str, int] | None:
        """Puts answers where the other side finds them, until the next sets come."""
        if not answers:
            return None
        tree, size = wire.layout(answers)
        name, flat = self._memory.make(size)
        wire.fill(tree, flat, answers)
        self._kept.append(name)
        return tree, name, size


def _parts(held: str) -> _Parts:
    pairs = [part.partition(":") for part in held.split()]
    return [(int(at), bytes.fromhex(content)) for at, _, content in pairs]


class _Likeness:
    """Answers in zeros, for the arm that does nothing."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._flat: Any = None

    def call(self, layout: tuple[Any, int], count: int) -> Call:
        """Returns a call that gives so many answers, in turn, as they lie once written."""
        import torch

        tree, size = layout
        if self._flat is None or self._flat.numel() < count * size:
            self._flat = None
            self._flat = torch.zeros(count * size, dtype=torch.uint8, device=self._device)
        parts = [self._flat[index * size : (index + 1) * size] for index in range(count)]
        answers = [wire.views(tree, part) for part in parts]
        wire.digests(answers)
        following = itertools.cycle(answers)
        return lambda _: next(following)


class _Device:
    """The GPU calls that a turn needs, kept from before any solution's code has run."""

    def __init__(self, name: str) -> None:
        import torch

        self.name = name
        self.synchronize: Callable[[], object] = lambda: None
        self._flush: Callable[[], object] = lambda: None
        self.tidy: Callable[[], object] = torch.cuda.empty_cache
        if name != "cuda":
            torch.set_num_threads(1)
            return
        torch.cuda.init()
        torch.cuda.current_stream().synchronize()  # which makes the context, in half a second

    def reserve(self) -> None:
        """SharedMemory is taken when it is needed: processes that wait for their turn have none."""
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
        """Returns the device on which a model's weights lie while it is made."""
        import torch

        return torch.device(self.name)


if __name__ == "__main__":
    main()
