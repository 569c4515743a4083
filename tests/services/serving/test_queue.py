"""The queue of evaluations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelexp.model.errors import UsageError
from kernelexp.services.serving import job as jobs
from kernelexp.services.serving import queue as queues
from kernelexp.services.serving.queue import Queue, TooMany

JOB = {"problem": {"challenge.py": "class Challenge: ..."}, "solution": {"solve.cu": "solve"}}


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path)


def put(queue: Queue, key: str, client: str = "one", most: int = 10) -> str:
    return queue.put(key, b"{}", client, most).state


def test_the_oldest_job_is_taken_first_and_once(queue: Queue) -> None:
    put(queue, "a")
    put(queue, "b")
    taken = [queue.take("w1"), queue.take("w2"), queue.take("w3")]
    assert [leased and leased.id for leased in taken] == ["a", "b", None]


def test_the_same_job_is_in_the_queue_once(queue: Queue) -> None:
    put(queue, "a")
    queue.take("w")
    queue.finish("a", "w", b"1")
    assert put(queue, "a", "another") == "done"
    assert queue.result("a") == b"1"


def test_a_job_whose_worker_is_gone_goes_to_the_next_one(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(queue, "a")
    monkeypatch.setattr(queues, "LEASE_S", -1.0)
    queue.take("gone")
    monkeypatch.undo()
    assert queue.take("next") is not None
    assert not queue.finish("a", "gone", b"late")
    assert queue.finish("a", "next", b"result")
    assert queue.result("a") == b"result"
    assert [event.what for event in queue.events("a")] == [
        "queued",
        "running",
        "running again",
        "done",
    ]


def test_a_job_that_ends_every_worker_is_given_up(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "LEASE_S", -1.0)
    put(queue, "a")
    for turn in range(queues.ATTEMPTS + 1):
        queue.take(f"w{turn}")
    ticket = queue.ticket("a")
    assert ticket is not None
    assert (ticket.state, ticket.sentence) == ("failed", "3 workers ended in the middle of it.")


def test_a_client_has_a_limit_that_is_its_own(queue: Queue) -> None:
    put(queue, "a", most=1)
    with pytest.raises(TooMany):
        put(queue, "b", most=1)
    assert put(queue, "b", client="another", most=1) == "queued"


def test_what_is_cancelled_is_not_taken_and_may_be_asked_for_again(queue: Queue) -> None:
    put(queue, "a")
    assert queue.cancel("a")
    assert queue.take("w") is None
    assert put(queue, "a") == "queued"


def test_a_worker_that_ends_gives_back_what_it_has(queue: Queue) -> None:
    put(queue, "a")
    queue.take("w")
    queue.give_back("w")
    again = queue.take("next")
    assert again is not None
    ticket = queue.ticket("a")
    assert ticket is not None
    assert ticket.attempts == 1


def test_equal_content_has_an_equal_key_whatever_its_order() -> None:
    one = jobs.decode(json.dumps(JOB).encode())
    other = jobs.decode(json.dumps(dict(reversed(JOB.items()))).encode())
    assert one.key == other.key
    assert jobs.decode(json.dumps({**JOB, "largest": 8}).encode()).key != one.key


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", "not as its schema says"),
        ("{", "is no JSON"),
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
