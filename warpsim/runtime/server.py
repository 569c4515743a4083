"""Serves one program: keeps its memory and modules, executes its launches, notes what is wrong."""

from __future__ import annotations

import functools
import re
import signal
from collections import Counter
from collections.abc import Callable
from types import FrameType

import msgspec
import numpy as np

from warpsim.errors import UsageError
from warpsim.execute import Result
from warpsim.launch import Element, Residency, Swizzle, TensorMap, is_named
from warpsim.machine.core.findings import Finding
from warpsim.machine.memory.execution import Execution
from warpsim.machine.memory.layout import GLOBAL_BASE
from warpsim.machine.memory.tensor_map_image import PlacedMap
from warpsim.runtime import capturing, launching, stream_races
from warpsim.runtime.capturing import Captor, CapturedLaunch, LaunchChoice
from warpsim.runtime.device import DeviceMemory, Object
from warpsim.runtime.launching import Destroyed, Request
from warpsim.runtime.loading import Extract, Loaded
from warpsim.runtime.progress import Progress
from warpsim.runtime.protocol import Channel, Gone, Kind, Message
from warpsim.runtime.reports import Caught, KernelTotals, Refusal, Remark, Report
from warpsim.runtime.stream_races import Accesses, Ranges, StreamRaces
from warpsim.schedule import Schedule

_PINNED, _MANAGED, _MODULE, _SYSTEM = 1, 2, 4, 5
"""Uses of allocations (cudart/memory.hpp): the last two are not the program's own."""
_SMALL, _BYTES_OF_AN_INSTRUCTION = 1 << 20, 64
"""What a launch uses of memory that the host may touch is not looked for in allocations that are
larger than this, and than a thread's instructions reach: to look takes longer than the launch."""
_HEAP_BYTES = 8 << 20
_UNNUMBERED = 1 << 40
"""Numbers from here on are of no allocation: places of calls that sentences name."""
_ELEMENTS: dict[int, Element] = {
    **{0: "u8", 1: "u16", 2: "u32", 3: "s32", 6: "f16", 7: "f32", 8: "f64", 9: "bf16"},
    **{10: "f32", 13: "u4x16", 14: "u4x16_p64", 15: "u6x16_p32"},
}
"""CUtensorMapDataType."""
_SWIZZLES: tuple[Swizzle, ...] = ("none", "32B", "64B", "128B")
"""CUtensorMapSwizzle."""
_ADDRESS = re.compile(r"global address (0x[0-9a-f]+)")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How launches are to be executed."""

    device: dict[str, str]
    """What the program is told of the card: see cudart/devices.cpp."""
    arch: int
    limit: int
    schedule: Schedule = Schedule()
    processes: int = 1
    """That may execute a launch together."""
    kernels: tuple[str, ...] = ()
    """Parts of the names of those that are judged; none: all are."""
    launches: tuple[tuple[int, int], ...] = ()
    """Ranges of launches, by their numbers, that are judged; none: all are."""
    per_kernel: int = 0
    """How many launches of each kernel are judged, the first ones; 0: all are."""
    destroys: Destroyed = "context"
    capture: LaunchChoice | None = None
    """The launch that is kept, after which the program is stopped."""
    unexecuted: int = 0
    """How many launches are kept; none is executed then."""

    @property
    def card(self) -> Residency:
        """What bounds the CTAs that are resident."""
        return Residency(
            sms=int(self.device["sms"]),
            warps_per_sm=int(self.device["warps_per_sm"]),
            ctas_per_sm=int(self.device["ctas_per_sm"]),
            smem_per_sm_bytes=int(self.device["smem_per_sm"]),
        )

    def judges(self, kernel: str, launch: int, judged: int) -> bool:
        """judged: launches of the kernel that were judged before."""
        named = not self.kernels or any(is_named(part, kernel) for part in self.kernels)
        ranged = not self.launches or any(first <= launch <= last for first, last in self.launches)
        return named and ranged and (not self.per_kernel or judged < self.per_kernel)


def _stop(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Gone


class Server:
    """One process of the program."""

    def __init__(self, channel: Channel, settings: Settings, extract: Extract) -> None:
        self._channel = channel
        self._settings = settings
        self._extract = extract
        self._device = DeviceMemory(*channel.receive_files())
        self._modules: list[Loaded] = []
        self._kernels: list[tuple[Loaded, str]] = []
        self._pid, self._program, self._maps = 0, "", ""
        self._sites: dict[int, tuple[int, ...]] = {}
        self._freed: dict[int, tuple[int, ...]] = {}
        self._sizes: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        """Of the live allocations, by address."""
        self._on_host: dict[int, Object] = {}
        """Those that the host may touch, by address."""
        self._caught: dict[tuple[str, str, str], Caught] = {}
        self._remarks: dict[tuple[str, str, tuple[int, ...]], Remark] = {}
        self._launched: dict[str, KernelTotals] = {}
        self._refused: Refusal | None = None
        self._captor = Captor(settings.capture) if settings.capture else None
        self._captured: CapturedLaunch | None = None
        self._unexecuted: list[CapturedLaunch] = []
        self._ended = False
        self._streams = StreamRaces()
        self._answers: dict[Kind, Callable[[Message], None]] = {
            Kind.HELLO: self._hello,
            Kind.MODULE: self._module,
            Kind.PLACE: self._place,
            Kind.KERNEL: self._kernel,
            Kind.LAUNCH: self._launch,
            Kind.ALLOCATED: self._allocated,
            Kind.FREED: self._free,
            Kind.FINDING: self._remark,
            Kind.TENSOR_MAP: self._tensor_map,
            Kind.ORDER: self._order,
            Kind.ACCESS: self._access,
            Kind.TOUCHED: self._touched,
            Kind.SHOWN: self._shown,
            Kind.BYE: self._bye,
            Kind.REFUSED: self._refusal,
        }

    def serve(self) -> Report:
        """Until the program ends, or SIGTERM says that it has while a launch was executed."""
        signal.signal(signal.SIGTERM, _stop)
        try:
            while not self._ended:
                message = self._channel.receive()
                self._answers[message.kind](message)
        except Gone:
            pass
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # who waits for the report has its time
        return self._report()

    # Messages

    def _hello(self, message: Message) -> None:
        self._pid, self._program, self._maps = message.number(), message.text(), message.text()
        lines = (f"{name}={value}\n" for name, value in self._settings.device.items())
        self._channel.answer("".join(lines))

    def _allocated(self, message: Message) -> None:
        address, size, use, number = message.numbers(4)
        frames = message.frames()
        result = Object(address, size, f"@{number}")
        self._device.reach(result.end)
        if use in (_MODULE, _SYSTEM):
            return
        self._device.add(result)
        self._sites[number], self._numbers[address] = frames, number
        self._sizes[number] = size
        if use in (_PINNED, _MANAGED):
            self._on_host[address] = result

    def _shown(self, message: Message) -> None:
        """A managed variable."""
        address, size = message.numbers(2)
        name = self._device.live.at(address)
        self._on_host[address] = Object(address, size, name.name if name else "")

    def _free(self, message: Message) -> None:
        address = message.number()
        gone = self._device.release(address)
        self._on_host.pop(address, None)
        number = self._numbers.pop(address, None)
        if gone is not None and number is not None:
            self._freed[number] = message.frames()

    def _remark(self, message: Message) -> None:
        name, sentence = message.text(), message.text()
        remark = Remark(name=name, sentence=sentence, frames=message.frames())
        key = name, sentence if not remark.frames else "", remark.frames
        known = self._remarks.get(key)
        count = known.count + 1 if known else 1
        self._remarks[key] = msgspec.structs.replace(known or remark, count=count)

    def _refusal(self, message: Message) -> None:
        self._refused = self._refused or Refusal(sentence=message.text())

    def _module(self, message: Message) -> None:
        try:
            loaded = Loaded(message.raw(), self._settings.arch, self._extract, self._device)
        except UsageError as error:
            self._channel.answer(str(error))
            return
        self._modules.append(loaded)
        room = loaded.world.room(loaded.variables)
        self._channel.answer("", len(self._modules) - 1, room, _HEAP_BYTES)

    def _place(self, message: Message) -> None:
        number, block, heap = message.numbers(3)
        loaded = self._modules[number]
        if not self._device.heap[0]:
            self._device.heap = heap, heap + _HEAP_BYTES
        loaded.world.place(loaded.variables, block)
        parts: list[int | str] = [len(loaded.variables)]
        for variable in loaded.variables:
            result = loaded.world.variables[variable.name]
            parts += [result.name, result.address, result.size]
        self._channel.answer(*parts)

    def _kernel(self, message: Message) -> None:
        loaded, entry = self._modules[message.number()], message.text()
        if not loaded.has(entry):  # which a program may ask the driver
            self._channel.answer(f"there is no kernel {entry!r} in its device code.")
            return
        try:
            image = loaded.program(entry).image
            resources = loaded.resources(entry)
        except UsageError as error:
            self._refused = Refusal(sentence=f"{entry}: {error}")
            self._channel.answer(self._refused.sentence)
            return
        self._kernels.append((loaded, entry))
        constants = sum(variable.size for variable in loaded.variables if variable.space == "const")
        numbers = (
            *(len(self._kernels) - 1, loaded.static_shared(entry), resources.local_bytes),
            *(resources.registers, constants, image.max_threads or 0),
            *(loaded.arch, self._settings.arch, int(image.cluster is not None)),
            *(int(name in image.overlaps) for name in ("launch_dependents", "wait")),
        )
        sizes = [parameter.size for parameter in image.parameters]
        self._channel.answer("", *numbers, len(sizes), *sizes)

    def _refuse(self, sentence: str, request: Request) -> None:
        self._refused = Refusal(sentence=sentence, launch=request.launch, frames=request.frames)
        self._channel.answer(sentence, 0, "")

    def _launch(self, message: Message) -> None:
        request = launching.read(message)
        loaded, entry = self._kernels[request.kernel]
        if self._settings.unexecuted:
            if len(self._unexecuted) < self._settings.unexecuted:
                try:
                    self._unexecuted.append(capturing.unexecuted(loaded, entry, request))
                except UsageError as error:
                    self._refuse(f"{entry}: {error}", request)
                    return
            self._channel.answer("", 0, "", 0)
            return
        wanted = self._captor is not None and self._captor.wants(entry)
        judged = wanted or (self._captor is None and self._judges(entry, request.launch))
        progress = Progress(entry, request.launch)
        execute = functools.partial(
            launching.run,
            loaded,
            entry,
            request,
            self._settings.card,
            self._settings.limit,
            self._settings.schedule,
            progress.watch,
            judged,
            self._settings.processes,
            self._streams.beside(),
        )
        with progress:
            try:
                if self._captor and wanted:
                    self._captured = self._captor.keep(loaded, entry, request, execute)
                    self._channel.answer(f"launch {request.launch} was captured.", 0, "")
                    return
                result = execute()
            except UsageError as error:
                self._refuse(f"{entry}: {error}", request)
                return
        self._count(entry, result, judged)
        if judged and self._streams.compares and progress.execution:
            history = progress.execution.history
            made = stream_races.accesses(history, GLOBAL_BASE, self._device.live)
            self._compare(f"launch {request.launch} of {entry}", request.frames, made)
        if judged:
            self._catch(entry, request, result)
        failure = launching.error_of(result.findings, self._settings.destroys)
        printed = "".join(printed.text for printed in result.printed)
        used = self._used(progress.execution, result) if judged and self._on_host else []
        self._channel.answer("", failure, printed, len(used) // 3, *used)

    def _used(self, execution: Execution | None, result: Result) -> list[int]:
        """What a launch has used of memory that the host may touch: first byte, the one behind the
        last, and how, of each range."""
        most = max(_SMALL, _BYTES_OF_AN_INSTRUCTION * result.thread_instructions)
        objects = [item for item in self._on_host.values() if item.size <= most]
        if execution is None or not objects:
            return []
        made = stream_races.accesses(execution.history, GLOBAL_BASE, objects, execution.sites)
        return [
            number
            for how, name in enumerate(stream_races.USAGES)
            for first, end in getattr(made, name).pairs()
            for number in (first, end, how)
        ]

    def _tensor_map(self, message: Message) -> None:
        kind, address, swizzle, fill, rank = message.numbers(5)
        pairs = [message.numbers(2) for _ in range(rank)]
        element = _ELEMENTS.get(kind)
        if element is None or swizzle >= len(_SWIZZLES) or fill:
            why = "a tensor map of a type, swizzle or fill that the emulator does not execute."
            self._refused = Refusal(sentence=why)
            self._channel.answer(why, b"")
            return
        array = self._device.live.at(address)
        tensor = TensorMap(
            array=array.name if array else "",
            element=element,
            shape=tuple(size for size, _ in pairs),
            strides_bytes=message.numbers(rank - 1),
            box=tuple(extent for _, extent in pairs),
            swizzle=_SWIZZLES[swizzle],
        )
        placed = PlacedMap(tensor, address - GLOBAL_BASE)
        self._channel.answer("", self._device.maps.add(placed))

    def _order(self, message: Message) -> None:
        stream, count, beside = message.numbers(3)
        clock, host = _clock(message), _clock(message)
        self._streams.begin(stream, count, clock, host, beside)

    def _access(self, message: Message) -> None:
        name, writes, frames = message.text(), message.number(), message.frames()
        rows = np.array([message.numbers(2) for _ in range(message.number())], np.int64)
        ranges = Ranges(rows[:, 0], rows.sum(axis=1))
        made = Accesses(writes=ranges) if writes else Accesses(reads=ranges)
        self._compare(name, frames, made)

    def _compare(self, what: str, frames: tuple[int, ...], made: Accesses) -> None:
        """Notes what a piece of work does that another stream's may do at the same time."""
        for before, now, byte, mine, their in self._streams.note(what, frames, made):
            number = _UNNUMBERED + len(self._freed)
            self._freed[number] = before.frames
            item = self._device.live.at(byte)
            where = f"byte {byte - item.address:,} of {item.name}" if item else f"{byte:#x}"
            sentence = (
                f"{now.placed} {now.does(mine)} {where}, which {before.placed}, at @{number}-, "
                f"{before.does(their)}: {now.missing(before)}."
            )
            key = "stream-race", before.what, (*frames, *before.frames)
            known = self._remarks.get(key)
            self._remarks[key] = Remark(
                name="stream-race",
                sentence=known.sentence if known else sentence,
                frames=frames,
                count=known.count + 1 if known else 1,
            )

    def _touched(self, message: Message) -> None:
        """The host has touched what work may still use."""
        byte, writes, how = message.numbers(3)
        what, before, frames = message.text(), message.frames(), message.frames()
        number = _UNNUMBERED + len(self._freed)
        self._freed[number] = before
        item = self._device.live.at(byte)
        where = f"byte {byte - item.address:,} of {item.name}" if item else f"{byte:#x}"
        sentence = (
            f"the host {'writes' if writes else 'reads'} {where}, which {what}, at @{number}-, "
            f"{stream_races.USAGES[how]}: the host has not waited for it."
        )
        key = "host-race", what, (*frames, *before)
        self._remarks.setdefault(key, Remark(name="host-race", sentence=sentence, frames=frames))

    def _bye(self, message: Message) -> None:
        self._maps = message.text()
        self._ended = True
        self._channel.answer()

    # What is noted

    def _judges(self, entry: str, launch: int) -> bool:
        """Whether it is checked; if not, it is but executed, which is quicker."""
        known = self._launched.get(entry)
        return self._settings.judges(entry, launch, known.judged if known else 0)

    def _count(self, entry: str, result: Result, judged: bool) -> None:
        old = self._launched.get(entry) or KernelTotals(
            kernel=entry, launches=0, judged=0, thread_instructions=0, seconds=0.0
        )
        self._launched[entry] = KernelTotals(
            kernel=entry,
            launches=old.launches + 1,
            judged=old.judged + judged,
            thread_instructions=old.thread_instructions + result.thread_instructions,
            seconds=old.seconds + result.seconds,
        )

    def _catch(self, entry: str, request: Request, result: Result) -> None:
        for finding, formal in (
            *((item, False) for item in result.findings),
            *((warning, True) for warning in result.warnings),
        ):
            self._add(entry, request, finding, formal)

    def _add(self, entry: str, request: Request, finding: Finding, formal: bool) -> None:
        key = entry, finding.name, _place(finding)
        old = self._caught.get(key)
        if old is None:
            sentence = _ADDRESS.sub(self._named, finding.sentence)
            self._caught[key] = Caught(
                finding=msgspec.structs.replace(finding, sentence=sentence),
                kernel=entry,
                launch=request.launch,
                stream=request.stream,
                frames=request.frames,
                formal=formal,
            )
        else:
            self._caught[key] = msgspec.structs.replace(old, launches=old.launches + 1)

    def _named(self, match: re.Match[str]) -> str:
        """An address with the object that it lies in, if it lies in any."""
        address = int(match[1], 16)
        result = self._device.live.at(address)
        return (
            f"{match[0]} (byte {address - result.address:,} of {result.name})"
            if result
            else match[0]
        )

    def _report(self) -> Report:
        if self._ended:
            self._note_leaks()
        return Report(
            pid=self._pid,
            program=self._program,
            maps=self._maps,
            kernels=tuple(self._launched.values()),
            caught=tuple(self._caught.values()),
            remarks=tuple(self._remarks.values()),
            sites=self._sites,
            freed=self._freed,
            sizes=self._sizes,
            refused=self._refused,
            captured=self._captured,
            unexecuted=tuple(self._unexecuted),
            ended=self._ended,
        )

    def _note_leaks(self) -> None:
        by_site = Counter(self._sites[number] for number in self._numbers.values())
        for number in self._numbers.values():
            frames = self._sites[number]
            count = by_site.pop(frames, 0)
            if count:
                many = f"; {count - 1:,} more made there neither" if count > 1 else ""
                sentence = f"@{number} ({self._sizes[number]:,} bytes) is never freed{many}."
                self._remarks["leak", sentence, frames] = Remark(
                    name="leak", sentence=sentence, frames=frames, count=count
                )


def _clock(message: Message) -> dict[int, int]:
    """Of each stream, how much of its work is known to be done."""
    numbers = message.numbers(2 * message.number())
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


def _place(finding: Finding) -> str:
    """What findings of several launches have in common to be one."""
    own = finding.source.own() if finding.source else None
    return f"{own.file}:{own.line}" if own else f"{finding.line} {finding.cause}"
