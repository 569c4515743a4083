"""Serves the pages of a project as it is now, and its running commands, on the loopback address.

The first page is kept between starts, as it is made from every record of a project. It is served
again if no file of the project, no module of kernelexp and no variable named in a record has
changed. Files are compared as git compares them: by size, inode and times.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.model.errors import EnvironmentFault, KernelexpError, explain
from kernelexp.model.text import printable
from kernelexp.project.problem import files
from kernelexp.report.site import inputs, site
from kernelexp.system import live
from kernelexp.system.disk import decode

ADDRESS = "127.0.0.1"
_TYPES = {".html": "text/html; charset=utf-8", ".json": "application/json"}
_TEXT = "text/plain; charset=utf-8"
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of every answer: pages show what the project is at this moment, to nobody else."""
_FIRST = "first.json"
_KEPT = 500
"""Pages that are kept until a file changes."""
_SLOWEST_S = 10.0
"""How long a client may take to send its request, or to take a part of the answer."""
_WAITING = 128
"""Connections that wait to be accepted."""
_WATCHED = ("experiments.yaml", "experiments", "logs", "variants")


class Pages:
    """The site as the project is now; requests of several threads share it."""

    def __init__(self, start: Path) -> None:
        self._start = start
        self._root = project.load(start, sources=False).root
        self._lock = threading.Lock()
        self._version = self._state = ""
        self._site: site.ProjectSite | None = None
        self._warming = False
        """Whether the records are being read behind a first page that was kept."""
        self._rendered: dict[str, bytes | None] = {}

    def version(self) -> str:
        """Changes with any file that a page is made from."""
        text = "\n".join(sorted(_states(self._root)))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def progress(self) -> bytes:
        """Returns what commands are doing on the project right now, as JSON."""
        return msgspec.json.encode(live.read(self._root))

    def answer(self, path: str) -> tuple[HTTPStatus, bytes, str]:
        """The status, content and type of what an address leads to; of a sentence, where that
        can't be shown."""
        name = path.lstrip("/") or site.INDEX
        if name == "version":
            return HTTPStatus.OK, self.version().encode(), _TEXT
        if name == "progress":
            return HTTPStatus.OK, self.progress(), _TYPES[".json"]
        try:
            content = self.page(name)
        except (KernelexpError, OSError) as error:  # such as YAML that is being edited
            words = explain(error) if isinstance(error, OSError) else str(error)
            return HTTPStatus.INTERNAL_SERVER_ERROR, printable(words).encode() + b"\n", _TEXT
        if content is None:
            return HTTPStatus.NOT_FOUND, b"no such page\n", _TEXT
        return HTTPStatus.OK, content, _TYPES[os.path.splitext(name)[1]]

    def page(self, path: str) -> bytes | None:
        """A page of the site; raises what keeps the project from being read."""
        if path == site.INDEX and self._site is None and not self._warming:
            if first := kept_first(self._root, first_state(self._root)):
                self._warming = True
                threading.Thread(target=self._warm, daemon=True).start()
                return first
        with self._lock:
            now = self.version()
            if self._site is None or now != self._version:
                self._state = first_state(self._root)
                self._site = site.ProjectSite(project.load(self._start, sources=False), live=True)
                self._version, self._rendered = now, {}
            if path not in self._rendered:
                if len(self._rendered) >= _KEPT:
                    self._rendered.clear()
                page = self._rendered[path] = self._site.render(path)
                # Not where it was made from files that its state does not cover.
                if path == site.INDEX and page and not self._site.tree.leaves_root:
                    keep_first(self._root, self._state, self._site.tree.environment, page)
            return self._rendered[path]

    def _warm(self) -> None:
        """Reads the records, so that the next page does not wait for them."""
        with contextlib.suppress(KernelexpError, OSError):  # said to the next who asks
            self.page(site.INDEX)


def _states(root: Path) -> Iterator[str]:
    """Name, time and size of each file that is watched."""
    for name in _WATCHED:
        top = root / name
        paths = [top] if top.is_file() else (Path(d) / f for d, _, fs in os.walk(top) for f in fs)
        for path in paths:
            if path.name.startswith("."):  # a file that is being written
                continue
            try:
                state = path.stat()
            except OSError:
                continue
            yield f"{path} {state.st_mtime_ns} {state.st_size}"


class _KeptPage(msgspec.Struct, frozen=True, kw_only=True):
    state: str
    environment: dict[str, str]
    """Digests of the variables that records name."""
    page: bytes


def keep_first(root: Path, state: str, environment: Mapping[str, str], page: bytes) -> None:
    """Keeps a page with the first_state() from before it was rendered; not if that is empty."""
    if state:
        kept = _KeptPage(state=state, environment=dict(environment), page=page)
        try:
            build.keep(_folder(root), _FIRST, msgspec.json.encode(kept))
        except OSError:
            return  # a project that can't be written can be read


def kept_first(root: Path, state: str) -> bytes | None:
    """The page that was kept in this state; None where there is none."""
    content = build.kept(_folder(root), _FIRST) if state else None
    if content is None:
        return None
    kept = decode(content, _KeptPage)
    same = all(files.value_digest(name) == was for name, was in kept.environment.items())
    return kept.page if same and kept.state == state else None


def first_state(root: Path) -> str:
    """Returns a digest of all that a first page may be made from; empty where that is too much."""
    files = inputs.state(root)
    day = f"{datetime.now(UTC):%Y%m%d}"
    return hashlib.sha256(f"{day} {files}".encode()).hexdigest() if files else ""


def _folder(root: Path) -> Path:
    return root / build.CACHE / "pages"


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD of this machine; anything else is refused, and nothing is written."""

    server: _PageServer
    timeout = _SLOWEST_S
    server_version = "kernelexp"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, *_: Any) -> None:
        """A page asks every second."""

    def _answer(self, body: bool) -> None:
        # A page of another host, whose name was made to lead here, has that name in this header.
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            self._send(HTTPStatus.FORBIDDEN, b"unknown host\n", _TEXT, body)
            return
        try:
            path = unquote(urlsplit(self.path).path)
        except ValueError:  # as of http://[
            self._send(HTTPStatus.BAD_REQUEST, b"no such address\n", _TEXT, body)
            return
        status, content, kind = self.server.pages.answer(path)
        self._send(status, content, kind, body)

    def _send(self, status: HTTPStatus, content: bytes, kind: str, body: bool) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(content)), **HEADERS}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


class _PageServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _WAITING

    def __init__(self, pages: Pages, port: int) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.pages = pages
        self.hosts = {f"{name}:{self.server_port}" for name in (ADDRESS, "localhost")}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that was left before it had come is no fault."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def make(start: Path, port: int) -> _PageServer:
    """A server that listens; EnvironmentFault where the port is taken."""
    pages = Pages(start)
    try:
        return _PageServer(pages, port)
    except OSError as error:
        raise EnvironmentFault(
            f"port {port} of {ADDRESS} can't be had: {error.strerror}; choose one with --port."
        ) from None


def serve(start: Path, port: int, say: Callable[[str], object]) -> None:
    """Serves until it is interrupted; `say` is called with the address."""
    with make(start, port) as server:
        say(f"http://{ADDRESS}:{server.server_port}/")
        server.serve_forever()
