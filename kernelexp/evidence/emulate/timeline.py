"""A modelled time line of a CTA's warps: as blocks for a page, and as a trace that Perfetto and
chrome://tracing open."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from kernelexp.model.timeline import BlockKind, Timeline, TimelineBlock, row_name
from warpsim.lineinfo import Source

if TYPE_CHECKING:
    from warpsim.timing.recording import Recording
    from warpsim.timing.replay import Replayed

INSTRUCTIONS = 200_000
"""Of the CTA that are traced at most: 12 MB of JSON for 200,000."""
WAIT = 8.0
"""Cycles between two instructions of a warp from which on they are a wait of their own."""

_CYCLES_A_US = 1000
"""In a trace, whose times are in us."""

COLUMNS = 600
"""Into which a page divides the time: what is shorter than one is not seen."""
_KINDS: tuple[tuple[BlockKind, re.Pattern[str]], ...] = (
    ("mma", re.compile(r"\w*MMA|WARPGROUP")),
    ("barrier", re.compile(r"BAR|SYNCS|UCGABAR|MEMBAR|FENCE|ARRIVES")),
    ("copy", re.compile(r"UTMA|UBLKCP|LDG|STG|LDS|STS|LDT|STT|LD\b|ST\b|RED|ATOM|UTCCP")),
)
"""By the beginning of the opcode."""

_MEMORY = ("long_scoreboard", "short_scoreboard", "mio_throttle", "lg_throttle")
"""What warps wait for that is memory, where it is not an MMA and no barrier that waits."""

Event = dict[str, Any]
Issued = tuple[int, int, float, float]
"""Address, number of the reason in REASONS, since when it was waited for, and when issued."""


def trace(
    label: str,
    recording: Recording,
    replayed: Replayed,
    clock_hz: float,
    sources: Mapping[int, Source | None],
    texts: Mapping[int, str],
    roles: Sequence[str],
) -> str:
    """JSON of the Trace Event format: a track per warp; blocks by source line, and in them the
    waits, by ncu's names of stall reasons.

    A cycle is shown as a nanosecond: Perfetto rounds times to whole ones, and drops a block that
    then ends after the block which it is in. At 1.8 GHz that were one in thirteen of an attention
    kernel.

    sources, texts: lines and SASS of the code, by offset. roles: of each warp.
    """
    title = f"{label}, modelled, first CTA; 1 ns = 1 cycle of {clock_hz / 1e6:,.0f} MHz"
    events: list[Event] = [_named("process_name", 0, title)]
    for warp, issued in _warps(recording, replayed):
        events.append(_named("thread_name", warp, row_name(warp, roles)))
        events.append({**_named("thread_sort_index", warp, ""), "args": {"sort_index": warp}})
        events += _of_warp(warp, issued, sources, texts)
    return json.dumps(
        {
            "traceEvents": events,
            "displayTimeUnit": "ns",
            "otherData": {
                "evidence": "modelled, not measured",
                "clock_mhz": clock_hz / 1e6,
                "cut": len(replayed.traced) >= INSTRUCTIONS,
            },
        },
        separators=(",", ":"),
    )


def blocks(
    recording: Recording,
    replayed: Replayed,
    sources: Mapping[int, Source | None],
    texts: Mapping[int, str],
    roles: tuple[str, ...],
) -> Timeline:
    """Returns each warp's main activity in each of COLUMNS parts of the time, equal ones merged."""
    warps = [issued for _, issued in _warps(recording, replayed)]
    cycles = max((issued[-1][3] + 1 for issued in warps if issued), default=0.0)
    return Timeline(
        cycles=cycles,
        warps=tuple(
            tuple(_merged(_spans(issued, sources, texts), cycles / COLUMNS)) for issued in warps
        ),
        roles=roles,
        cut=len(replayed.traced) >= INSTRUCTIONS,
    )


def _warps(recording: Recording, replayed: Replayed) -> Iterator[tuple[int, list[Issued]]]:
    by_warp = sorted(replayed.traced.tolist(), key=itemgetter(0))
    for warp, rows in groupby(by_warp, key=itemgetter(0)):
        yield (
            warp,
            [
                (recording.code[number].address, reason, since, at)
                for _, number, reason, _, since, at in rows
            ],
        )


def _spans(
    issued: Sequence[Issued], sources: Mapping[int, Source | None], texts: Mapping[int, str]
) -> Iterator[TimelineBlock]:
    """Each wait, and each instruction up to the next one's wait."""
    from warpsim.timing.replay import REASONS

    end = issued[0][2]
    for address, reason, since, at in issued:
        source = sources.get(address)
        place = source.place(callers=0) if source else ""
        text = texts.get(address, "")
        begin = max(end, since)
        if at - begin >= WAIT:
            name = REASONS[reason]
            words = f"{name} before {text}"
            kind = _waiting(name, text)
            yield TimelineBlock(kind=kind, start=begin, cycles=at - begin, place=place, text=words)
            begin = at
        yield TimelineBlock(
            kind=_kind(text), start=begin, cycles=at + 1 - begin, place=place, text=text
        )
        end = at + 1


def _waiting(reason: str, text: str) -> BlockKind:
    """Classifies a wait for `reason` before an instruction."""
    kind = "mma" if reason == "gmma" else "barrier" if reason == "barrier" else _kind(text)
    if kind in ("mma", "barrier"):
        return kind
    return "memory" if reason in _MEMORY else "wait"


def _kind(text: str) -> BlockKind:
    words = text.split()
    opcode = next((word for word in words if not word.startswith("@")), "")
    return next((kind for kind, pattern in _KINDS if pattern.match(opcode)), "other")


def _merged(spans: Iterator[TimelineBlock], width: float) -> Iterator[TimelineBlock]:
    """The longest span of each column stands for it; neighbours of one kind and line are one."""
    columns: dict[int, dict[tuple[BlockKind, str, str], float]] = defaultdict(
        lambda: defaultdict(float)
    )
    for span in spans:
        last = int((span.start + span.cycles - 1e-9) / width)
        for column in range(int(span.start / width), last + 1):
            begin, end = column * width, (column + 1) * width
            part = min(end, span.start + span.cycles) - max(begin, span.start)
            columns[column][span.kind, span.place, span.text] += part
    block: TimelineBlock | None = None
    for column, own in sorted(columns.items()):
        kind, place, text = max(own, key=lambda key: own[key])
        start = column * width
        if block and (block.kind, block.place) == (kind, place) and _touch(block, start):
            cycles = start + width - block.start
            block = TimelineBlock(
                kind=kind, start=block.start, cycles=cycles, place=place, text=block.text
            )
            continue
        if block:
            yield block
        block = TimelineBlock(kind=kind, start=start, cycles=width, place=place, text=text)
    if block:
        yield block


def _touch(block: TimelineBlock, start: float) -> bool:
    return start - (block.start + block.cycles) < 1e-6 * max(1.0, start)


def _named(kind: str, warp: int, name: str) -> Event:
    return {"ph": "M", **_track(warp), "name": kind, "args": {"name": name}}


def _track(warp: int) -> Event:
    """No thread and no process is 0, which Perfetto keeps for the idle tasks of CPUs."""
    return {"pid": 1, "tid": warp + 1}


def _of_warp(
    warp: int,
    issued: Sequence[Issued],
    sources: Mapping[int, Source | None],
    texts: Mapping[int, str],
) -> Iterator[Event]:
    from warpsim.timing.replay import REASONS

    def event(name: str, kind: str, since: float, until: float, **more: object) -> Event:
        cycles = round(until) - round(since)
        return {
            "ph": "X",
            **_track(warp),
            "name": name,
            "cat": kind,
            "ts": round(since) / _CYCLES_A_US,
            "dur": cycles / _CYCLES_A_US,
            "args": {"cycles": cycles, **more},
        }

    def line(row: Issued) -> str:
        source = sources.get(row[0])
        return source.place(callers=0) if source else "code of no line"

    end = issued[0][2]
    for name, group in groupby(issued, key=line):
        rows = list(group)
        begin, end = end, rows[-1][3] + 1
        first = f"{rows[0][0]:05x}"
        yield event(name, "line", begin, end, instructions=len(rows), first=first)
        for address, reason, since, at in rows:
            if at - since - 1 >= WAIT:
                yield event(REASONS[reason], "wait", since + 1, at, before=texts.get(address, ""))
