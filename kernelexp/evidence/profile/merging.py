"""Pages of one launch made one evidence, with the conditions that the session page states."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from kernelexp.evidence.profile.reader import Kind
from kernelexp.model.arm import ProfiledEvidence, ProfiledInstruction

_ORDER: dict[Kind, int] = {"raw": 0, "details": 1, "source": 2}


class ProfiledLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence of one launch, and what tells it from others of the same report."""

    kind: Kind
    """The page that it was read from; of several, the first."""
    process: str = ""
    id: str = ""
    """ncu's number of the launch; a source page has none."""
    first: int = 0
    """Address of its first instruction; 0 without a source page."""
    evidence: ProfiledEvidence


def merge(pages: Sequence[Sequence[ProfiledLaunch]]) -> tuple[ProfiledLaunch, ...]:
    """The launches of several pages, those of the same launch as one, in the order of the first.

    The same launch has the same number in the same process. Where a page does not number its
    launches, or is of another run of ncu, the n-th launch of a kernel is the same on each page
    that has as many launches of it, unless their grids or blocks differ.
    """
    merged: list[ProfiledLaunch] = []
    for page in sorted(
        pages, key=lambda page: min((_ORDER[launch.kind] for launch in page), default=0)
    ):
        _add(merged, page)
    return tuple(merged)


def _add(merged: list[ProfiledLaunch], page: Sequence[ProfiledLaunch]) -> None:
    by_number = {(item.process, item.id): index for index, item in enumerate(merged) if item.id}
    by_entry: dict[str, list[int]] = {}
    for at, profiled_launch in enumerate(merged):
        by_entry.setdefault(bare(profiled_launch.evidence.entry), []).append(at)
    counts = Counter(bare(launch.evidence.entry) for launch in page)
    passed: Counter[str] = Counter()
    before = tuple(merged)
    free = set(range(len(before)))
    for launch in page:
        entry = bare(launch.evidence.entry)
        alike = by_entry.get(entry, [])
        index = by_number.get((launch.process, launch.id))
        if index is None and len(alike) == counts[entry]:
            index = alike[passed[entry]]
        passed[entry] += 1
        if index in free and index is not None and _can_be_same(merged[index], launch):
            free.discard(index)
            merged[index] = join(merged[index], launch)
        elif (around := _caller(before, launch)) is not None:
            merged[around] = join(merged[around], launch)
        else:
            merged.append(launch)


def _caller(before: Sequence[ProfiledLaunch], launch: ProfiledLaunch) -> int | None:
    """Returns the index of the kernel that a function's part of a source page belongs to: the one
    that has its instructions. None for a kernel's own part."""
    if launch.kind != "source" or not launch.first:
        return None
    for index, profiled_launch in enumerate(before):
        instructions = profiled_launch.evidence.instructions
        offset = launch.first - profiled_launch.first
        if instructions and bare(profiled_launch.evidence.entry) != bare(launch.evidence.entry):
            if 0 <= offset <= instructions[-1].offset:
                return index
    return None


def bare(entry: str) -> str:
    """A kernel's name without its parameters, which some pages print."""
    return entry.partition("(")[0].strip()


def _can_be_same(a: ProfiledLaunch, b: ProfiledLaunch) -> bool:
    mine, other = a.evidence, b.evidence
    return bare(mine.entry) == bare(other.entry) and not any(
        one and two and one != two
        for one, two in ((mine.grid, other.grid), (mine.block, other.block))
    )


def join(a: ProfiledLaunch, b: ProfiledLaunch) -> ProfiledLaunch:
    """Both as one launch; where both have a figure, that of `a`."""
    mine, other = a.evidence, b.evidence
    # What a details page names by label alone is in a raw page under its own name.
    added = {
        name: value
        for name, value in other.figures.items()
        if a.kind != "raw" or "__" in name or ": " not in name
    }
    figures = {**added, **mine.figures}
    units = {**other.units, **mine.units}
    gaps = dict.fromkeys((*mine.missing, *other.missing))
    kept = ("device", "capability", "driver", "tool", "clock_control", "cache_control", "replay")
    evidence = msgspec.structs.replace(
        mine,
        figures=figures,
        units={name: unit for name, unit in units.items() if name in figures},
        missing=tuple(name for name in gaps if name not in figures),
        advice=tuple(dict.fromkeys((*mine.advice, *other.advice))),
        instructions=_instructions(a, b),
        grid=mine.grid or other.grid,
        block=mine.block or other.block,
        size=mine.size or other.size,
        **{name: getattr(mine, name) or getattr(other, name) for name in kept},
    )
    return msgspec.structs.replace(a, evidence=evidence, first=_first(a, b))


def _first(a: ProfiledLaunch, b: ProfiledLaunch) -> int:
    return min(filter(None, (a.first, b.first)), default=0)


def _instructions(a: ProfiledLaunch, b: ProfiledLaunch) -> tuple[ProfiledInstruction, ...]:
    """One view has every instruction, the other their lines; addresses tell which is which."""
    mine, other = a.evidence.instructions, b.evidence.instructions
    if not mine or not other:
        return mine or other
    known = {a.first + instruction.offset for instruction in mine}
    of_one_run = any(b.first + instruction.offset in known for instruction in other)
    first = _first(a, b)
    by_offset = {
        instruction.offset + (b.first - first if of_one_run else 0): instruction
        for instruction in other
    }
    for instruction in mine:
        offset = instruction.offset + (a.first - first if of_one_run else 0)
        also = by_offset.get(offset)
        if also is not None and also.sass == instruction.sass and not instruction.line:
            instruction = msgspec.structs.replace(instruction, file=also.file, line=also.line)
        by_offset[offset] = instruction
    return tuple(
        msgspec.structs.replace(by_offset[offset], offset=offset) for offset in sorted(by_offset)
    )


# ncu's defaults, where its command line does not say otherwise.
_DEFAULTS = {"clock": "base", "cache": "all"}


class ProfilingSession(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that a report was recorded with; empty where its page does not say."""

    tool: str = ""
    """ncu with its version."""
    clock_control: str = ""
    cache_control: str = ""
    replay: str = ""


def is_page(head: str) -> bool:
    """Whether a text begins as a session page does, after ncu's own messages."""
    return re.search(r'^(?:Launch Settings|"Launch Attribute","Value")\s*$', head, re.M) is not None


def read(text: str) -> ProfilingSession:
    """The session of a page that `ncu --csv --page session` printed; any text has one."""
    version = re.search(r'"Nsight Compute Target","(\d+(?:\.\d+)+)', text)
    line = re.search(r'^"Profiler Command Line","(.*)"\s*$', text, re.M)
    if line is None:
        return ProfilingSession(tool=f"ncu {version[1]}" if version else "")
    return ProfilingSession(
        tool=f"ncu {version[1]}" if version else "",
        clock_control=_control(line[1], "clock"),
        cache_control=_control(line[1], "cache"),
        replay=_option(line[1], "replay-mode") or "kernel",
    )


def _control(line: str, what: str) -> str:
    return _option(line, f"{what}-control") or _DEFAULTS[what]


def _option(line: str, name: str) -> str:
    match = re.search(rf"\s--{name}[= ]([a-z-]+)", line)
    return match[1] if match else ""


def complete(evidence: ProfiledEvidence, session: ProfilingSession) -> ProfiledEvidence:
    """The evidence with what it did not say of its recording."""
    return msgspec.structs.replace(
        evidence,
        tool=evidence.tool or session.tool,
        clock_control=evidence.clock_control or session.clock_control,
        cache_control=evidence.cache_control or session.cache_control,
        replay=evidence.replay or session.replay,
    )
