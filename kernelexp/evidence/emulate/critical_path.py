"""The critical path of a modelled launch: what its end waited for, by roles of warps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kernelexp.evidence.code import line_table
from kernelexp.evidence.emulate import roles
from kernelexp.evidence.emulate.job import LineCost
from kernelexp.facts.counters import EXECUTED
from kernelexp.model.modelled import PathStep
from warpsim.lineinfo import Source

if TYPE_CHECKING:
    from warpsim.timing.recording import Recording
    from warpsim.timing.replay import Replayed

LEAST = 0.01
"""Of the path, what a step has at least that is listed."""

Sources: TypeAlias = Mapping[int, Source | None]
"""By the address of an instruction."""
_Wait: TypeAlias = tuple[str, str, str, str]
"""Role, reason, opcode waited for, and whose."""
_Key = TypeVar("_Key")
_Places: TypeAlias = tuple[Source | None, Source | None]
"""Where the role is, and where what it waits for is."""


def steps(
    recording: Recording, replayed: Replayed, sources: Sources, names: Sequence[str]
) -> tuple[PathStep, ...]:
    """The largest parts first; none where the path was too long to be followed.

    names: the role of each warp of a CTA, as role_names() has them.
    """
    from warpsim.timing.replay import REASONS

    executed_by = _executed_by(recording)
    places: dict[_Wait, dict[_Places, float]] = defaultdict(lambda: defaultdict(float))
    for warp, number, producer, reason, cycles in replayed.path.tolist():
        opcode, where, whose = "", None, ""
        if producer >= 0 and producer != number:
            waited = recording.code[producer]
            opcode, where = waited.opcode, sources.get(waited.address)
            others = {names[other] for other in executed_by.get(producer, ())}
            whose = others.pop() if names[warp] not in others and len(others) == 1 else ""
        wait = names[warp], REASONS[reason], opcode, whose
        places[wait][sources.get(recording.code[number].address), where] += cycles
    total = sum(map(sum, (own.values() for own in places.values())))
    listed = [
        _step(wait, own, total)
        for wait, own in places.items()
        if sum(own.values()) >= LEAST * total
    ]
    return tuple(sorted(listed, key=lambda step: -step.part))


def by_line(
    recording: Recording, replayed: Replayed, sources: Sources
) -> dict[Source | None, float]:
    """Part of the path that is spent at each line."""
    return _parts(
        (sources.get(recording.code[number].address), cycles)
        for _, number, _, _, cycles in replayed.path.tolist()
    )


def by_role(replayed: Replayed, names: Sequence[str]) -> dict[str, float]:
    """Part of the path that goes through each role, the largest first."""
    return _parts((names[warp], cycles) for warp, _, _, _, cycles in replayed.path.tolist())


def _parts(pieces: Iterable[tuple[_Key, float]]) -> dict[_Key, float]:
    spent: dict[_Key, float] = defaultdict(float)
    for key, cycles in pieces:
        spent[key] += cycles
    total = sum(spent.values()) or 1.0
    return {key: own / total for key, own in sorted(spent.items(), key=lambda item: -item[1])}


def _step(wait: _Wait, places: Mapping[_Places, float], total: float) -> PathStep:
    """One wait, wherever its role has it; named is the place that has most of it."""
    role, reason, opcode, whose = wait
    source, where = max(places, key=lambda item: places[item])
    return PathStep(
        role=role,
        part=sum(places.values()) / total,
        source=source,
        reason=reason,
        waits_for=opcode,
        waits_at=where,
        waits_on=whose,
    )


def _executed_by(recording: Recording) -> dict[int, set[int]]:
    """The warps of a CTA that ran each instruction."""
    result: dict[int, set[int]] = defaultdict(set)
    for warp, first in _counts(recording):
        for number in range(first, recording.blocks[first].last):
            result[number].add(warp)
    return result


def _counts(recording: Recording) -> dict[tuple[int, int], int]:
    """Counts how often a warp of a CTA ran each block, by its first instruction."""
    import numpy as np

    result: dict[tuple[int, int], int] = defaultdict(int)
    blocks = recording.sizes[:, 0]
    for place, (end, size) in enumerate(zip(np.cumsum(blocks), blocks, strict=True)):
        own, counts = np.unique(recording.streams[end - size : end], return_counts=True)
        for first, count in zip(own.tolist(), counts.tolist(), strict=True):
            result[place // len(recording.ctas), first] += count
    return result


def role_names(
    root: Path, cubin: Path, entry: str, recording: Recording, sources: Sources
) -> tuple[str, ...]:
    """The role of each warp of a CTA."""
    executed: dict[tuple[Source, int], int] = defaultdict(int)
    warps: dict[Source, int] = defaultdict(int)
    for (warp, first), count in _counts(recording).items():
        for number in range(first, recording.blocks[first].last):
            source = sources.get(recording.code[number].address)
            if source is not None:
                executed[source, warp] += count
                warps[source] |= 1 << warp
    counts = {
        source: sum(executed[source, warp] for warp in roles.members(bits))
        for source, bits in warps.items()
    }
    lines = [
        LineCost(source=source, warps=warps[source], counters={EXECUTED["sass"]: count})
        for source, count in counts.items()
    ]
    files = {frame.file for line in lines for frame in line.source.frames()}
    texts = roles.read_texts(root, files)
    functions = {
        (place[0].removeprefix(f"{root}/"), place[1]): function
        for place, function in line_table.functions(cubin, entry).items()
    }
    known = roles.name(roles.find(lines), lines, functions, roles.comments(texts))
    names = {warp: role.name for role in known for warp in roles.members(role.warps)}
    return tuple(names.get(warp, f"warp {warp}") for warp in range(recording.warps_per_cta))
