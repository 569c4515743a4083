"""The queue of evaluations."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from pathlib import Path

import pytest

from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.services.serving import job as jobs
from kernelexp.services.serving import queue as queues
from kernelexp.services.serving.queue import Queue, TooMany
from kernelexp.services.serving.remote import RemoteQueue

JOB = {"problem": {"challenge.py": "class Challenge: ..."}, "solution": {"solve.cu": "solve"}}


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path)


def put(queue: Queue, key: str, client: str = "one", most: int = 10) -> str:
    return queue.put(key, b"{}", client, most).state


def taken(queue: Queue, worker: str, gpu: bool = False) -> str:
    leased = queue.take(worker, gpu).leased
    return leased.id if leased else ""


def events(queue: Queue, key: str) -> list[str]:
    return [event.what for event in queue.events(key)]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases end at once."""
    monkeypatch.setattr(queues, "LEASE_S", -1.0)
    monkeypatch.setattr(queues, "LOOKS", 0)


def test_the_oldest_job_is_taken_first_and_once(queue: Queue) -> None:
    put(queue, "a")
    put(queue, "b")
    assert [taken(queue, worker) for worker in ("w1", "w2", "w3")] == ["a", "b", ""]


def test_the_same_job_is_in_the_queue_once(queue: Queue) -> None:
    put(queue, "a")
    queue.take("w")
    queue.finish("a", "w", b"1")
    assert put(queue, "a", "another") == "done"
    assert queue.result("a") == b"1"


@pytest.mark.usefixtures("short")
def test_a_job_whose_worker_is_gone_goes_to_the_next_one(queue: Queue) -> None:
    put(queue, "a")
    taken(queue, "gone")
    assert taken(queue, "next") == "a"
    assert not queue.finish("a", "gone", b"late")
    assert queue.finish("a", "next", b"result")
    assert queue.result("a") == b"result"
    assert events(queue, "a") == ["queued", "running", "running again", "done"]


def test_a_lease_that_is_renewed_never_ends(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "LEASE_S", 0.0)
    put(queue, "a")
    taken(queue, "busy")
    for _ in range(3 * queues.LOOKS):
        assert taken(queue, "next") == ""
        assert queue.renew("a", "busy")


@pytest.mark.parametrize("hours", [-1000, 1000])
def test_clocks_that_differ_take_no_job_from_its_worker(
    queue: Queue, hours: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(queue, "a")
    taken(queue, "busy")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600 * hours)
    elsewhere = Queue(tmp_path)
    assert [taken(elsewhere, "next") for _ in range(3 * queues.LOOKS)] == [""] * 3 * queues.LOOKS
    assert queue.finish("a", "busy", b"result")
    monkeypatch.undo()
    put(elsewhere, "b")
    assert taken(queue, "next") == "b"


def test_a_watcher_that_has_slept_looks_again_first(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(queue, "a")
    taken(queue, "busy")
    taken(queue, "next")
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + 3600)
    assert taken(queue, "next") == ""
    assert queue.renew("a", "busy")


@pytest.mark.usefixtures("short")
def test_a_job_that_ends_every_worker_is_given_up(queue: Queue) -> None:
    put(queue, "a")
    for turn in range(queues.ATTEMPTS + 1):
        taken(queue, f"w{turn}")
    ticket = queue.ticket("a")
    assert ticket is not None
    assert (ticket.state, ticket.sentence) == ("failed", "3 workers ended in the middle of it.")


def test_a_worker_that_lost_the_answer_gets_the_same_job(queue: Queue) -> None:
    put(queue, "a")
    put(queue, "b")
    assert [taken(queue, "w"), taken(queue, "w")] == ["a", "a"]
    assert events(queue, "a") == ["queued", "running"]


def test_a_machine_s_fault_is_tried_elsewhere_and_at_last_told(queue: Queue) -> None:
    put(queue, "a")
    for turn in range(queues.ATTEMPTS):
        assert taken(queue, f"w{turn}") == "a"
        assert queue.fail("a", f"w{turn}", "no space left.", again=True)
    ticket = queue.ticket("a")
    assert ticket is not None
    assert (ticket.state, ticket.sentence) == ("failed", "no space left.")
    assert put(queue, "a") == "queued"


def test_what_is_to_be_timed_goes_on_to_a_worker_with_a_gpu_and_is_its_first(
    queue: Queue,
) -> None:
    put(queue, "a")
    put(queue, "b")
    taken(queue, "cpu")
    assert queue.pass_on("a", "cpu")
    assert taken(queue, "cpu") == "b"
    assert queue.take("cpu2").left == 1
    assert taken(queue, "gpu", gpu=True) == "a"
    assert events(queue, "a") == ["queued", "running", "queued for a GPU", "running"]


def test_a_file_of_another_version_is_left_alone(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / queues.FILE)) as database:
        database.execute("CREATE TABLE jobs (id TEXT)")
    with pytest.raises(EnvironmentFault, match="of another version of kernelexp"):
        Queue(tmp_path)


def test_a_client_has_a_limit_that_is_its_own(queue: Queue) -> None:
    put(queue, "a", most=1)
    with pytest.raises(TooMany):
        put(queue, "b", most=1)
    assert put(queue, "b", client="another", most=1) == "queued"


def test_what_is_cancelled_is_not_taken_and_may_be_asked_for_again(queue: Queue) -> None:
    put(queue, "a")
    assert queue.cancel("a")
    assert taken(queue, "w") == ""
    assert put(queue, "a") == "queued"


def test_a_worker_that_ends_gives_back_what_it_has(queue: Queue) -> None:
    put(queue, "a")
    taken(queue, "w")
    queue.give_back("w")
    assert taken(queue, "next") == "a"
    ticket = queue.ticket("a")
    assert ticket is not None
    assert ticket.attempts == 1


def test_a_worker_that_died_has_had_an_attempt(queue: Queue) -> None:
    put(queue, "a")
    for turn in range(queues.ATTEMPTS):
        assert taken(queue, f"w{turn}") == "a"
        queue.give_back(f"w{turn}", attempts=1)
    assert taken(queue, "next") == ""
    ticket = queue.ticket("a")
    assert ticket is not None
    assert ticket.state == "failed"


def test_equal_content_has_an_equal_key_whatever_its_order() -> None:
    one = jobs.decode(json.dumps(JOB).encode())
    other = jobs.decode(json.dumps(dict(reversed(JOB.items()))).encode())
    assert one.key == other.key
    assert jobs.decode(json.dumps({**JOB, "largest": 8}).encode()).key != one.key


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", "not as its schema says"),
        ("{", "is not JSON"),
        (json.dumps({**JOB, "shell": "rm"}), "unknown field `shell`"),
        (json.dumps({**JOB, "schedules": 99}), "schedules are 0 to 16"),
        (json.dumps({**JOB, "solution": {}}), "and one of a solution"),
    ],
)
def test_what_is_no_job_is_said(content: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        jobs.decode(content.encode())


def test_a_file_name_does_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    job = jobs.decode(json.dumps({**JOB, "solution": {"../../x.cu": ""}}).encode())
    with pytest.raises(UsageError, match="leads out of its folder"):
        jobs.unpack(job, tmp_path)


@pytest.mark.parametrize(
    "name",
    ["a\0b", "n" * 300, "x/y", "a/" * 1500 + "b"],
    ids=["null byte", "long", "below a file", "deep"],
)
def test_a_file_name_that_no_machine_can_write_is_no_fault_of_the_machine(
    name: str, tmp_path: Path
) -> None:
    job = jobs.decode(json.dumps({**JOB, "problem": {"x": "", name: ""}}).encode())
    with pytest.raises(UsageError, match="can't be used"):
        jobs.unpack(job, tmp_path)


@pytest.mark.parametrize(
    "address", ["http://[::1", "http://", "http://a b", "http://a:999999", "http://a:b", "ftp://a"]
)
def test_what_is_no_address_of_a_service_is_not_asked(address: str) -> None:
    with pytest.raises(UsageError, match="no address as in"):
        RemoteQueue(address)
