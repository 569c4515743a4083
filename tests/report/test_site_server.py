"""The pages on the loopback address: as they are now, to this machine alone."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from site_project import Reader, copy
from support import ROOT

from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.project.problem import files
from kernelexp.report.site import server, site
from kernelexp.system import live
from kernelexp.system.live import Step

pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    root = copy(tmp_path, "T1")
    with server.make(root, 0) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,))
        thread.start()
        yield root, running.server_port
        running.shutdown()
        thread.join()


def ask(port: int, path: str, host: str | None = None, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
    with connection.getresponse() as response:
        result = response.status, response.read().decode()
    connection.close()
    return result


def test_a_page_is_served_as_it_is_written_but_for_its_script(serving: tuple[Path, int]) -> None:
    root, port = serving
    status, text = ask(port, "/experiments/T1.html")
    assert status == http.HTTPStatus.OK
    page = Reader(text)
    assert "connect-src 'self'" in (page.all("meta")[1]["content"] or "")
    assert len(page.all("script")) == 1
    assert ask(port, "/")[1] == ask(port, "/index.html?x=1")[1]
    assert not (root / "report").exists()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:80"])
def test_another_hosts_name_is_refused(serving: tuple[Path, int], host: str) -> None:
    assert ask(serving[1], "/", host)[0] == http.HTTPStatus.FORBIDDEN
    assert ask(serving[1], "/version", host)[0] == http.HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    "path", ["/../experiments.yaml", "/%2e%2e/experiments.yaml", "/experiments/../x", "/nothing"]
)
def test_no_file_is_served_that_is_no_page(serving: tuple[Path, int], path: str) -> None:
    assert ask(serving[1], path)[0] == http.HTTPStatus.NOT_FOUND


def test_nothing_can_be_sent_to_the_server(serving: tuple[Path, int]) -> None:
    assert ask(serving[1], "/", method="POST")[0] == http.HTTPStatus.NOT_IMPLEMENTED


def test_a_new_record_is_shown_without_a_restart(serving: tuple[Path, int]) -> None:
    root, port = serving
    before = ask(port, "/version")[1]
    assert "not run" in ask(port, "/experiments/T2.html")[1]
    shutil.copytree(ROOT / records.FOLDER / "T2", root / records.FOLDER / "T2")
    assert ask(port, "/version")[1] != before
    assert "not run" not in ask(port, "/experiments/T2.html")[1]


def test_the_first_page_is_kept_over_a_restart(tmp_path: Path) -> None:
    root = copy(tmp_path, "T1")
    first = server.Pages(root).page(site.INDEX)
    assert server.kept_first(root, server.first_state(root)) == first
    again = server.Pages(root)
    assert again.page(site.INDEX) == first
    assert again.page(site.INDEX) == first  # from the records themselves


@pytest.mark.parametrize(
    "changed", ["experiments.yaml", "experiments/new.yaml", "logs/runs/T1/x.json", "variants/a.cu"]
)
def test_a_first_page_is_not_kept_where_something_has_changed(tmp_path: Path, changed: str) -> None:
    root = copy(tmp_path, "T1")
    server.Pages(root).page(site.INDEX)
    path = root / changed
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{path.read_text() if path.exists() else ''}\n")
    assert server.kept_first(root, server.first_state(root)) is None


def test_a_first_page_is_not_kept_where_a_variable_of_a_record_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy(tmp_path, "T1")
    state = server.first_state(root)
    server.keep_first(root, state, {"KX_LENGTH": files.value_digest("KX_LENGTH")}, b"page")
    assert server.kept_first(root, state) == b"page"
    monkeypatch.setenv("KX_LENGTH", "7")
    assert server.kept_first(root, state) is None


def test_what_runs_is_told_step_by_step(serving: tuple[Path, int]) -> None:
    root, port = serving
    assert ask(port, "/progress") == (http.HTTPStatus.OK, "[]")
    with live.published(root, "kernelexp run T1") as tell:
        tell(Step(phase="emulating", done=1, total=2, now="layout=padded"))
        (work,) = json.loads(ask(port, "/progress")[1])
    assert work["command"] == "kernelexp run T1"
    step = {"phase": "emulating", "done": 1, "total": 2, "now": "layout=padded"}
    assert work["steps"] == [step]
    assert ask(port, "/progress", "evil.example")[0] == http.HTTPStatus.FORBIDDEN


def test_a_project_that_is_being_edited_is_an_error_and_then_a_page(
    serving: tuple[Path, int],
) -> None:
    root, port = serving
    good = (root / "experiments.yaml").read_text()
    (root / "experiments.yaml").write_text("version: [")
    status, text = ask(port, "/")
    assert (status, "experiments.yaml" in text) == (500, True)
    (root / "experiments.yaml").write_text(good)
    assert ask(port, "/")[0] == http.HTTPStatus.OK


def test_a_file_that_is_being_written_is_not_yet_a_change(serving: tuple[Path, int]) -> None:
    root, port = serving
    before = ask(port, "/version")[1]
    (root / records.FOLDER / "T1/.record.1234.tmp").write_text("{")
    assert ask(port, "/version")[1] == before


def test_a_reader_that_leaves_is_no_fault(
    serving: tuple[Path, int], capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", serving[1])) as leaving:
        leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        leaving.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{serving[1]}\r\n\r\n".encode())
    assert ask(serving[1], "/experiments/T1.html")[0] == http.HTTPStatus.OK
    assert capfd.readouterr().err == ""


def test_a_port_that_is_taken_is_said(serving: tuple[Path, int]) -> None:
    with pytest.raises(errors.EnvironmentFault, match="can't be had"):
        server.make(serving[0], serving[1])
