"""`kernelexp capture --replay`: a captured launch again, on the GPU or emulated, bit by bit."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from kernelexp.evidence import native
from kernelexp.evidence.programs import captures, injection, replay_worker
from kernelexp.evidence.programs.captures import Capture
from kernelexp.evidence.programs.replay_worker import ChangedOutput, WorkerReplay
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain
from warpsim import compiled, execute, modules
from warpsim.launch import TENSOR_MAP_BYTES, Launch, StructValue, full_name
from warpsim.machine.memory import tensor_map_image
from warpsim.machine.memory.layout import GLOBAL_BASE, GlobalLayout
from warpsim.machine.memory.tensor_map_image import PlacedMap

Where = Literal["gpu", "emulator"]
REPEATS = 30
WARM = 5
"""Launches whose times do not count."""
ROW_S = 0.5
"""Of launches in a row, at most."""
LIMIT_S = 600.0


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A launch that was repeated."""

    folder: str
    symbol: str
    where: Where
    regions: int
    changed: int
    """Of them, those that the program's launch changed: none tells little."""
    unsure: bool
    """Whether several modules have a kernel of that name, and which was launched is not known."""
    bytes: int
    differences: tuple[ChangedOutput, ...]
    """None: it left the same bytes."""
    repeatable: bool = True
    findings: tuple[str, ...] = ()
    """Of the emulator."""
    seconds: float = 0.0
    """That the emulation took."""
    own_us: float = 0.0
    """What the captured launch took in the program, and others of its shape; 0: not known."""
    others_us: float = 0.0
    replayed_us: float = 0.0
    """The median here, each launch after its memory was put back."""
    evicted_us: float = 0.0
    """The same with other data in the L2 cache before each launch."""
    row_us: float = 0.0
    """The median of launches in a row, each on what the one before left."""
    row_same: bool = True
    """Whether these left the same bytes: else they had other work."""
    after_us: float = 0.0
    """The median of launches that come directly after `after`."""
    after: str = ""
    """Another capture of the program; empty: none."""
    previous: str = ""
    """The kernel that the program launched before it."""
    launch: int = 0
    """Among all launches of its process, from 1."""

    @property
    def name(self) -> str:
        return full_name(self.symbol)

    @property
    def same(self) -> bool:
        return not self.differences


def replay(
    folder: Path, where: Where, tools: Toolchain, root: Path, after: Path | None = None
) -> Replay:
    """after: a capture of the launch that came directly before, which is repeated with it.

    Raises UsageError for what is not a capture, EnvironmentFault where this machine can't.
    """
    capture = captures.read(folder)
    if where == "gpu":
        return _on_gpu(folder, capture, root, after)
    return _emulated(folder, capture, tools, root)


def has_gpu() -> bool:
    """Whether there is one to launch on."""
    from kernelexp.system import device

    return device.find_if_any() is not None


def _replay(folder: Path, capture: Capture, where: Where) -> Replay:
    return Replay(
        folder=str(folder),
        symbol=capture.symbol,
        where=where,
        regions=len(capture.regions),
        changed=sum(region.changed for region in capture.regions),
        bytes=capture.bytes,
        unsure=capture.modules > 1 and not capture.chosen,
        differences=(),
        launch=capture.launch,
        previous=capture.previous,
        own_us=capture.nanoseconds / 1e3,
        others_us=_median_us(capture.others),
    )


# ---- On the card


def _on_gpu(folder: Path, capture: Capture, root: Path, after: Path | None) -> Replay:
    """Replays in a process that the same library watches: its times are taken as the program's."""
    before = captures.read(after) if after else None
    in_row = _in_row(capture)
    library = injection.make(root)
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as place:
        result = Path(place) / "result.json"
        (Path(place) / "settings").write_text("")
        counts = REPEATS + WARM, in_row
        argv = [sys.executable, "-m", replay_worker.__name__, str(folder), str(result)]
        done = processes.run(
            [*argv, *map(str, counts), *([str(after)] if after else [])],
            env={injection.VARIABLE: str(library), injection.FOLDER: place},
            timeout_s=LIMIT_S,
        )
        if not result.is_file():
            raise EnvironmentFault(f"{folder} can't be replayed: {done.stderr.strip()[-2000:]}")
        worker = msgspec.json.decode(result.read_bytes(), type=WorkerReplay)
        if worker.error:
            raise EnvironmentFault(f"{folder} can't be replayed: {worker.error}")
        times = [*captures.times_of(captures.summaries(Path(place)), capture)]
    each = REPEATS + WARM
    replayed, evicted = (times[1 + begin :][:each][WARM:] for begin in (0, each))
    row, behind = times[1 + 2 * each :][:in_row], times[1 + 2 * each + in_row :]
    # A launch of the same kernel with the same shape has its times among them, each first.
    alike = before and captures.shape(before) == captures.shape(capture)
    return msgspec.structs.replace(
        _replay(folder, capture, "gpu"),
        differences=worker.differences,
        repeatable=worker.repeatable,
        replayed_us=_median_us(replayed),
        evicted_us=_median_us(evicted),
        row_us=_median_us(row[WARM:]),
        row_same=worker.row_same,
        after_us=_median_us((behind[1::2] if alike else behind)[WARM:]),
        after=str(after or ""),
    )


def _in_row(capture: Capture) -> int:
    """Returns as many launches as the program has: clocks and L2 have come to rest in them."""
    took = statistics.median(capture.others) / 1e9 if capture.others else ROW_S
    most = min(len(capture.others), int(ROW_S / max(took, 1e-6)))
    return max(most, REPEATS + WARM)


def _median_us(nanoseconds: Sequence[int]) -> float:
    return statistics.median(nanoseconds) / 1e3 if nanoseconds else 0.0


# ---- Emulated


def _emulated(folder: Path, capture: Capture, tools: Toolchain, root: Path) -> Replay:
    begun = time.monotonic()
    if library := native.library(root):
        compiled.load(Path(library))
    content = (folder / captures.CUBIN).read_bytes()
    module = modules.load_cubin(content, _listing(folder / captures.CUBIN, tools))
    image = module.entries[capture.symbol].image
    held = [captures.contents(folder, capture, index) for index in range(len(capture.regions))]
    names = _names(capture)
    arrays = {
        name: np.frombuffer(before, np.uint8).copy()
        for name, (before, _) in zip(names, held, strict=True)
    }
    world = GlobalLayout(image.variables, arrays, frozenset(), image.heap_bytes, image.functions)
    cluster = capture.cluster
    if image.cluster is not None and cluster == (1, 1, 1):
        cluster = image.cluster
    launch = Launch(
        entry=capture.symbol,
        grid=capture.grid,
        block=capture.block,
        cluster=cluster,
        dynamic_smem_bytes=capture.shared,
        arguments=tuple(_arguments(capture, world)),
    )
    result = execute.run_on(modules.entry_of(module, launch), launch, world, limit=10**10)
    differences = [
        difference
        for index, (_, after) in enumerate(held)
        for difference in replay_worker.compare(
            index, capture, arrays[names[index]].tobytes(), after
        )
    ]
    return msgspec.structs.replace(
        _replay(folder, capture, "emulator"),
        differences=tuple(differences),
        findings=tuple(finding.sentence for finding in result.findings),
        seconds=time.monotonic() - begun,
    )


def _listing(cubin: Path, tools: Toolchain) -> str:
    """Its SASS."""
    done = processes.run([tools.cuobjdump, "-sass", str(cubin)], timeout_s=120)
    if done.returncode != 0:
        raise UsageError(f"{cubin} can't be disassembled: {done.stderr.strip()}")
    return done.stdout


def _names(capture: Capture) -> list[str]:
    """Names regions as arrays: a variable's own is that variable."""
    return [region.variable or f"r{index}" for index, region in enumerate(capture.regions)]


def _arguments(capture: Capture, world: GlobalLayout) -> Iterator[StructValue]:
    bases = [world.address(name) for name in _names(capture)]
    for parameter in capture.parameters:
        content = parameter.content
        data = bytearray(captures.relocated(content, capture.regions, bases))
        for at in range(0, len(data) - TENSOR_MAP_BYTES + 1, captures.MAP_STEP):
            encoded = _encode(content[at : at + TENSOR_MAP_BYTES], capture, bases, world)
            used = encoded[: tensor_map_image.USED]
            data[at : at + len(used)] = used
        yield StructValue(size=len(data), data=bytes(data))


def _encode(data: bytes, capture: Capture, bases: list[int], world: GlobalLayout) -> bytes:
    """A tensor map as the emulator has it; empty where there is none."""
    for name, region in zip(_names(capture), capture.regions, strict=True):
        address, tensor = tensor_map_image.decode(data, name)
        if tensor is not None and region.address <= address < region.end:
            place = captures.moved(address, capture.regions, bases)
            return world.maps.add(PlacedMap(tensor, place - GLOBAL_BASE))
    return b""
