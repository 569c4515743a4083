"""Endpoints for remote workers: take a job, report its outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from kernelexp import __version__
from kernelexp.api.service.answers import Door, OneByOne, RefusedRequest, to_json
from kernelexp.model.decoding import decode
from kernelexp.services.serving.queue import Queue
from kernelexp.services.serving.remote import WorkerAnswer, WorkerCall
from kernelexp.services.tasks.assessment import Assessment

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


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
            call = decode(await request.body(), WorkerCall)
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
