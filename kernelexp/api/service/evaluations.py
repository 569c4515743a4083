"""Endpoints for clients (submit, follow and cancel an evaluation) and for remote workers."""

from __future__ import annotations

import asyncio
import collections
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernelexp import __version__
from kernelexp.api.service.answers import Door, OneByOne, RefusedRequest, received, to_json
from kernelexp.report import outputs
from kernelexp.services.serving import job as jobs
from kernelexp.services.serving.queue import Queue, Ticket, TooMany
from kernelexp.services.serving.remote import WorkerAnswer, WorkerCall
from kernelexp.services.tasks.assessment import Assessment
from kernelexp.system.disk import decode

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

LOOK_S = 0.1
"""Between two looks at a job whose events somebody follows."""
LONGEST_CALL = 64 << 20
"""Bytes of a worker's call, which may hold an assessment."""
ANSWERS = 1000
"""Whose times the metrics have quantiles of."""


class Evaluations:
    """Endpoints for the evaluations in one queue."""

    def __init__(self, folder: Path, door: Door, write: OneByOne, most: int) -> None:
        self._queue, self._idle_queue = Queue(folder), Queue(folder, busy_s=0.0)
        self._door, self._write, self._most = door, write, most
        self.accepting: collections.deque[float] = collections.deque(maxlen=ANSWERS)
        """Seconds to accept each of the last evaluations, from its last byte on."""

    async def submit(self, request: Request) -> Response:
        client = self._door.client(request)
        content = await received(request, jobs.LONGEST, "an evaluation")
        begun = time.perf_counter()
        job = jobs.decode(content)
        arguments = job.key, content, client.name, self._most
        try:
            ticket = await self._put(*arguments)
        except TooMany:
            words = f"{self._most} evaluations of this client are not done yet."
            raise RefusedRequest(429, words) from None
        self.accepting.append(time.perf_counter() - begun)
        return await self._describe(ticket, 200 if ticket.state == "done" else 202)

    async def _put(self, key: str, content: bytes, client: str, most: int) -> Ticket:
        """Queues a job, at once if nobody else writes: it takes 0.1 ms, and another thread up to 50
        ms to get its turn on a busy machine."""
        try:
            return self._idle_queue.put(key, content, client, most)
        except sqlite3.OperationalError:
            return await self._write(self._queue.put, key, content, client, most)

    async def status(self, request: Request) -> Response:
        return await self._describe(await self._ticket(request))

    async def cancel(self, request: Request) -> Response:
        ticket = await self._ticket(request)
        if not await self._write(self._queue.cancel, ticket.id):
            state = (await self._ticket(request)).state
            raise RefusedRequest(409, f"the evaluation is {state}.")
        return await self._describe(await self._ticket(request))

    async def events(self, request: Request) -> Response:
        """Streams server-sent events until the evaluation has ended."""
        from starlette.responses import StreamingResponse

        ticket = await self._ticket(request)
        last = request.headers.get("last-event-id", "0")
        after = int(last) if last.isascii() and last.isdigit() and len(last) < 19 else 0
        return StreamingResponse(self._follow(ticket.id, after), media_type="text/event-stream")

    async def _follow(self, key: str, after: int) -> AsyncIterator[bytes]:
        while True:
            ticket = await asyncio.to_thread(self._queue.ticket, key)
            for event in await asyncio.to_thread(self._queue.events, key, after):
                after = event.number
                data = msgspec.json.encode(event).decode()
                yield f"id: {event.number}\nevent: {event.what}\ndata: {data}\n\n".encode()
            if ticket is None or ticket.state not in ("queued", "running"):
                return
            await asyncio.sleep(LOOK_S)

    async def _ticket(self, request: Request) -> Ticket:
        self._door.client(request)
        ticket = await asyncio.to_thread(self._queue.ticket, request.path_params["id"])
        if ticket is None:
            raise RefusedRequest(404, "there is no such evaluation.")
        return ticket

    async def _describe(self, ticket: Ticket, code: int = 200) -> Response:
        """The ticket, with the assessment once there is one."""
        values: dict[str, Any] = dict(msgspec.to_builtins(ticket))
        result = None
        if ticket.state == "done":
            result = await asyncio.to_thread(self._queue.result, ticket.id)
        if result is not None:
            assessed = decode(result, Assessment)
            values["assessment"] = msgspec.Raw(outputs.encode("assessment", assessed))
        return to_json(values, code)


class WorkerCalls:
    """Answers the calls of workers on one queue."""

    def __init__(self, queue: Queue, door: Door, write: OneByOne) -> None:
        self._queue, self._door, self._write = queue, door, write
        self._verbs: dict[str, Callable[[WorkerCall], bool]] = {
            "renew": lambda call: queue.renew(call.id, call.worker),
            "finish": self._finish,
            "fail": lambda call: queue.fail(call.id, call.worker, call.sentence, call.again),
            "pass-on": lambda call: queue.pass_on(call.id, call.worker),
            "give-back": self._give_back,
        }

    async def call(self, request: Request) -> Response:
        """Raises RefusedRequest: 403 without a worker's token, 409 from another version."""
        if not self._door.client(request).worker:
            raise RefusedRequest(
                403, 'the token is no worker\'s: "worker" is missing after it in --tokens.'
            )
        try:
            content = await received(request, LONGEST_CALL, "the call of a worker")
            call = decode(content, WorkerCall)
        except msgspec.DecodeError as error:
            raise RefusedRequest(400, f"the call can't be read: {error}.") from None
        if call.version != __version__:
            words = f"the service is kernelexp {__version__}, the worker {call.version}."
            raise RefusedRequest(409, words)
        verb = request.path_params["verb"]
        if verb == "take":
            return to_json(await self._write(self._queue.take, call.worker, call.gpu))
        if verb not in self._verbs:
            raise RefusedRequest(404, f"workers do not {verb}.")
        own = await self._write(self._verbs[verb], call)
        return to_json(WorkerAnswer(own=own))

    def _finish(self, call: WorkerCall) -> bool:
        try:
            decode(call.result, Assessment)
        except msgspec.DecodeError as error:
            raise RefusedRequest(400, f"the result is not an assessment: {error}.") from None
        return self._queue.finish(call.id, call.worker, call.result)

    def _give_back(self, call: WorkerCall) -> bool:
        self._queue.give_back(call.worker)
        return True
