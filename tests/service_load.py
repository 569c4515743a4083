"""A service in a process of its own, and many clients at once while its processes are killed."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from support import ROOT, wait_until

from kernelexp.api.service.pages import resident_bytes
from kernelexp.services.serving.queue import FILE, Queue

TASKS = ROOT / "tests/projects/tasks"
PROBLEM = {
    name: (TASKS / "gpumode" / name).read_text() for name in ("task.yml", "task.py", "reference.py")
}
HONEST = (
    "NUMBER = {}\nimport torch\ndef custom_kernel(data):\n    return torch.cumsum(data[0], dim=1)\n"
)
REFUSED = "import torch\ntorch.allclose = {}\n\ndef custom_kernel(data):\n    return data\n"
KERNELEXP = [sys.executable, "-m", "kernelexp"]


def job(number: int, text: str = REFUSED) -> dict[str, Any]:
    return {"problem": PROBLEM, "solution": {"submission.py": text.format(number)}}


class Service:
    """Started again at the same port with the same queue, whenever that is asked for."""

    def __init__(self, folder: Path, workers: int, *words: str) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._words = ("--workers", str(workers), "--port", str(self.port), *words)
        self.start()

    def start(self) -> None:
        argv = [*KERNELEXP, "serve", "--queue", str(self.folder), *self._words]
        self._log = self.folder.with_suffix(".log")
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(argv, stderr=log)
        wait_until(self.answers)

    def said(self) -> str:
        """On standard error, since it was started last."""
        return self._log.read_text()

    def answers(self) -> bool:
        try:
            return self.ask("GET", "/health")[0] == 200
        except OSError:
            assert self.process.poll() is None
            return False

    def ask(
        self, verb: str, path: str, body: Any = None, token: str = "", **headers: str
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        content = None if body is None else json.dumps(body)
        try:
            headers = {"Authorization": f"Bearer {token}", **headers}
            connection.request(verb, path, content, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        is_json = "json" in (answer.headers["content-type"] or "")
        return answer.status, json.loads(text) if is_json else text

    def metric(self, name: str) -> float:
        """0 where there is none yet."""
        words = self.ask("GET", "/metrics")[1].partition(f"\n{name} ")[2].split()
        return float(words[0]) if words else 0.0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def workers(self) -> list[int]:
        """Of this queue, whether they have its folder or the address."""
        result = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            queues = {str(self.folder).encode(), self.address.encode()}
            if b"--worker" in words and queues & set(words):
                result.append(int(path.name))
        return result


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What to ask of a service, and what to kill meanwhile."""

    jobs: int
    clients: int
    workers: int = 2
    kills: int = 2
    """Times that all workers are killed."""
    real: int = 0
    """Jobs that are executed; the others are refused by rule."""
    remote: bool = False
    """Whether workers have the service's address, not the queue's folder."""


class LoadFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What clients and the queue saw."""

    seconds: float
    post_ms: tuple[float, float]
    """Of answers to POST, as clients see them: median and 95th percentile, as in all of these."""
    accept_ms: float
    """95th percentile, from the last byte of a request."""
    between_ms: tuple[float, float]
    """From a worker's end of one job to its beginning of the next, where one was waiting."""
    retried: int
    service_mb: tuple[float, ...]
    """Resident memory of the service after each tenth of the jobs."""
    queue_mb: float


def run(folder: Path, load: Load) -> LoadFigures:
    """AssertionError where an evaluation was lost, doubled, or has another's result."""
    workers = 0 if load.remote else load.workers
    service = Service(folder, workers, "--most", str(load.jobs))
    over = threading.Event()
    remote = load.workers if load.remote else 0
    threads = [threading.Thread(target=_keep_worker, args=(service, over)) for _ in range(remote)]
    try:
        for thread in threads:
            thread.start()
        return _Loaded(service, load).run()
    finally:
        over.set()
        for pid in service.workers():
            os.kill(pid, signal.SIGKILL)
        for thread in threads:
            thread.join()
        service.kill()


def _keep_worker(service: Service, over: threading.Event) -> None:
    argv = [
        *KERNELEXP,
        "serve",
        "--worker",
        "--queue",
        service.address,
        "--cache",
        str(service.folder),
    ]
    while not over.is_set():
        subprocess.run(argv, stderr=subprocess.DEVNULL, check=False)


class _Loaded:
    def __init__(self, service: Service, load: Load) -> None:
        self._service, self._load = service, load
        self._queue = Queue(service.folder)
        self._keys: dict[int, str] = {}
        self._posts: list[float] = []
        self._refused: list[str] = []
        self._memory: list[float] = []
        self._accept = 0.0

    def run(self) -> LoadFigures:
        begun = time.monotonic()
        clients = [
            threading.Thread(target=self._client, args=(first,))
            for first in range(self._load.clients)
        ]
        for client in clients:
            client.start()
        disturbing = threading.Thread(target=self._disturb)
        disturbing.start()
        self._watch()
        disturbing.join()
        for client in clients:
            client.join()
        seconds = time.monotonic() - begun
        self._check()
        return LoadFigures(
            seconds=seconds,
            post_ms=_quantiles(self._posts),
            accept_ms=1e3 * self._accept,
            between_ms=_quantiles(list(self._between())),
            retried=self._queue.totals()["again"],
            service_mb=tuple(self._memory),
            queue_mb=(self._service.folder / FILE).stat().st_size / 1e6,
        )

    def _watch(self) -> None:
        """Until all is done; memory is that of the service which runs at that moment."""
        for tenth in range(1, 11):
            wait_until(lambda tenth=tenth: self._done() * 10 >= self._load.jobs * tenth, 1800)
            self._memory.append(resident_bytes(self._service.process.pid) / 1e6)

    def _client(self, first: int) -> None:
        """Hands in its jobs, then asks for each until it has ended, whoever was killed."""
        load = self._load
        own = range(first, load.jobs, load.clients)
        for number in own:
            honest = bool(load.real) and number % (load.jobs // load.real) == 0
            content = job(number, HONEST if honest else REFUSED)
            _, ticket = self._insist("POST", "/evaluations", content)
            self._keys[number] = ticket["id"]

    def _insist(self, verb: str, path: str, body: Any = None) -> tuple[int, Any]:
        while True:
            begun = time.monotonic()
            try:
                code, answer = self._service.ask(verb, path, body)
            except (OSError, http.client.HTTPException):  # the service was killed
                time.sleep(0.1)
                continue
            if code not in (200, 202):
                self._refused.append(str(answer))
            if verb == "POST":
                self._posts.append(time.monotonic() - begun)
            return code, answer

    def _disturb(self) -> None:
        load, service = self._load, self._service
        wait_until(lambda: len(self._keys) >= load.jobs / 3, 900)
        self._accept = service.metric('kernelexp_accept_seconds{quantile="0.95"}')
        service.kill()
        service.start()
        for turn in range(load.kills):
            share = (turn + 1) / (load.kills + 2)
            wait_until(lambda share=share: self._done() >= load.jobs * share, 900)
            if load.real:
                wait_until(lambda: self._done() == load.jobs or self._in_the_middle(), 900)
            for pid in service.workers():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _in_the_middle(self) -> bool:
        """Whether a worker has been at the same job for a while."""
        with contextlib.closing(sqlite3.connect(self._service.folder / FILE)) as database:
            query = "SELECT count(*) FROM jobs WHERE state = 'running' AND begun < ?"
            return bool(database.execute(query, (time.time() - 0.7,)).fetchone()[0])

    def _done(self) -> int:
        return self._queue.counts().get("done", 0)

    def _check(self) -> None:
        jobs = self._load.jobs
        assert not self._refused, self._refused[:3]
        assert len(set(self._keys.values())) == jobs
        assert self._queue.counts() == {"done": jobs}
        for number, key in self._keys.items():
            happened = [event.what for event in self._queue.events(key)]
            assert happened.count("done") == 1, happened
            code, ticket = self._insist("GET", f"/evaluations/{key}")
            assert code == 200
            expected = "no_gpu" if ticket["assessment"]["cases"] else "patches"
            assert ticket["assessment"]["reason"] == expected, number

    def _between(self) -> Iterator[float]:
        """Seconds; of jobs that were evaluated at the first attempt."""
        with contextlib.closing(sqlite3.connect(self._service.folder / FILE)) as database:
            rows = database.execute(
                "SELECT worker, created, begun, ended FROM jobs ORDER BY worker, begun"
            ).fetchall()
        for (worker, _, _, ended), (next_worker, created, begun, _) in itertools.pairwise(rows):
            if worker == next_worker and created < ended:
                yield begun - ended


def _quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile, in milliseconds."""
    ordered = sorted(seconds)
    return 1e3 * ordered[len(ordered) // 2], 1e3 * ordered[int(0.95 * len(ordered))]
