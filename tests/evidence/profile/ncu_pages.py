"""Pages of ncu: recorded ones, ones of a few columns, and what is read of them."""

from __future__ import annotations

from pathlib import Path

from kernelexp.evidence.profile import pages
from kernelexp.model.arm import ProfiledEvidence

DATA = Path(__file__).parents[2] / "data" / "ncu"


def text(name: str) -> str:
    return (DATA / name).read_text()


def read(printed: str) -> tuple[ProfiledEvidence, ...]:
    return pages.read(printed, "page.csv")


def raw(*columns: tuple[str, str, str], units: bool = True) -> str:
    """A raw page of one launch, by name, unit and printed value of each metric."""
    rows = [["ID", "Kernel Name", *(name for name, _, _ in columns)]]
    rows += [["", "", *(unit for _, unit, _ in columns)]] if units else []
    rows += [["0", "kernel", *(value for _, _, value in columns)]]
    return "".join('"' + '","'.join(row) + '"\n' for row in rows)


def figure(printed: str, unit: str = "", **options: bool) -> float | str | None:
    (evidence,) = read(raw(("a__b.sum", unit, printed), **options))
    return evidence.figures.get("a__b.sum")
