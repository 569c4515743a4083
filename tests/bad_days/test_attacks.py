"""What somebody who means harm, or a broken machine, gets: an answer or a sentence."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support import ROOT, Kx

from kernelexp.model import errors
from kernelexp.report.site import server as site

pytestmark = pytest.mark.slow

MANY = 100


@contextmanager
def mcp(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server of the protocol that has answered once."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-m", "kernelexp", "serve", "--mcp", "-C", str(root)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, **pipes) as running:
        try:
            client = {"name": "test", "version": "1"}
            about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
            assert "result" in call(running, "initialize", about)
            say(running, {"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield running
        finally:
            running.kill()


def say(running: subprocess.Popen[bytes], message: object) -> None:
    assert running.stdin
    running.stdin.write(json.dumps(message).encode() + b"\n")
    running.stdin.flush()


def call(running: subprocess.Popen[bytes], method: str, params: object) -> dict[str, object]:
    assert running.stdout
    say(running, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    answer: dict[str, object] = json.loads(running.stdout.readline())
    return answer


@pytest.mark.parametrize("name", ["S1\0", "x" * 100_000, "\ud800", "../../etc/passwd", "x" * 2**22])
def test_a_name_that_no_run_can_have_is_a_sentence_and_the_server_goes_on(
    scale: Path, name: str
) -> None:
    with mcp(scale) as running:
        shown = json.dumps(
            call(running, "tools/call", {"name": "show", "arguments": {"name": name}})
        )
        assert "error" in shown.lower()
        assert "Traceback" not in shown
        assert len(shown) < 5_000
        listed = json.dumps(call(running, "tools/call", {"name": "list", "arguments": {}}))
        assert "S1" in listed


def test_a_message_that_is_nested_too_deeply_is_refused_and_the_server_goes_on(
    scale: Path,
) -> None:
    with mcp(scale) as running:
        assert running.stdin
        assert running.stdout
        running.stdin.write(b"[" * 20_000 + b"\n")
        running.stdin.flush()
        assert "is not JSON" in json.loads(running.stdout.readline())["error"]["message"]
        listed = json.dumps(call(running, "tools/call", {"name": "list", "arguments": {}}))
        assert "S1" in listed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "running"])
def test_a_signal_ends_the_server(scale: Path, number: signal.Signals, busy: bool) -> None:
    with mcp(scale) as running:
        if busy:
            params = {"name": "run", "arguments": {"experiment": "S1", "gpu": False}}
            say(running, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
            time.sleep(1.0)
        running.send_signal(number)
        assert running.wait(timeout=30) == 128 + number


def test_a_port_that_takes_connections_and_says_nothing_is_no_scheduler(
    scale: Path, kx: Kx
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        port = silent.getsockname()[1]
        result = kx("run", "S1", "--scheduler", f"tcp://127.0.0.1:{port}", cwd=scale)
    assert result.exit_code == errors.ENVIRONMENT
    assert "no Dask scheduler answers" in result.stderr
    assert time.monotonic() - begun < 90


@pytest.fixture
def port(scale: Path) -> Iterator[int]:
    with site.make(scale, 0) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,))
        thread.start()
        yield running.server_port
        running.shutdown()
        thread.join()


def ask(port: int, host: str = "") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/", headers={"Host": host or f"127.0.0.1:{port}"})
    status = connection.getresponse().status
    connection.close()
    return status


def test_readers_at_once_are_all_answered(port: int) -> None:
    with concurrent.futures.ThreadPoolExecutor(MANY) as pool:
        assert set(pool.map(ask, [port] * MANY)) == {http.HTTPStatus.OK}


def test_readers_who_stop_in_mid_line_hold_nobody_and_are_let_go(port: int) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(MANY)
        ]
        for item in slow:
            item.sendall(b"GET / HT")
        assert ask(port) == http.HTTPStatus.OK
        for item in slow:
            item.settimeout(60)
            assert b"200" not in item.recv(1000)
        deadline = time.monotonic() + 30
        while threading.active_count() > before + 1 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert threading.active_count() <= before + 1


@pytest.mark.parametrize("line", [b"GET http://[ HTTP/1.0", b"\0\xff", b"GET", b"X" * 70_000])
def test_a_request_that_is_none_leaves_no_traceback(
    port: int, line: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as reader:
        reader.sendall(line + b"\r\nHost: x\r\n\r\n")
        reader.recv(1000)
    assert ask(port) == http.HTTPStatus.OK
    assert "Traceback" not in capfd.readouterr().err


def test_a_name_of_this_machine_is_the_same_in_capitals(port: int) -> None:
    assert ask(port, f"LOCALHOST:{port}") == http.HTTPStatus.OK
