"""The service, its workers, and what becomes of evaluations when these are killed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import service_load
from service_load import HONEST, Load, Service, job, run
from support import wait_until

from kernelexp.api.service.answers import ServeOptions, read_tokens
from kernelexp.api.service.server import application
from kernelexp.model.errors import UsageError
from kernelexp.report import outputs
from kernelexp.services.serving.queue import Queue
from kernelexp.system.process.interrupts import SIGNALS

pytestmark = pytest.mark.xdist_group("serving")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    result = Service(tmp_path / "queue", 1, "-C", str(tmp_path))
    yield result
    result.kill()


@pytest.fixture(scope="module")
def resting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One that has no worker, for what leaves no job behind."""
    folder = tmp_path_factory.mktemp("resting")
    result = Service(folder / "queue", 0, "-C", str(folder))
    yield result
    result.kill()


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


def test_what_is_no_address_of_the_service_is_told(resting: Service) -> None:
    code, answer = resting.ask("PUT", "/evaluations")
    assert code == 404
    assert answer["error"] == "there is no PUT /evaluations: GET / lists what there is."
    assert "POST /evaluations" in resting.ask("GET", "/")[1]


def test_pages_of_other_sites_may_not_ask(resting: Service) -> None:
    headers = [{"Origin": "http://other.example"}, {"Host": "other.example"}]
    assert [resting.ask("POST", "/evaluations", job(1), **words)[0] for words in headers] == [
        403
    ] * 2
    assert resting.ask("GET", "/health")[1]["jobs"] == {}


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://["}, {"Host": "["}, {"Authorization": "Basic \xe9"}],
    ids=["origin", "host", "token"],
)
def test_a_header_that_can_t_be_read_is_refused(resting: Service, headers: dict[str, str]) -> None:
    code, answer = resting.ask("GET", "/evaluations/none", **headers)
    assert (code, list(answer)) == (404 if "Authorization" in headers else 403, ["error"])


def _status(folder: Path, method: str, path: str, bodies: Iterator[bytes]) -> int:
    """Of the answer to what is sent in these parts, after which the client is gone."""
    options = ServeOptions(project=folder, folder=folder, host="", port=0, workers=0)
    service = application(options)
    address = {"method": method, "path": path, "query_string": b"", "client": ("", 1)}
    scope = {"type": "http", **address, "headers": [(b"host", b"localhost")]}
    first = next(bodies)
    parts = (
        {"type": "http.request", "body": body, "more_body": True}
        for body in itertools.chain([first], bodies)
    )

    async def receive() -> Any:
        return next(parts, {"type": "http.disconnect"})

    answers: list[Any] = []

    async def send(message: Any) -> None:
        answers.append(message)

    asyncio.run(service(scope, receive, send))
    return int(answers[0]["status"])


def test_a_client_that_goes_in_the_middle_of_its_content_is_no_fault(tmp_path: Path) -> None:
    assert _status(tmp_path, "POST", "/evaluations", iter([b"{"])) == 400


@pytest.mark.parametrize("path", ["/evaluations", "/queue/take"])
def test_content_that_is_too_long_is_not_read_to_its_end(tmp_path: Path, path: str) -> None:
    endless = itertools.repeat(bytes(1 << 20), 1000)
    assert _status(tmp_path, "POST", path, endless) == 413
    assert len(list(endless)) > 900


def test_a_file_that_is_no_queue_any_more_is_said(tmp_path: Path) -> None:
    def spoilt() -> Iterator[bytes]:
        for path in tmp_path.glob("queue.sqlite*"):
            path.write_bytes(b"no database" * 1000)
        yield b""

    assert _status(tmp_path, "GET", "/evaluations/x", spoilt()) == 503


@pytest.mark.slow
def test_clients_that_hold_everything_and_a_signal_leave_no_traceback(tmp_path: Path) -> None:
    service = Service(tmp_path / "queue", 0)
    key = service.ask("POST", "/evaluations", job(1))[1]["id"]
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (40, 40))
    request = f"GET /evaluations/{key}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with contextlib.ExitStack() as held:
        held.callback(service.kill)
        for _ in range(60):
            client = held.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            client.sendall(request)
        wait_until(lambda: "have to wait" in service.said())
        service.process.send_signal(signal.SIGHUP)
        service.process.wait(30)
    assert "Traceback" not in service.said()
    assert service.said().count("have to wait") == 1


HANGS_UP = """
import os, signal
from kernelexp import __main__
from kernelexp.api.service import server

def describe():
    os.kill(os.getpid(), int(os.environ["SIGNAL"]))
    return {}

server.describe = describe
__main__.main()
"""


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=[] if number == signal.SIGTERM else pytest.mark.slow)
        for number in SIGNALS
    ],
)
def test_a_signal_while_a_request_is_answered_ends_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """uvicorn takes any exception there for a fault of the application's."""
    monkeypatch.setattr(service_load, "KERNELEXP", [sys.executable, "-c", HANGS_UP])
    monkeypatch.setenv("SIGNAL", str(int(number)))
    service = Service(tmp_path / "queue", 0)
    try:
        assert service.ask("GET", "/openapi.json") == (200, {})
        assert service.process.wait(60) == 128 + number, service.said()
        assert "Traceback" not in service.said()
    finally:
        service.kill()


HANGS_AT_ITS_END = """
import atexit, os, signal, time
from kernelexp import __main__
from kernelexp.api.service import server

def describe():
    os.kill(os.getpid(), signal.SIGTERM)
    return {}

server.describe = describe
server.END_S = 3.0
atexit.register(time.sleep, 1000)
__main__.main()
"""


def test_a_service_whose_way_out_hangs_ends_all_the_same_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_load, "KERNELEXP", [sys.executable, "-c", HANGS_AT_ITS_END])
    service = Service(tmp_path / "queue", 0)
    try:
        assert service.ask("GET", "/openapi.json") == (200, {})
        assert service.process.wait(60) == 128 + signal.SIGTERM
        assert "did not end within 3 s of the signal; it waits here:\n" in service.said()
    finally:
        service.kill()


def test_a_service_that_ends_takes_no_job_with_it(service: Service) -> None:
    key = service.ask("POST", "/evaluations", job(1, HONEST))[1]["id"]
    wait_until(lambda: service.ask("GET", f"/evaluations/{key}")[1]["state"] == "running")
    service.process.terminate()
    service.process.wait()
    ticket = Queue(service.folder).ticket(key)
    assert ticket is not None
    assert (ticket.state, ticket.attempts) == ("queued", 0)


def test_the_job_of_a_worker_that_was_killed_goes_on_at_once(service: Service) -> None:
    key = service.ask("POST", "/evaluations", job(1, HONEST))[1]["id"]
    queue = Queue(service.folder)
    wait_until(lambda: queue.counts().get("running"))
    for pid in service.workers():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: [event.what for event in queue.events(key)][-1] == "running again")
    assert [event.what for event in queue.events(key)][2] == "given back"


def test_a_project_s_pages_have_the_same_address(scale: Path, tmp_path: Path) -> None:
    result = Service(tmp_path / "queue", 0, "-C", str(scale))
    try:
        assert result.ask("GET", "/report/") == (200, result.ask("GET", "/report/index.html")[1])
        code, page = result.ask("GET", "/report/experiments/S1.html")
        assert code == 200
        assert 'data-root="../"' in page
        assert len(result.ask("GET", "/report/version")[1]) == 64
        assert result.ask("GET", "/report/none.html")[0] == 404
    finally:
        result.kill()


def test_a_service_without_a_project_has_no_pages(resting: Service) -> None:
    code, answer = resting.ask("GET", "/report/")
    assert (code, answer["error"].startswith("there are no pages: ")) == (404, True)


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
        assert result.ask("POST", "/queue/take", call, "fedcba9876543210")[0] == 403
    finally:
        result.kill()


def test_other_machines_are_let_in_with_tokens_only(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "kernelexp", "serve", "--host", "0.0.0.0"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "name who may ask with --tokens FILE" in done.stderr


def test_nothing_is_lost_or_doubled_when_workers_and_the_service_are_killed(
    tmp_path: Path,
) -> None:
    run(tmp_path / "queue", Load(jobs=40, clients=8, kills=1))


@pytest.mark.slow
@pytest.mark.parametrize("remote", [False, True])
def test_three_hundred_evaluations_by_fifty_clients(tmp_path: Path, remote: bool) -> None:
    figures = run(tmp_path / "queue", Load(jobs=300, clients=50, kills=3, real=6, remote=remote))
    assert figures.retried >= 1
    assert figures.service_mb[-1] < figures.service_mb[5] + 20


def test_a_file_of_tokens_that_is_no_text_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_bytes(b"name \xff" + b"0" * 20)
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        read_tokens(tmp_path / "tokens")
