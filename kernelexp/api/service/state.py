"""Whether the service is well: for people, and for Prometheus."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelexp.api.service.answers import Door, to_json
from kernelexp.api.service.evaluations import Evaluations
from kernelexp.services.serving.queue import Queue

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_STATES = ("queued", "running", "done", "failed", "cancelled")
_SUMS = {"kernelexp_evaluation_wait_seconds": "waited_s", "kernelexp_evaluation_seconds": "took_s"}


class State:
    """Health and metrics of one service."""

    def __init__(self, queue: Queue, door: Door, evaluations: Evaluations) -> None:
        self._queue, self._door, self._evaluations = queue, door, evaluations
        self._begun = time.time()

    async def health(self, request: Request) -> Response:
        counts = await asyncio.to_thread(self._queue.counts)
        return to_json(
            {"status": "ok", "up_s": round(time.time() - self._begun, 1), "jobs": counts}
        )

    async def metrics(self, request: Request) -> Response:
        """Returns the metrics in Prometheus' text format."""
        from starlette.responses import PlainTextResponse

        self._door.client(request)
        accepting = sorted(self._evaluations.accepting)
        lines = await asyncio.to_thread(lambda: list(_exposed(self._queue, accepting)))
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _exposed(queue: Queue, accepting: Sequence[float]) -> Iterator[str]:
    counts, totals = queue.counts(), queue.totals()
    yield "# TYPE kernelexp_evaluations gauge"
    for state in _STATES:
        yield f'kernelexp_evaluations{{state="{state}"}} {counts.get(state, 0)}'
    for name, field in _SUMS.items():
        yield f"# TYPE {name} summary"
        yield f"{name}_sum {totals[field]:.6f}"
        yield f"{name}_count {totals['done']}"
    yield "# TYPE kernelexp_accept_seconds summary"
    for quantile in (0.5, 0.95, 0.99) if accepting else ():
        value = accepting[int(quantile * len(accepting))]
        yield f'kernelexp_accept_seconds{{quantile="{quantile}"}} {value:.6f}'
    yield "# TYPE kernelexp_evaluations_retried_total counter"
    yield f"kernelexp_evaluations_retried_total {totals['again']}"
    yield "# TYPE process_resident_memory_bytes gauge"
    yield f"process_resident_memory_bytes {resident_bytes(os.getpid())}"


def resident_bytes(pid: int) -> int:
    """The memory that a process has at this moment."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
