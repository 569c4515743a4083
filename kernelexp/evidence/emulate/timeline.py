"""A modelled time line of a CTA's warps, as a trace that Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from warpsim.lineinfo import Source

if TYPE_CHECKING:
    from warpsim.timing.recording import Recording
    from warpsim.timing.replay import Replayed

INSTRUCTIONS = 200_000
"""Of the CTA that are traced at most: 12 MB of JSON for 200,000."""
WAIT = 8.0
"""Cycles between two instructions of a warp from which on they are a wait of their own."""

Event = dict[str, Any]


def trace(
    label: str,
    recording: Recording,
    replayed: Replayed,
    clock_hz: float,
    sources: Mapping[int, Source | None],
    texts: Mapping[int, str],
) -> str:
    """JSON of the Trace Event format: a track per warp; blocks by source line, and in them the
    waits, by ncu's names of stall reasons. Times are of `clock_hz`; arguments have the cycles.

    sources, texts: lines and SASS of the code, by offset.
    """
    us = 1e6 / clock_hz
    events: list[Event] = [_named("process_name", 0, f"{label}, modelled, first CTA")]
    by_warp = sorted(replayed.traced.tolist(), key=itemgetter(0))
    for warp, rows in groupby(by_warp, key=itemgetter(0)):
        events.append(_named("thread_name", warp, f"warp {warp}"))
        issued = [
            (recording.code[number].address, reason, since, at)
            for _, number, reason, _, since, at in rows
        ]
        events += _of_warp(warp, issued, us, sources, texts)
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


def _named(kind: str, warp: int, name: str) -> Event:
    return {"ph": "M", "pid": 0, "tid": warp, "name": kind, "args": {"name": name}}


def _of_warp(
    warp: int,
    issued: Sequence[tuple[int, int, float, float]],
    us: float,
    sources: Mapping[int, Source | None],
    texts: Mapping[int, str],
) -> Iterator[Event]:
    from warpsim.timing.replay import REASONS

    def event(name: str, kind: str, since: float, until: float, **more: object) -> Event:
        return {
            "ph": "X",
            "pid": 0,
            "tid": warp,
            "name": name,
            "cat": kind,
            "ts": round(since * us, 6),
            "dur": round((until - since) * us, 6),
            "args": {"cycles": until - since, **more},
        }

    def line(row: tuple[int, int, float, float]) -> str:
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
