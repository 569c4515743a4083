"""Evaluations over HTTP: accepted into a queue, done by workers, and kept by what was evaluated."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import hmac
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernelexp.model.decoding import decode
from kernelexp.model.errors import EnvironmentFault, KernelexpError, UsageError
from kernelexp.report import outputs
from kernelexp.services.serving import job as jobs
from kernelexp.services.serving.queue import Queue, Ticket, TooMany
from kernelexp.services.tasks.assessment import Assessment
from kernelexp.system.process import processes
from kernelexp.system.process.interrupts import Interrupted

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LOOK_S = 0.1
"""Between two looks at a job whose events somebody follows."""
RESTART_S = 1.0
ANSWERS = 1000
"""Whose times the metrics have quantiles of."""
FOREVER_S = 10 * 365 * 86400.0
NEEDED = "kernelexp serve needs its extra: pip install 'kernelexp[serve]'."


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a service answers."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    tokens: Mapping[str, str] = {}
    """Names of clients by their tokens; empty: everybody may ask."""
    most: int = 100
    """Jobs of one client that are not done."""


class _Refused(Exception):
    """An answer other than what was asked for."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence


def read_tokens(path: Path) -> dict[str, str]:
    """Of a file with a name and a token in each line."""
    tokens = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split()
        if words and not line.startswith("#"):
            if len(words) != 2 or len(words[1]) < 16:
                raise UsageError(f"{path}:{number}: a name and a token of 16 characters or more.")
            tokens[words[1]] = words[0]
    if not tokens:
        raise UsageError(f"{path} has no token: a name and a token are needed in each line.")
    return tokens


def serve(options: ServeOptions) -> None:
    """Until a signal ends it; its workers end with it."""
    try:
        import uvicorn
    except ImportError:
        raise EnvironmentFault(NEEDED) from None
    config = uvicorn.Config(
        application(options), host=options.host, port=options.port, log_level="warning"
    )
    with _workers(options):
        uvicorn.Server(config).run()


@contextlib.contextmanager
def _workers(options: ServeOptions) -> Iterator[None]:
    """Processes of their own, which are started again when they end."""
    over = threading.Event()
    argv = [sys.executable, "-m", "kernelexp", "worker", "--queue", str(options.folder)]

    def keep() -> None:
        while not over.is_set():
            with contextlib.suppress(KernelexpError, Interrupted):
                processes.run(argv, timeout_s=FOREVER_S)
            over.wait(RESTART_S)

    threads = [threading.Thread(target=keep, daemon=True) for _ in range(options.workers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        processes.stop_all()


def application(options: ServeOptions) -> Starlette:
    """The routes; EnvironmentFault where the extra is missing."""
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError:
        raise EnvironmentFault(NEEDED) from None
    routes = _Routes(options)
    table: list[tuple[str, Callable[..., Any], str]] = [
        ("/evaluations", routes.submit, "POST"),
        ("/evaluations/{id}", routes.status, "GET"),
        ("/evaluations/{id}", routes.cancel, "DELETE"),
        ("/evaluations/{id}/events", routes.events, "GET"),
        ("/health", routes.health, "GET"),
        ("/metrics", routes.metrics, "GET"),
        ("/openapi.json", routes.openapi, "GET"),
    ]
    return Starlette(
        routes=[Route(path, routes.guarded(item), methods=[verb]) for path, item, verb in table]
    )


class _Routes:
    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._queue = Queue(options.folder)
        self._begun = time.time()
        self._took: collections.deque[float] = collections.deque(maxlen=ANSWERS)
        """To accept each of the last evaluations, from its last byte on."""

    def guarded(
        self, answer: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """A refusal, and a mistake of the client's, as JSON with one sentence."""

        async def call(request: Request) -> Response:
            try:
                return await answer(request)
            except _Refused as refused:
                return _json({"error": refused.sentence}, refused.code)
            except UsageError as error:
                return _json({"error": str(error)}, 400)
            except sqlite3.OperationalError as error:  # a full disk, or nobody lets it write
                return _json({"error": f"the queue can't be used now: {error}."}, 503)

        return call

    def _client(self, request: Request) -> str:
        """Its name by its token; 401 where it has none."""
        tokens = self._options.tokens
        if not tokens:
            return request.client.host if request.client else ""
        given = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
        for token, name in tokens.items():
            if hmac.compare_digest(token.encode(), given):
                return name
        raise _Refused(401, "a token is needed: Authorization: Bearer TOKEN.")

    async def submit(self, request: Request) -> Response:
        client = self._client(request)
        content = b""
        async for part in request.stream():
            content += part
            if len(content) > jobs.LONGEST:
                raise _Refused(413, f"an evaluation has at most {jobs.LONGEST:,} bytes.")
        begun = time.perf_counter()
        job = jobs.decode(content)
        try:
            ticket = await asyncio.to_thread(
                self._queue.put, job.key, content, client, self._options.most
            )
        except TooMany:
            most = self._options.most
            raise _Refused(429, f"{most} evaluations of this client are not done yet.") from None
        self._took.append(time.perf_counter() - begun)
        return _json(self._told(ticket), 200 if ticket.state == "done" else 202)

    def _found(self, request: Request) -> Ticket:
        self._client(request)
        ticket = self._queue.ticket(request.path_params["id"])
        if ticket is None:
            raise _Refused(404, "there is no such evaluation.")
        return ticket

    def _told(self, ticket: Ticket) -> dict[str, Any]:
        """The ticket, with the assessment once there is one."""
        to_builtins = msgspec.to_builtins(ticket)
        result = self._queue.result(ticket.id)
        if result is not None:
            assessed = decode(result, Assessment)
            to_builtins["assessment"] = msgspec.Raw(outputs.encode("assessment", assessed))
        return dict(to_builtins)

    async def status(self, request: Request) -> Response:
        return _json(self._told(self._found(request)))

    async def cancel(self, request: Request) -> Response:
        ticket = self._found(request)
        if not self._queue.cancel(ticket.id):
            raise _Refused(409, f"the evaluation is {ticket.state}.")
        return _json(self._told(self._found(request)))

    async def events(self, request: Request) -> Response:
        """As server-sent events, until the evaluation has ended."""
        from starlette.responses import StreamingResponse

        ticket = self._found(request)
        after = int(request.headers.get("last-event-id", "0") or 0)
        return StreamingResponse(self._follow(ticket.id, after), media_type="text/event-stream")

    async def _follow(self, key: str, after: int) -> AsyncIterator[bytes]:
        while True:
            ticket = self._queue.ticket(key)
            for event in self._queue.events(key, after):
                after = event.number
                data = msgspec.json.encode(event).decode()
                yield f"id: {event.number}\nevent: {event.what}\ndata: {data}\n\n".encode()
            if ticket is None or ticket.state not in ("queued", "running"):
                return
            await asyncio.sleep(LOOK_S)

    async def health(self, request: Request) -> Response:
        counts = self._queue.counts()
        return _json({"status": "ok", "up_s": round(time.time() - self._begun, 1), "jobs": counts})

    async def metrics(self, request: Request) -> Response:
        """For Prometheus, in its text format."""
        from starlette.responses import PlainTextResponse

        self._client(request)
        return PlainTextResponse(
            _exposed(self._queue, sorted(self._took)), media_type="text/plain; version=0.0.4"
        )

    async def openapi(self, request: Request) -> Response:
        return _json(_description())


def _exposed(queue: Queue, accepted: Sequence[float]) -> str:
    counts, totals = queue.counts(), queue.totals()
    lines = ["# TYPE kernelexp_evaluations gauge"]
    for state in ("queued", "running", "done", "failed", "cancelled"):
        lines.append(f'kernelexp_evaluations{{state="{state}"}} {counts.get(state, 0)}')
    for name, field in (
        ("kernelexp_evaluation_wait_seconds", "waited_s"),
        ("kernelexp_evaluation_seconds", "took_s"),
    ):
        lines += [f"# TYPE {name} summary", f"{name}_sum {totals[field]:.6f}"]
        lines.append(f"{name}_count {totals['done']}")
    lines += ["# TYPE kernelexp_accept_seconds summary"]
    for quantile in (0.5, 0.95, 0.99) if accepted else ():
        value = accepted[int(quantile * len(accepted))]
        lines.append(f'kernelexp_accept_seconds{{quantile="{quantile}"}} {value:.6f}')
    lines += ["# TYPE kernelexp_evaluations_retried_total counter"]
    lines.append(f"kernelexp_evaluations_retried_total {totals['again']}")
    return "\n".join(lines) + "\n"


def _json(value: Any, code: int = 200) -> Response:
    from starlette.responses import Response

    content = msgspec.json.encode(value)
    return Response(content, status_code=code, media_type="application/json")


_ROUTES = {
    "/evaluations": {"post": ("Evaluate a solution.", True)},
    "/evaluations/{id}": {
        "get": ("Its state, and the assessment once it is done.", False),
        "delete": ("Cancel it.", False),
    },
    "/evaluations/{id}/events": {"get": ("What happens to it, as server-sent events.", False)},
    "/health": {"get": ("Whether the service answers.", False)},
    "/metrics": {"get": ("Figures for Prometheus.", False)},
}


def _description() -> dict[str, Any]:
    """OpenAPI, from the types that are decoded and encoded."""
    from kernelexp import __version__

    (job, ticket), parts = msgspec.json.schema_components(
        [jobs.QueuedJob, Ticket], ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, Any] = {}
    for path, verbs in _ROUTES.items():
        for verb, (summary, body) in verbs.items():
            result: dict[str, Any] = {"summary": summary, "responses": {"200": _of(ticket)}}
            if body:
                result["requestBody"] = {"content": {"application/json": {"schema": job}}}
            if "{id}" in path:
                result["parameters"] = [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
                ]
            paths.setdefault(path, {})[verb] = result
    info = {"title": "kernelexp", "version": __version__}
    return {
        "openapi": "3.1.0",
        "info": info,
        "paths": paths,
        "components": {"schemas": dict(parts)},
    }


def _of(schema: Any) -> dict[str, Any]:
    return {"description": "OK", "content": {"application/json": {"schema": schema}}}
