"""The service, its workers, and what becomes of evaluations when these are killed."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support import ROOT, wait_until

from kernelexp.report import outputs
from kernelexp.services.serving.queue import FILE, Queue

pytestmark = pytest.mark.xdist_group("serving")

TASKS = ROOT / "tests/projects/tasks"
PROBLEM = {
    name: (TASKS / "gpumode" / name).read_text() for name in ("task.yml", "task.py", "reference.py")
}
HONEST = (
    "NUMBER = {}\nimport torch\ndef custom_kernel(data):\n    return torch.cumsum(data[0], dim=1)\n"
)
REFUSED = "import torch\ntorch.allclose = {}\n\ndef custom_kernel(data):\n    return data\n"


class Service:
    """A server in a process of its own."""

    def __init__(self, folder: Path, workers: int, *words: str) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._words = ("--workers", str(workers), "--port", str(self.port), *words)
        self.start()

    def start(self) -> None:
        argv = [sys.executable, "-m", "kernelexp", "serve", "--queue", str(self.folder)]
        self.process = subprocess.Popen([*argv, *self._words])
        wait_until(self.answers)

    def answers(self) -> bool:
        try:
            return self.ask("GET", "/health")[0] == 200
        except OSError:
            assert self.process.poll() is None
            return False

    def ask(self, verb: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        content = None if body is None else json.dumps(body)
        try:
            connection.request(verb, path, content, {"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        is_json = "json" in answer.headers["content-type"]
        return answer.status, json.loads(text) if is_json else text

    def accepted_p95(self) -> float:
        """Seconds, of evaluations that were accepted since it started."""
        text = self.ask("GET", "/metrics")[1]
        words = text.partition('kernelexp_accept_seconds{quantile="0.95"} ')[2].split()
        return float(words[0]) if words else 0.0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def workers(self) -> list[int]:
        result = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"worker" in words and str(self.folder).encode() in words:
                result.append(int(path.name))
        return result


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    result = Service(tmp_path / "queue", 1)
    yield result
    result.kill()


def job(number: int, text: str = REFUSED) -> dict[str, Any]:
    return {"problem": PROBLEM, "solution": {"submission.py": text.format(number)}}


def ended(service: Service, key: str) -> Any:
    result: list[Any] = []

    def done() -> bool:
        result[:] = [service.ask("GET", f"/evaluations/{key}")[1]]
        return result[0]["state"] not in ("queued", "running")

    wait_until(done)
    return result[0]


def test_an_evaluation_is_accepted_done_and_told(service: Service) -> None:
    code, ticket = service.ask("POST", "/evaluations", job(1))
    assert code == 202
    result = ended(service, ticket["id"])
    assert result["state"] == "done"
    assert result["assessment"]["reason"] == "patches"
    jsonschema.validate(result["assessment"], outputs.schema("assessment"))
    assert service.ask("POST", "/evaluations", job(1))[0] == 200
    _, events = service.ask("GET", f"/evaluations/{ticket['id']}/events")
    assert [line for line in events.splitlines() if line.startswith("event: ")] == [
        "event: queued",
        "event: running",
        "event: done",
    ]
    assert 'kernelexp_evaluations{state="done"} 1' in service.ask("GET", "/metrics")[1]
    assert "/evaluations/{id}" in service.ask("GET", "/openapi.json")[1]["paths"]
    assert service.ask("DELETE", f"/evaluations/{ticket['id']}")[0] == 409
    assert service.ask("GET", "/evaluations/none")[0] == 404
    code, refused = service.ask("POST", "/evaluations", {"problem": {}})
    assert code == 400
    assert "not as its schema says" in refused["error"]


def test_clients_have_tokens_and_limits(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("one 0123456789abcdef\ntwo fedcba9876543210\n")
    result = Service(tmp_path / "queue", 0, "--tokens", str(tokens), "--most", "2")
    try:
        assert result.ask("POST", "/evaluations", job(0))[0] == 401
        codes = [
            result.ask("POST", "/evaluations", job(n), "0123456789abcdef")[0] for n in range(3)
        ]
        assert codes == [202, 202, 429]
        assert result.ask("POST", "/evaluations", job(2), "fedcba9876543210")[0] == 202
        leased = Queue(tmp_path / "queue").take("w").leased
        assert leased is not None
        path = f"/evaluations/{leased.id}"
        assert result.ask("DELETE", path, token="0123456789abcdef")[0] == 200
        call = {"worker": "w"}
        assert result.ask("POST", "/work/take", call, "fedcba9876543210")[0] == 403
    finally:
        result.kill()


def test_other_machines_are_let_in_with_tokens_only(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "kernelexp", "serve", "--host", "0.0.0.0"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "name who may ask with --tokens FILE" in done.stderr


def stress(
    folder: Path, jobs: int, clients: int, workers: int, kills: int, real: int = 0
) -> dict[str, float]:
    """Jobs by many clients at once, while workers and the service are killed. Of them
    `real` are executed; the others are refused by rule."""
    service = Service(folder, workers, "--most", str(jobs))
    try:
        return stressed(service, jobs, clients, kills, real)
    finally:
        service.kill()


def in_the_middle(service: Service) -> bool:
    """Whether a worker has been at the same job for a while."""
    with contextlib.closing(sqlite3.connect(service.folder / FILE)) as database:
        query = "SELECT count(*) FROM jobs WHERE state = 'running' AND begun < ?"
        return bool(database.execute(query, (time.time() - 0.7,)).fetchone()[0])


def stressed(service: Service, jobs: int, clients: int, kills: int, real: int) -> dict[str, float]:
    keys: dict[int, str] = {}
    took: list[float] = []
    refused: list[str] = []

    def ask(first: int) -> None:
        for number in range(first, jobs, clients):
            given = job(number, HONEST if real and number % (jobs // real) == 0 else REFUSED)
            while number not in keys:
                begun = time.monotonic()
                try:
                    code, ticket = service.ask("POST", "/evaluations", given)
                except (OSError, http.client.HTTPException):  # the service was killed
                    time.sleep(0.1)
                    continue
                if code not in (200, 202):
                    refused.append(str(ticket))
                    continue
                took.append(time.monotonic() - begun)
                keys[number] = ticket["id"]

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(clients)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(keys) >= jobs / 3)
    accepted = service.accepted_p95()
    service.kill()
    service.start()
    queue = Queue(service.folder)
    for turn in range(kills):
        if real:
            wait_until(lambda: queue.counts().get("done", 0) == jobs or in_the_middle(service))
        else:
            share = (turn + 1) / (kills + 2)
            wait_until(lambda share=share: queue.counts().get("done", 0) >= jobs * share)
        for pid in service.workers():
            os.kill(pid, signal.SIGKILL)
    for thread in threads:
        thread.join()
    wait_until(lambda: queue.counts().get("done", 0) == jobs, 150)
    memory = Path(f"/proc/{service.process.pid}/statm").read_text().split()[1]
    assert not refused
    assert len(set(keys.values())) == jobs
    assert queue.counts() == {"done": jobs}
    for key in keys.values():
        assert [event.what for event in queue.events(key)].count("done") == 1
    return {
        "p50_ms": 1e3 * statistics.median(took),
        "p95_ms": 1e3 * sorted(took)[int(0.95 * len(took))],
        "accept_p95_ms": 1e3 * accepted,
        "retried": queue.totals()["again"],
        "memory_mb": int(memory) * 4096 / 1e6,
        "queue_mb": (service.folder / FILE).stat().st_size / 1e6,
    }


def test_nothing_is_lost_or_doubled_when_workers_and_the_service_are_killed(
    tmp_path: Path,
) -> None:
    stress(tmp_path / "queue", jobs=40, clients=8, workers=2, kills=1)


@pytest.mark.slow
def test_a_thousand_evaluations_by_fifty_clients(tmp_path: Path) -> None:
    figures = stress(tmp_path / "queue", jobs=1000, clients=50, workers=2, kills=2, real=4)
    assert figures["retried"] >= 1
    print({name: round(value, 1) for name, value in figures.items()})
