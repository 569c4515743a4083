"""People's decisions on variants, one JSON file each: written once, undone by a later one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from kernelexp.logs.documents import Unreadable, apart, decode
from kernelexp.model.experiment import AxisValue, Placed, Variant, holds, is_name
from kernelexp.system import disk

FOLDER = "logs/decisions"
VERSION = 1

Word: TypeAlias = Literal["accepted", "rejected", "replaced"]


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's decision on one candidate of an experiment, beside the machine's verdict."""

    version: int
    name: str
    """Of its file: unique, and sorted by time."""
    word: Word
    experiment: str
    kernel: str
    arch: str
    axes: dict[str, AxisValue]
    """All axes of the candidate as it was then."""
    baseline: dict[str, AxisValue]
    """All axes of the experiment's baseline then."""
    created: str
    """ISO 8601, in UTC, with microseconds."""
    who: str = ""
    """git's user.name, or the login name."""
    commit: str = ""
    by: str = ""
    """The experiment whose variant takes the place of a replaced one."""
    note: str = ""
    why: str = ""
    verdict: str = ""
    """The machine's word at that time; empty where no record spoke for the candidate."""
    run: str = ""
    """The record that the verdict was from."""


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Decision)


def next_moment(root: Path) -> datetime:
    """Now; just after the latest decision where this clock is behind the one that made it."""
    read, _ = read_all(root)
    after = [
        datetime.fromisoformat(decision.created) + timedelta(microseconds=1)
        for decision in read[-1:]
    ]
    return max(datetime.now(UTC), *after) if after else datetime.now(UTC)


def new_name(moment: datetime) -> str:
    """A name that no other decision has, so that branches which both decided merge."""
    return disk.name_at(moment)


def write(root: Path, decision: Decision, files: disk.FilesTogether | None = None) -> Path:
    """Writes the decision, with others if there are `files`; a kill leaves none or whole ones."""
    text = msgspec.json.format(_encoder.encode(decision), indent=1) + b"\n"
    path = root / FOLDER / f"{decision.name}.json"
    return files.write(path, text) if files else disk.write(path, text)


def read_all(root: Path) -> tuple[list[Decision], list[Unreadable]]:
    """Every decision of the project, oldest first, and the files that are none."""
    decided, unreadable = apart(map(_read, sorted((root / FOLDER).glob("*.json"))))
    return sorted(decided, key=lambda decision: (decision.created, decision.name)), unreadable


def _read(path: Path) -> Decision | Unreadable:
    decision = decode(str(path), _decoder, VERSION, "decision")
    if isinstance(decision, Unreadable):
        return decision
    try:
        aware = datetime.fromisoformat(decision.created).tzinfo is not None
    except ValueError:
        aware = False
    if not aware or not is_name(decision.experiment):
        return Unreadable(path=path, why="is not a decision: it has no experiment or no time")
    return decision


def on(decided: Iterable[Decision], experiment: str, variant: Variant) -> tuple[Decision, ...]:
    """The decisions on one candidate of an experiment, oldest first: the last one holds."""
    return tuple(
        decision
        for decision in decided
        if decision.experiment == experiment
        and (decision.kernel, decision.arch) == (variant.kernel, variant.arch)
        and holds(decision.axes, variant.axes)
    )


def best(decided: Sequence[Decision], kernel: str, arch: str) -> Decision | None:
    """The latest acceptance that no later decision on the same candidate undid: the current best of
    a kernel."""
    standing: dict[tuple[str, str], Decision] = {}
    for decision in decided:
        if (decision.kernel, decision.arch) == (kernel, arch):
            key = (decision.experiment, _spelled(decision))
            standing.pop(key, None)  # the place of the later one
            standing[key] = decision
    accepted = [item for item in standing.values() if item.word == "accepted"]
    return accepted[-1] if accepted else None


def baseline_of(
    decided: Sequence[Decision], experiment: str, kernel: str, arch: str
) -> dict[str, AxisValue] | None:
    """The baseline of an experiment that names none: the current best, or what that was when the
    experiment was first decided on; None where nothing was accepted."""
    own = next((decision for decision in decided if decision.experiment == experiment), None)
    if own and (own.kernel, own.arch) == (kernel, arch):
        return own.baseline
    current = best(decided, kernel, arch)
    return current.axes if current else None


def _spelled(placed: Placed) -> str:
    """The axes as one text, whatever their order; 1 and true differ."""
    return _encoder.encode(sorted((name, value) for name, value in placed.axes.items())).decode()
