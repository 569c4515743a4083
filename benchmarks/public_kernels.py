"""Executes kernels from a folder of cases, and prints a table of what became of them.

python benchmarks/public_kernels.py FOLDER [NAME ...]

A case is two files. NAME.ptx is a kernel as its own compiler made it. NAME.npz has the arrays: in.A
is what A holds before the launch, want.A what it should hold afterwards (NaN where anything will
do), and `case` is the rest as JSON, a Case. public_kernels.txt is the table of one such folder.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

import warpsim as emulator
from warpsim.launch import Launch
from warpsim.schedule import Schedule

SCHEDULES = (Schedule(seed=0, asynchrony="late"), Schedule(seed=2, asynchrony="early"))


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A launch of a kernel, and how its results are compared."""

    repository: str
    file: str
    kernel: str
    arch: str
    size: str
    launch: Launch
    unwritten: tuple[str, ...] = ()
    bf16: tuple[str, ...] = ()
    """Arrays of bf16, which NumPy has as unsigned integers."""
    summed: tuple[str, ...] = ()
    """Arrays of partial results: their sum over the first dimension is compared."""
    sorted: tuple[str, ...] = ()
    """Arrays whose elements may come in any order."""
    rtol: float = 0.0
    atol: float = 0.0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a case under all schedules."""

    case: Case
    instructions: int
    """Warp instructions of the first schedule."""
    result: str
    """right, wrong, refused, or the names of the findings."""
    sentences: tuple[str, ...] = ()


@functools.lru_cache(maxsize=1)
def _load(ptx: str) -> emulator.Module:
    """Cases that come one after another often have their PTX in common."""
    return emulator.load(ptx)


Arrays: TypeAlias = dict[str, NDArray[np.generic]]


def read(folder: Path, name: str) -> tuple[Case, Arrays, Arrays]:
    """A case, its arrays before the launch, and what they should hold afterwards."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        held = dict(file)
    case = msgspec.json.decode(held.pop("case").item(), type=Case)
    given = {key[3:]: value for key, value in held.items() if key.startswith("in.")}
    return case, given, {key[5:]: held[key] for key in held if key.startswith("want.")}


def execute(folder: Path, name: str) -> Outcome:
    """Executes one case under each schedule."""
    case, given, wanted = read(folder, name)
    instructions = 0
    wrong: list[str] = []
    findings: list[emulator.Finding] = []
    for schedule in SCHEDULES:
        arrays = {key: value.copy() for key, value in given.items()}
        try:
            module = _load((folder / f"{name}.ptx").read_text())
            result = emulator.run(
                module, case.launch, arrays, schedule=schedule, unwritten=case.unwritten
            )
        except emulator.UnsupportedInstruction as refusal:
            return Outcome(case=case, instructions=0, result="refused", sentences=(str(refusal),))
        instructions = instructions or result.warp_instructions
        findings += result.findings
        wrong += [key for key, want in wanted.items() if not _right(case, key, arrays[key], want)]
    verdict = ", ".join([*sorted({f.name for f in findings}), *(["wrong"] if wrong else [])])
    sentences = tuple(dict.fromkeys(finding.sentence for finding in findings))
    return Outcome(
        case=case, instructions=instructions, result=verdict or "right", sentences=sentences
    )


def _right(case: Case, name: str, array: NDArray[np.generic], want: NDArray[np.generic]) -> bool:
    got = array
    if name in case.bf16:
        got = (array.astype(np.uint32) << 16).view(np.float32)
    if name in case.summed:
        got = got.reshape(-1, want.size).sum(axis=0)
    if name in case.sorted:
        got = np.sort(got.reshape(-1)[: want.size])
    got = got.reshape(-1).astype(np.float64)
    compared = want.reshape(-1).astype(np.float64)
    close = np.isclose(got, compared, rtol=case.rtol, atol=case.atol, equal_nan=False)
    return bool((close | np.isnan(compared)).all())


def row(done: Outcome) -> str:
    """A case's line of the table."""
    case = done.case
    return (
        f"| {case.repository} | {case.file} | `{case.kernel}` | {case.arch} | {case.size} "
        f"| {done.instructions:,} | {done.result} |"
    )


def main(folder: Path, names: list[str]) -> None:
    """Prints a line of the table as each case ends."""
    print("| repository | file | kernel | target | size | warp instructions | result |")
    print("|---|---|---|---|---|---|---|")
    for path in sorted(folder.glob("*.npz")):
        if names and path.stem not in names:
            continue
        done = execute(folder, path.stem)
        print(row(done), flush=True)
        for sentence in done.sentences:
            print(f"{path.stem}: {sentence}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
