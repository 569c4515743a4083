"""The correct kernels as a page; python -m correct.page prints it (in tests/emulator)."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from correct.kernel import Kernel

SOURCES = Path(__file__).parent


class Area(NamedTuple):
    """A source: the architecture that it is compiled for."""

    target: str = "sm_90a"
    slow: bool = False
    """Whether it takes the compiler too long for every day."""


AREAS = {
    "divergence": Area(),
    "synchronisation": Area(),
    "memory": Area(),
    "arithmetic": Area(),
    "hopper": Area(),
    "blackwell": Area(target="sm_100a"),
    "groups": Area(slow=True),
    "library": Area(slow=True),
    "protocols": Area(slow=True),
}


def kernels() -> Iterator[tuple[str, Kernel]]:
    """(area, kernel) of all tables."""
    for area in AREAS:
        for kernel in importlib.import_module(f"correct.{area}").KERNELS:
            yield area, kernel


def page() -> str:
    """The page as markdown."""
    lines = []
    for area, (target, _) in AREAS.items():
        module = importlib.import_module(f"correct.{area}")
        lines += [f"### {area}", "", f"{module.__doc__} Compiled for {target}.", ""]
        lines += ["| kernel | what it shows |", "|---|---|"]
        lines += [f"| `{k.name}` | {k.sentence} |" for k in module.KERNELS]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
