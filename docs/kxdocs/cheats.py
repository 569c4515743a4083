"""The cheats that tests/services/tasks tries, and what stops each."""

from __future__ import annotations

import sys
from pathlib import Path

_SOURCES = Path(__file__).parents[2] / "tests/services/tasks"


def stopped() -> str:
    """A table of those that need no clock."""
    sys.path.append(str(_SOURCES))
    from cheats import rows

    return "\n".join(rows())


def stopped_by_the_clock() -> str:
    """A table of those that a solution tries while it is timed."""
    sys.path.append(str(_SOURCES))
    from cheats import timed_rows

    return "\n".join(timed_rows())
