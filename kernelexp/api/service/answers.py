"""Code shared by all endpoints: options, tokens and their clients, refusals of one sentence."""

from __future__ import annotations

import asyncio
import base64
import hmac
import ipaddress
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

SHORTEST = 16
"""Characters of a token."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """The client that a token stands for."""

    name: str
    worker: bool = False
    """Whether it may take jobs, and say what became of them."""


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one service."""

    folder: Path
    project: Path = Path()
    """Whose pages are shown."""
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    """Without a GPU."""
    gpus: tuple[str, ...] = ()
    """UUIDs, of a worker each."""
    tokens: Mapping[str, Client] = {}
    """Clients by their tokens; empty: everybody on this machine may ask."""
    most: int = 100
    """Jobs of one client that are not done."""


def read_tokens(path: Path) -> dict[str, Client]:
    """Reads a file with a name and a token on each line, followed by "worker" for workers."""
    tokens = {}
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text: write names and tokens in it.") from None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if words[2:] not in ([], ["worker"]) or len(words) < 2 or len(words[1]) < SHORTEST:
            raise UsageError(
                f"{path}:{number} should be a name and a token of {SHORTEST} characters or more, "
                'with "worker" after the token of a worker.'
            )
        tokens[words[1]] = Client(name=words[0], worker=len(words) > 2)
    if not tokens:
        raise UsageError(f"{path} has no token: a name and a token are needed in each line.")
    return tokens


Answer = TypeVar("Answer")


class OneByOne:
    """Calls that write to the queue, in one thread: several would wait for each other's lock, and
    for the interpreter's, 5 ms at a time."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "queue")

    async def __call__(self, call: Callable[..., Answer], *arguments: Any) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)


class RefusedRequest(Exception):
    """An answer other than what was asked for."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence


def to_json(value: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    from starlette.responses import Response

    content = msgspec.json.encode(value)
    return Response(content, code, headers, media_type="application/json")


async def received(request: Request, longest: int, what: str) -> bytes:
    """The content of a request; refused with 413 as soon as it has more than `longest` bytes."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > longest:
            raise RefusedRequest(413, f"{what} has at most {longest:,} bytes.")
    return bytes(content)


def guarded(
    answer: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """A refusal, and a mistake of the client's, as JSON with one sentence."""

    async def call(request: Request) -> Response:
        from starlette.requests import ClientDisconnect

        try:
            return await answer(request)
        except RefusedRequest as refused:
            headers = {"WWW-Authenticate": "Basic"} if refused.code == 401 else None
            return to_json({"error": refused.sentence}, refused.code, headers)
        except UsageError as error:
            return to_json({"error": str(error)}, 400)
        except ClientDisconnect:  # nobody is left to read it
            return to_json({"error": "the connection ended before the content."}, 400)
        except sqlite3.DatabaseError as error:  # a full disk, or what is no queue any more
            return to_json({"error": f"the queue can't be used now: {error}."}, 503)

    return call


class Door:
    """Lets clients in by their tokens; without tokens, this machine's own programs.

    A page of another site that a browser on this machine shows is not such a program.
    """

    def __init__(self, tokens: Mapping[str, Client]) -> None:
        self._tokens = tokens

    def client(self, request: Request) -> Client:
        """Refused with 401 where it has no token, with 403 where a page of another site asks."""
        host = request.headers.get("host", "")
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise RefusedRequest(403, "pages of other sites may not ask.")
        if not self._tokens:
            if not _is_loopback(host):
                raise RefusedRequest(403, f"there are no tokens: ask by 127.0.0.1, not by {host}.")
            return Client(name=request.client.host if request.client else "", worker=True)
        given = _token(request.headers.get("authorization", "")).encode()
        for token, client in self._tokens.items():
            if hmac.compare_digest(token.encode(), given):
                return client
        raise RefusedRequest(401, "a token is needed: Authorization: Bearer TOKEN.")


def _is_loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _token(header: str) -> str:
    """Returns the bearer token, or the password that a browser sent."""
    kind, _, rest = header.partition(" ")
    if kind.lower() != "basic":
        return rest
    try:
        return base64.b64decode(rest).decode().partition(":")[2]
    except ValueError:  # not base64, or not UTF-8
        return ""
