"""Output of `kernelexp capture`: captured launches, and their replays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.evidence.programs.replay_worker import ChangedOutput
from kernelexp.model.text import printable
from kernelexp.report.document.document import Block, Span, paragraph, table
from kernelexp.services.capturing import MIB, ProgramCaptures
from kernelexp.services.replaying import Replay
from warpsim.launch import full_name

SHOWN = 20
"""Kernels in the table of a program."""
_NAME_MAX = 44
_ROUNDING = 1e-3
"""What differs by less was computed, and rounded otherwise."""


def render(program: ProgramCaptures, wanted: bool) -> Iterator[Block]:
    """Yields what was kept and what was not; the program's kernels where nothing was."""
    for kept in program.captured:
        size = f"{kept.bytes / MIB:,.1f} MiB in {kept.regions} allocation(s)"
        took = f", {kept.microseconds:,.1f} us" if kept.microseconds else ""
        yield paragraph(f"{kept.folder}: launch {kept.launch}, {size}{took}")
        if kept.cut:
            yield paragraph(
                f"{kept.cut} of them are larger than --limit: of these, a part was kept.", indent=2
            )
    for skipped in program.skipped:
        yield paragraph(
            Span("not kept", "warn"),
            f": launch {skipped.launch}, of {_short(skipped.symbol)}: {skipped.why}.",
        )
    if not program.captured:
        yield from _kernels(program)
    for sentence in program.unmet:
        yield paragraph(Span("not kept", "warn"), f": {sentence}.")
    if wanted and not (program.captured or program.skipped or program.unmet):
        yield paragraph(Span("nothing was kept", "warn"), ": no launch is one that was asked for.")
    yield paragraph(_summary(program), style="dim")


def _kernels(program: ProgramCaptures) -> Iterator[Block]:
    rows = (
        (
            _short(one.symbol),
            f"{one.launches:,}",
            f"{one.median_us:,.1f}",
            f"{one.seconds * 1e3:,.3f}",
        )
        for one in program.kernels[:SHOWN]
    )
    yield table(("kernel", "launches", "median us", "total ms"), rows, numbers=(1, 2, 3))


def _short(symbol: str) -> str:
    name = _own_name(printable(full_name(symbol)))
    return name if len(name) <= _NAME_MAX else f"{name[: _NAME_MAX - 3]}..."


def _own_name(name: str) -> str:
    """f<a::b> of x::y::f<a::b>."""
    depth, begin = 0, 0
    for at, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if depth == 0 and name.startswith("::", at):
            begin = at + 2
    return name[begin:]


def _summary(program: ProgramCaptures) -> str:
    parts = [f"{program.launches:,} launches of {len(program.kernels):,} kernels"]
    if program.graphs:
        parts.append(f"{program.graphs:,} of CUDA graphs, whose kernels are not seen one by one")
    if program.no_times:
        parts.append(f"no times: {program.no_times}")
    return f"{program.program}: {', '.join(parts)}; {program.seconds:,.1f} s."


def render_replays(results: Sequence[Replay]) -> Iterator[Block]:
    for result in results:
        where = "on the GPU" if result.where == "gpu" else "emulated"
        verdict = Span("same bytes", "good") if result.same else Span("other bytes", "bad")
        of = f"{result.changed} of {result.regions} allocations change"
        yield paragraph(f"{result.folder}: {where}: ", verdict, f" ({of})")
        for words in (*_remarks(result), *result.findings, _times(result), *_conditions(result)):
            if words:
                yield paragraph(words, indent=2)


def _remarks(result: Replay) -> Iterator[str]:
    """Yields the differences, and the reasons why a comparison says little."""
    for item in result.differences:
        yield (
            f"allocation {item.region} ({item.address:#x}): {item.bytes:,} of {item.size:,} bytes "
            f"differ, the first at {item.first:,}{_rounded(item)}"
        )
    if not result.changed:
        yield (
            "the program's launch changed nothing, as after one like it: an earlier one says more"
        )
    if result.unsure:
        yield "several modules of the program have a kernel of this name: this may be another's"
    if not result.repeatable:
        yield "its launches here do not leave the same bytes each time"


def _conditions(result: Replay) -> Iterator[str]:
    """Yields caveats on comparing the times with the program's."""
    if result.where == "emulator":
        return
    if not result.row_same:
        yield "launches in a row leave other bytes: each has other data than the program's launch"
    if result.previous and result.previous != result.symbol and not result.after:
        before = result.launch - 1
        yield (
            f"in the program it comes after {_short(result.previous)}: capture that too "
            f"(--launches {before}-{result.launch}), and replay with --after to have its L2 state"
        )


def _rounded(item: ChangedOutput) -> str:
    if not 0 <= item.as_floats < _ROUNDING:
        return ""
    return f"; as 32-bit floats by {item.as_floats:.1e} of their values at most"


def _times(result: Replay) -> str:
    if result.where == "emulator":
        return f"emulated in {result.seconds:,.1f} s"
    parts = [
        f"{value:,.2f} us {what}"
        for value, what in (
            (result.row_us, "in a row (median)"),
            (result.after_us, f"directly after {result.after}"),
            (result.replayed_us, "after its memory was put back"),
            (result.evicted_us, "with other data in L2"),
            (result.own_us, "in the program"),
            (result.others_us, "the program's other launches of this shape (median)"),
        )
        if value
    ]
    return ", ".join(parts)
