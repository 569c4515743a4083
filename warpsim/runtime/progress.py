"""How far a long launch is, on standard error."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType

from warpsim.launch import full_name
from warpsim.machine.memory.execution import Execution

PATIENCE_S = 10.0
"""How long a launch runs before it is said that it does, and then between two times."""


class Progress:
    """Of one launch, while it is executed in the block of a `with`."""

    def __init__(self, symbol: str, launch: int) -> None:
        self._what = f"launch {launch}, {full_name(symbol)}"
        self._begun = 0.0
        self.execution: Execution | None = None

    def watch(self, execution: Execution) -> None:
        self.execution = execution

    def __enter__(self) -> None:
        self._begun = time.monotonic()
        signal.signal(signal.SIGALRM, self._say)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S, PATIENCE_S)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _say(self, _number: int, _frame: FrameType | None) -> None:
        seconds = time.monotonic() - self._begun
        far = f": {describe(self.execution, seconds)}" if self.execution else ""
        print(f"exec: {self._what}, {seconds:.0f} s{far}", file=sys.stderr, flush=True)


def describe(execution: Execution, seconds: float) -> str:
    """What it has executed, and how long the rest takes if it goes on like that.

    The CTAs that are resident are taken for half done.
    """
    rate = execution.steps / max(seconds, 1e-9)
    text = (
        f"{execution.steps / 1e6:,.1f} million warp instructions, {rate / 1e6:,.2f} million per "
        f"second, {execution.ctas_begun:,} of {execution.grid_ctas:,} CTAs begun"
    )
    done = (execution.ctas_begun - execution.resident / 2) / execution.grid_ctas
    if execution.ctas_begun == execution.grid_ctas or done <= 0:
        return text
    return f"{text}, about {seconds / done - seconds:,.0f} s left"
