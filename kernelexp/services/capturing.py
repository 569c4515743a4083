"""`kernelexp capture`: launches of any program on this machine's GPU, each kept in a folder."""

from __future__ import annotations

import itertools
import re
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.programs import captures, injection
from kernelexp.evidence.programs.captures import ProcessSummary, SkippedLaunch
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.system.process import processes
from warpsim.launch import full_name, plain_name

MIB = 1 << 20
_NAME_MAX = 60
_OTHERS = 1000
"""Times that a capture has of other launches."""
_UNSAFE = re.compile(r"[^\w.-]+")


class WantedKernel(msgspec.Struct, frozen=True, kw_only=True):
    """Kernels by a pattern, as of files: of each the first-th launch and those that follow."""

    pattern: str
    first: int = 1
    count: int = 1


class CaptureOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A program, and which of its launches are wanted; none: they are listed alone."""

    argv: tuple[str, ...]
    kernels: tuple[WantedKernel, ...] = ()
    launches: tuple[tuple[int, int], ...] = ()
    """Among all launches of a process, from 1."""
    limit_mib: int = 256
    """Of an allocation, as many are copied."""
    output: Path = Path("captures")
    timeout_s: float | None = None


class KernelUse(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel of a program."""

    symbol: str
    launches: int
    seconds: float
    """Of all its launches on the device, but for those that were captured."""
    median_us: float

    @property
    def name(self) -> str:
        return full_name(self.symbol)


class CapturedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A launch that was kept."""

    folder: str
    symbol: str
    launch: int
    regions: int
    bytes: int
    cut: int
    """Allocations of which only a part was copied."""
    microseconds: float
    """That this launch took on the device; 0: not known."""


class ProgramCaptures(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a program and of the launches that were wanted."""

    program: str
    returncode: int
    """As Python has it: negative for a signal."""
    seconds: float
    launches: int
    graphs: int
    kernels: tuple[KernelUse, ...]
    """Those that took longest first."""
    captured: tuple[CapturedFolder, ...]
    skipped: tuple[SkippedLaunch, ...]
    unmet: tuple[str, ...] = ()
    """Why there is no launch for some of what was asked for, in sentences."""
    no_times: str = ""


def capture(order: CaptureOrder, root: Path, output: int | None = None) -> ProgramCaptures:
    """Runs the program; `root` has the cache.

    output: the file that its standard output goes to; None: this process's own.
    Raises EnvironmentFault where nothing can be captured on this machine.
    """
    library = injection.make(root)
    order.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".capture-", dir=order.output) as place:
        folder = Path(place).resolve()
        (folder / "settings").write_text("".join(_settings(order)), "utf-8")
        ended = processes.run_attached(
            order.argv,
            cwd=None,
            env={injection.VARIABLE: str(library), injection.FOLDER: str(folder)},
            timeout_s=order.timeout_s,
            output=output,
            meanwhile=lambda _: None,
        )
        read = captures.summaries(folder)
        _require_seen(read, order.argv[0], ended.returncode)
        kept = [item for summary in read for item in _keep(summary, order.output)]
    return ProgramCaptures(
        program=Path(order.argv[0]).name,
        returncode=ended.returncode,
        seconds=ended.seconds,
        launches=sum(summary.launches for summary in read),
        graphs=sum(summary.graphs for summary in read),
        kernels=tuple(sorted(_uses(read), key=lambda use: -use.seconds)),
        captured=tuple(kept),
        skipped=tuple(skipped for summary in read for skipped in summary.skipped),
        unmet=tuple(_unmet(order.kernels, read)),
        no_times=next((summary.no_times for summary in read if summary.no_times), ""),
    )


def _settings(order: CaptureOrder) -> Iterator[str]:
    """Yields the settings as cupti/settings.cpp reads them."""
    yield f"limit {order.limit_mib * MIB}\n"
    for first, last in order.launches:
        yield f"launches {first} {last}\n"
    for kernel in order.kernels:
        yield f"kernel {kernel.first} {kernel.count} {kernel.pattern}\n"


def _require_seen(read: Sequence[ProcessSummary], program: str, returncode: int) -> None:
    errors = [summary.error for summary in read if summary.error]
    if errors:
        raise EnvironmentFault(f"CUPTI can't watch {program}: {errors[0]}.")
    if not read:
        raise UsageError(
            f"{program} ended with exit code {returncode}, and none of its processes that used "
            "CUDA came to an ordinary end: nothing was seen of it."
        )


def _keep(summary: ProcessSummary, output: Path) -> Iterator[CapturedFolder]:
    """Moves captured launches to their places, with their times."""
    for timed in summary.captured:
        folder = Path(timed.folder)
        launch = captures.read(folder)
        launch = msgspec.structs.replace(
            launch,
            nanoseconds=timed.nanoseconds,
            others=tuple(itertools.islice(captures.times_of([summary], launch), _OTHERS)),
        )
        captures.write(folder, launch)
        place = output / _folder_name(launch.symbol, launch.launch)
        shutil.rmtree(place, ignore_errors=True)
        folder.rename(place)
        yield CapturedFolder(
            folder=str(place),
            symbol=launch.symbol,
            launch=launch.launch,
            regions=len(launch.regions),
            bytes=launch.bytes,
            cut=sum(region.size < region.allocated for region in launch.regions),
            microseconds=launch.nanoseconds / 1e3,
        )


def _unmet(wanted: Sequence[WantedKernel], read: Sequence[ProcessSummary]) -> Iterator[str]:
    kernels = [kernel for summary in read for kernel in summary.kernels]
    for index, order in enumerate(wanted):
        launches = [kernel.launches for kernel in kernels if index in kernel.patterns]
        if not launches:
            yield f"no kernel is called {order.pattern!r}"
        elif max(launches) < order.first:
            yield (f"{order.pattern!r} is launched {max(launches):,} times, not {order.first:,}")


def _folder_name(symbol: str, launch: int) -> str:
    return f"{_UNSAFE.sub('_', plain_name(symbol))[:_NAME_MAX]}-{launch}"


def _uses(read: Sequence[ProcessSummary]) -> Iterator[KernelUse]:
    """Each kernel once, of all processes."""
    symbols = dict.fromkeys(kernel.symbol for summary in read for kernel in summary.kernels)
    for symbol in symbols:
        same = [item for summary in read for item in summary.kernels if item.symbol == symbol]
        times = [time for item in same for shape in item.times for time in shape.nanoseconds]
        yield KernelUse(
            symbol=symbol,
            launches=sum(item.launches for item in same),
            seconds=sum(times) / 1e9,
            median_us=statistics.median(times) / 1e3 if times else 0.0,
        )
