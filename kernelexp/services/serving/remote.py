"""A queue behind the address of a service."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from kernelexp import __version__
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.services.serving.queue import Offer

ANSWER_S = 10.0
"""How long a service may take to answer."""
_LATER = (429, 502, 503, 504)
"""Codes of services, and of proxies before them, that may answer otherwise soon."""
Wanted = TypeVar("Wanted")


class QueueAway(Exception):
    """The queue can't be used now; later it may."""


class WorkerCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The message of a worker to the service."""

    worker: str
    version: str = __version__
    gpu: bool = False
    id: str = ""
    """The job that it is about."""
    result: bytes = b""
    sentence: str = ""
    again: bool = False


class WorkerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a worker."""

    own: bool
    """Whether the job was the worker's."""


class RemoteQueue:
    """A queue behind a service, with the same calls as a Queue."""

    idle_s = 1.0

    def __init__(self, address: str, token: str = "") -> None:
        try:
            parts = urlsplit(address)
            is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # of a port, or of brackets
            is_one = False
        if not is_one or any(sign.isspace() for sign in address):
            raise UsageError(f"--queue {address}: no address as in http://head:8000.")
        self._address, self._token = address.rstrip("/"), token

    def take(self, worker: str, gpu: bool = False) -> Offer:
        return self._ask("take", WorkerCall(worker=worker, gpu=gpu), Offer)

    def renew(self, key: str, worker: str) -> bool:
        return self._own("renew", WorkerCall(worker=worker, id=key))

    def finish(self, key: str, worker: str, result: bytes) -> bool:
        return self._own("finish", WorkerCall(worker=worker, id=key, result=result))

    def fail(self, key: str, worker: str, sentence: str, again: bool = False) -> bool:
        call = WorkerCall(worker=worker, id=key, sentence=sentence, again=again)
        return self._own("fail", call)

    def pass_on(self, key: str, worker: str) -> bool:
        return self._own("pass-on", WorkerCall(worker=worker, id=key))

    def give_back(self, worker: str) -> None:
        self._own("give-back", WorkerCall(worker=worker))

    def _own(self, verb: str, call: WorkerCall) -> bool:
        return self._ask(verb, call, WorkerAnswer).own

    def _ask(self, verb: str, call: WorkerCall, wanted: type[Wanted]) -> Wanted:
        """QueueAway for what may pass; EnvironmentFault for a refusal, in the service's words."""
        request = urllib.request.Request(
            f"{self._address}/queue/{verb}",
            msgspec.json.encode(call),
            {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
                return msgspec.json.decode(answer.read(), type=wanted)
        except urllib.error.HTTPError as error:
            words = _sentence(error)
            if error.code in _LATER:
                raise QueueAway(words) from None
            raise EnvironmentFault(f"{self._address} refuses this worker: {words}") from None
        except (OSError, http.client.HTTPException) as error:
            raise QueueAway(f"{self._address}: {error}") from None
        except msgspec.DecodeError:
            raise EnvironmentFault(
                f"{self._address} answers, but is no service of kernelexp."
            ) from None


def _sentence(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError, OSError):
        return f"{error.code} {error.reason}."
