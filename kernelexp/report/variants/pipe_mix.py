"""Instructions by pipe: as emulated, beside the counts of a profile."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.facts.counters import EXECUTED, PIPE
from kernelexp.model.arm import Arm
from kernelexp.model.record import Profile
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, paragraph, table
from kernelexp.services.inspected import executed_pipes
from warpsim.tables.opcodes import PIPES

_ALL = EXECUTED["sass"]
_TAKEN = {"run": "profiled", "imported": "profiled", "published": "published"}


def render(arm: Arm, profile: Profile | None) -> Iterator[Block]:
    """Nothing where neither the SASS was executed nor a profile has the counters."""
    columns: dict[str, dict[str, float]] = {}
    if arm.counted:
        columns["emulated"] = {**executed_pipes(arm)}
    if profile and (result := profiled(profile)):
        columns[_TAKEN[profile.provenance]] = result
    if not columns:
        return
    names = [
        name
        for name in (PIPE + pipe for pipe in PIPES)
        if any(column.get(name) for column in columns.values())
    ]
    header = ["ncu's counter"]
    for title in columns:
        header += [title, "of all"]
    rows = [
        [name, *(cell for column in columns.values() for cell in _cells(column, name))]
        for name in (*names, _ALL)
    ]
    yield table(header, rows, numbers=range(1, len(header)), unwrapped=[0])
    if arm.counted:
        several = len(arm.counted.launches)
        launches = f"the {several} emulated launches" if several else "one emulated launch"
        yield paragraph(
            f"Counts of {launches} (size {arm.counted.size}). Some instructions have two pipes, "
            "others none: BRA, ULDC, UMOV, NOP.",
            style="dim",
        )


def profiled(profile: Profile) -> dict[str, float]:
    """The counters of pipes that a profile has; empty where it has none."""
    figures = profile.arm.profiled.figures if profile.arm.profiled else {}
    result = {}
    for name in (*(PIPE + pipe for pipe in PIPES), _ALL):
        value = figures.get(f"{name}.sum")
        if isinstance(value, int | float):
            result[name] = value
    return result if result.get(_ALL) and len(result) > 1 else {}


def _cells(column: dict[str, float], name: str) -> tuple[str, str]:
    if name not in column:
        return "", ""
    share = f"{100 * column[name] / column[_ALL]:.1f}%"
    return figures.value(int(column[name])), share
