"""What the emulator executes, and the kernels that it must not accuse."""

from __future__ import annotations

import sys
from pathlib import Path

from warpsim import coverage

_SOURCES = Path(__file__).parents[2] / "tests/emulator"


def ptx() -> str:
    """A list of PTX instructions for each area."""
    return coverage.ptx()


def opcodes() -> str:
    """A list of SASS opcodes for each area."""
    return coverage.sass()


def correct_kernels() -> str:
    """A table for each source of tests/emulator/correct."""
    sys.path.append(str(_SOURCES))
    from correct.page import page

    return str(page())


def pairs() -> str:
    """What became of tests/emulator/pairs."""
    sys.path.append(str(_SOURCES))
    from pairs.page import page

    return str(page())


def reported_faults() -> str:
    """The table of tests/emulator/reported."""
    sys.path.append(str(_SOURCES))
    from reported.faults import page

    return str(page())
