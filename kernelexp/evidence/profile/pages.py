"""ncu's pages (CSV of raw, details, source, or plain text) to profiled evidence of each launch.

`ncu --csv --page raw|details|source` prints them, and `ncu --import FILE` prints those of a report;
without --csv it prints plain text.
Nothing here needs ncu or a GPU.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kernelexp.evidence.profile import figures
from kernelexp.evidence.profile.merging import ProfiledLaunch, merge
from kernelexp.evidence.profile.plain import PlainReader
from kernelexp.evidence.profile.reader import LaunchReading, Reader
from kernelexp.model.arm import ProfiledEvidence, ProfiledInstruction
from kernelexp.model.errors import UsageError
from kernelexp.model.text import printable

PRINT = "ncu --import REPORT.ncu-rep --csv --page raw (or details, or source) prints one"

_DEVICE = "device__attribute_display_name"
# A toolkit's own headers: the line that uses them says more.
_TOOLKIT = re.compile(r"[/\\](?:cuda[^/\\]*|CUDA)[/\\].*include[/\\]")


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The launches read from one text, and what of it could not be read."""

    launches: tuple[ProfiledLaunch, ...]
    lost: tuple[str, ...] = ()
    """What could not be read, a sentence each."""


def read(text: str, name: str) -> tuple[ProfiledEvidence, ...]:
    """The evidence of each launch of a page; UsageError where `text` is none.

    `name` is what a mistake is said of, such as the file's name.
    """
    page = parse(io.StringIO(text, newline=None), name)
    return tuple(launch.evidence for launch in page.launches)


def parse(lines: Iterable[str], name: str) -> Page:
    """The launches of one page, or of several that follow each other, in their order.

    Lines are read once and not kept. UsageError where there is no launch.
    """
    reader, plain = Reader(), PlainReader()
    for row in figures.read(_seen(lines, plain)):
        reader.take(row)
    plain.end()
    if not any(reader.pages) and plain.launches:
        reader.pages = [plain.launches]
    if not any(reader.pages):
        raise UsageError(f"{printable(name)} {_what_it_is(reader)}: {PRINT}.")
    mark = figures.decimal_mark(
        text for page in reader.pages for launch in page for text in launch.numbers()
    )
    launches = merge([[_launch(reading, mark) for reading in page] for page in reader.pages])
    return Page(launches=launches, lost=tuple(reader.lost(name)))


def _seen(lines: Iterable[str], plain: PlainReader) -> Iterator[str]:
    """The lines, which may be those of ncu's plain text."""
    for line in lines:
        plain.take(line)
        yield line


def _what_it_is(reader: Reader) -> str:
    if reader.is_cuda_only:
        return "is ncu's source page of CUDA lines alone, without --print-source sass or cuda,sass"
    if reader.header:
        return "has the header of a CSV page of ncu, and no launch"
    return "is not a page of ncu"


# ---- launches to evidence ------------------------------------------------------------------------


def _launch(reading: LaunchReading, mark: figures.Mark) -> ProfiledLaunch:
    values: dict[str, float | str] = {}
    units: dict[str, str] = {}
    missing: list[str] = []
    for metric, (text, unit) in reading.texts.items():
        factor, base = figures.base(unit)
        if (value := figures.number(text, mark)) is not None:
            values[metric] = value * factor
        elif instances := figures.instances(text, mark):
            values[metric] = instances[0] * factor
            values.update(
                (f"{metric}[{name}]", number * factor) for name, number in instances[1].items()
            )
        else:
            if not figures.is_none(text):
                values[metric] = text
            elif text or unit:  # a text that is empty is not a figure that is missing
                missing.append(metric)
            continue
        if base:
            units[metric] = base
    about = reading.about
    instructions, first = _instructions(reading, mark)
    device = values.get(_DEVICE, "")
    evidence = ProfiledEvidence(
        entry=reading.entry,
        figures={**sum_up(instructions), **values},
        units=units,
        device=device if isinstance(device, str) else "",
        capability=about.get("CC", ""),
        grid=_triple(about.get("Grid Size", "")),
        block=_triple(about.get("Block Size", "")),
        missing=tuple(missing),
        advice=tuple(reading.advice),
        instructions=instructions,
    )
    return ProfiledLaunch(
        kind=reading.kind,
        process=reading.process,
        id=reading.number,
        first=first,
        evidence=evidence,
    )


def _triple(text: str) -> tuple[int, int, int] | None:
    parts = re.findall(r"\b\d{1,12}\b", text)
    return (int(parts[0]), int(parts[1]), int(parts[2])) if len(parts) == 3 else None


def _instructions(
    reading: LaunchReading, mark: figures.Mark
) -> tuple[tuple[ProfiledInstruction, ...], int]:
    if not reading.instructions:
        return (), 0
    first = min(reading.instructions)
    places = _places(reading.lines)
    instructions = []
    for address, (sass, texts) in sorted(reading.instructions.items()):
        read = ((column, figures.number(text, mark)) for column, text in texts.items())
        file, line = places.get(address, ("", 0))
        instructions.append(
            ProfiledInstruction(
                offset=address - first,
                sass=sass,
                file=file,
                line=line,
                figures={column: value for column, value in read if value},
            )
        )
    return tuple(instructions), first


def _places(lines: dict[tuple[str, int], list[int]]) -> dict[int, tuple[str, int]]:
    """Each address with its line: of several, as inlining makes them, that of fewest instructions.

    Lines of the CUDA toolkit's headers come last: the line that uses them says more.
    """
    places: dict[int, tuple[str, int]] = {}
    ranked = sorted(lines, key=lambda at: (bool(_TOOLKIT.search(at[0])), len(lines[at]), at))
    for place in ranked:
        for address in lines[place]:
            places.setdefault(address, place)
    return places


_COLUMNS = {
    "Instructions Executed": "smsp__inst_executed.sum",
    "Thread Instructions Executed": "smsp__thread_inst_executed.sum",
    "L1 Wavefronts Shared": "memory_l1_wavefronts_shared",
    "L1 Wavefronts Shared Ideal": "memory_l1_wavefronts_shared_ideal",
    "L1 Wavefronts Shared Excessive": "derived__memory_l1_wavefronts_shared_excessive",
    "L2 Theoretical Sectors Global": "memory_l2_theoretical_sectors_global",
    "L2 Theoretical Sectors Global Ideal": "memory_l2_theoretical_sectors_global_ideal",
    "L2 Theoretical Sectors Global Excessive": (
        "derived__memory_l2_theoretical_sectors_global_excessive"
    ),
    "L1 Tag Requests Global": "memory_l1_tag_requests_global",
}
_STALLS = {
    "long_sb": "long_scoreboard",
    "short_sb": "short_scoreboard",
    "mio": "mio_throttle",
    "lg": "lg_throttle",
    "tex": "tex_throttle",
    "math": "math_pipe_throttle",
    "no_inst": "no_instructions",
    "imc": "imc_miss",
    "dispatch": "dispatch_stall",
}
"""Reasons to wait that a source page shortens."""
_SAMPLES = "smsp__pcsamp_warps_issue_stalled_"


def sum_up(instructions: Sequence[ProfiledInstruction]) -> dict[str, float | str]:
    """Sums over the instructions, by ncu's names."""
    sums: dict[str, float | str] = {}
    for instruction in instructions:
        for column, value in instruction.figures.items():
            if name := _name(column):
                before = sums.get(name, 0.0)
                sums[name] = value + (before if isinstance(before, float) else 0.0)
    return sums


def _name(column: str) -> str:
    if column in _COLUMNS:
        return _COLUMNS[column]
    reason = column.removeprefix("stall_")
    if reason == column or not reason.isidentifier():
        return ""
    return f"{_SAMPLES}{_STALLS.get(reason, reason)}"
