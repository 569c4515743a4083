"""Pages of a service: those of `report`, its health, its metrics, and its OpenAPI description."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernelexp import __version__
from kernelexp.api.service.answers import Door, RefusedRequest, to_json
from kernelexp.api.service.evaluations import Evaluations
from kernelexp.model.errors import KernelexpError
from kernelexp.report.site.server import HEADERS, Pages
from kernelexp.services.serving import job as jobs
from kernelexp.services.serving.queue import Queue, Ticket

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class ReportPages:
    """Report pages of the project that the service was started in."""

    def __init__(self, project: Path, door: Door) -> None:
        self._door = door
        self._pages: Pages | None = None
        try:
            self._pages = Pages(project)
        except KernelexpError as error:
            self._why = str(error)

    async def page(self, request: Request) -> Response:
        """Raises RefusedRequest: 404 where there is no project, or no such page in it."""
        from starlette.responses import Response

        self._door.client(request)
        if self._pages is None:
            raise RefusedRequest(404, f"there are no pages: {self._why}")
        path = request.path_params.get("path", "")
        status, content, kind = await asyncio.to_thread(self._pages.answer, path)
        return Response(content, status, {**HEADERS, "Content-Type": kind})


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


ROUTES = {
    "/evaluations": {"post": ("Evaluate a solution.", True)},
    "/evaluations/{id}": {
        "get": ("Its state, and the assessment once it is done.", False),
        "delete": ("Cancel it.", False),
    },
    "/evaluations/{id}/events": {"get": ("What happens to it, as server-sent events.", False)},
    "/health": {"get": ("Whether the service answers.", False)},
    "/metrics": {"get": ("Figures for Prometheus.", False)},
    "/report/": {"get": ("The project as web pages.", False)},
}


def describe() -> dict[str, Any]:
    (job, ticket), parts = msgspec.json.schema_components(
        [jobs.QueuedJob, Ticket], ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, Any] = {}
    for path, verbs in ROUTES.items():
        for verb, (summary, body) in verbs.items():
            operation: dict[str, Any] = {"summary": summary, "responses": {"200": _ok(ticket)}}
            if not path.startswith("/evaluations") or path.endswith("/events"):
                operation["responses"] = {"200": {"description": "OK"}}
            if body:
                operation["requestBody"] = {"content": {"application/json": {"schema": job}}}
                operation["responses"]["202"] = _ok(ticket)
            if "{id}" in path:
                operation["parameters"] = [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
                ]
            paths.setdefault(path, {})[verb] = operation
    info = {"title": "kernelexp", "version": __version__}
    return {
        "openapi": "3.1.0",
        "info": info,
        "paths": paths,
        "components": {"schemas": dict(parts)},
    }


def _ok(schema: Any) -> dict[str, Any]:
    return {"description": "OK", "content": {"application/json": {"schema": schema}}}
