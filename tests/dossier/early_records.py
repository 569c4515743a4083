"""A copy of this repository's project with early records, and what its log says of them."""

from __future__ import annotations

import shutil
from pathlib import Path

from support import ROOT, Kx

_RUNS = ("A17", "F3", "H1", "S7", "T1", "T2", "T3", "sweep-transpose")
_EARLY = ("T1", "T2", "T3", "H1")


def copy(root: Path) -> Path:
    """Of few experiments, as each of a hundred commands reads them all."""
    shutil.copy(ROOT / "experiments.yaml", root)
    shutil.copytree(ROOT / "variants", root / "variants")
    shutil.copytree(ROOT / "logs", root / "logs", ignore=_is_left_out)
    return root


def _is_left_out(folder: str, names: list[str]) -> list[str]:
    if Path(folder).name == "runs":
        return [name for name in names if name not in _RUNS]
    late = ("20261126", "20261127") if Path(folder).name in _EARLY else ()
    return [name for name in names if name.startswith(late)]


def rows(root: Path, kx: Kx, name: str) -> list[list[str]]:
    """The experiment's rows of the log, cell by cell."""
    lines = kx("log", cwd=root).stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {name} "))
    result = [lines[start]]
    for line in lines[start + 1 :]:
        if not line.startswith("|     "):
            break
        result.append(line)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in result]
