"""A worker: what it does with jobs that fail, leases that it loses, queues that are away."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from service_load import HONEST, KERNELEXP, REFUSED, Service, job
from support import wait_until

from kernelexp.model.errors import EnvironmentFault
from kernelexp.services.serving import worker as workers
from kernelexp.services.serving.queue import Offer, Queue
from kernelexp.services.serving.remote import QueueAway, RemoteQueue, WorkerCall
from kernelexp.services.serving.worker import QueueWorker
from kernelexp.services.tasks import cascade
from kernelexp.system import toolchain
from kernelexp.system.process import processes

pytestmark = pytest.mark.xdist_group("serving")


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path)


def put(queue: Queue, number: int = 1, text: str = REFUSED, **options: object) -> str:
    content = msgspec.json.encode({**job(number, text), **options})
    return queue.put(str(number), content, "one", 10).id


def work(queue: workers.JobSource, folder: Path) -> int:
    return QueueWorker(queue, folder, toolchain.find(None, folder)).work(until_empty=True)


def states(queue: Queue, key: str) -> tuple[str, int, str]:
    ticket = queue.ticket(key)
    assert ticket is not None
    return ticket.state, ticket.attempts, ticket.sentence


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(28, "No space left on device", "x.cu"), "x.cu can't be written: No space left"),
        (EnvironmentFault("there is no compiler."), "there is no compiler."),
        (ValueError("a bug"), "kernelexp failed (ValueError): a bug"),
    ],
)
def test_a_fault_of_the_machine_s_ends_no_worker_and_is_no_verdict(
    queue: Queue,
    tmp_path: Path,
    error: Exception,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(cascade, "assess", fail)
    put(queue)
    assert work(queue, tmp_path) == 3
    state, attempts, words = states(queue, "1")
    assert (state, attempts) == ("failed", 3)
    assert words.startswith(sentence)


def test_a_job_that_is_none_fails_at_once(queue: Queue, tmp_path: Path) -> None:
    queue.put("1", b"{}", "one", 1)
    work(queue, tmp_path)
    assert states(queue, "1")[:2] == ("failed", 1)


def test_what_is_refused_by_rule_is_not_passed_on_to_a_gpu(queue: Queue, tmp_path: Path) -> None:
    put(queue, timed=True)
    assert work(queue, tmp_path) == 1
    assert states(queue, "1")[0] == "done"


@pytest.mark.slow
def test_what_is_right_and_to_be_timed_waits_for_a_gpu(queue: Queue, tmp_path: Path) -> None:
    put(queue, text=HONEST, timed=True)
    assert work(queue, tmp_path) == 0
    assert states(queue, "1")[:2] == ("queued", 0)
    assert queue.take("gpu", gpu=True).leased


def test_a_worker_that_can_t_renew_its_lease_ends_the_job(
    queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(*_: object) -> None:
        processes.run(["sleep", "60"])

    def away(*_: object) -> bool:
        raise QueueAway("nobody answers")

    monkeypatch.setattr(cascade, "assess", sleep)
    monkeypatch.setattr(workers, "LEASE_S", 0.5)
    monkeypatch.setattr(queue, "renew", away)
    put(queue)
    tools = toolchain.find(None, tmp_path)
    worker = QueueWorker(queue, tmp_path, tools)
    leased = queue.take(worker.name).leased
    assert leased is not None
    assert not worker._do(leased)
    assert states(queue, "1")[0] == "running"


def test_a_queue_that_is_away_for_a_while_is_waited_for(
    queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([QueueAway("restarting"), QueueAway("restarting")])
    take = queue.take

    def sometimes(worker: str, gpu: bool = False) -> Offer:
        for error in answers:
            raise error
        return take(worker, gpu)

    monkeypatch.setattr(queue, "take", sometimes)
    put(queue)
    assert work(queue, tmp_path) == 1


def test_a_queue_that_stays_away_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PATIENCE_S", 0.0)
    with pytest.raises(EnvironmentFault, match=r"has been away for 0 s: http://127\.0\.0\.1:9: "):
        work(RemoteQueue("http://127.0.0.1:9"), tmp_path)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    tokens = folder / "tokens"
    tokens.write_text("one 0123456789abcdef\nfarm fedcba9876543210 worker\n")
    result = Service(folder / "queue", 0, "--tokens", str(tokens))
    yield result
    result.kill()


def test_a_worker_elsewhere_has_the_address_and_a_token(service: Service, tmp_path: Path) -> None:
    code, ticket = service.ask("POST", "/evaluations", job(1), "0123456789abcdef")
    assert code == 202
    argv = [*KERNELEXP, "serve", "--worker", "--queue", service.address, "--until-empty"]
    for token, exit_code in (("0123456789abcdef", 6), ("fedcba9876543210", 0)):
        environment = {**os.environ, "KERNELEXP_TOKEN": token}
        ended = subprocess.run(
            argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == exit_code, ended.stderr
    assert "1 evaluation done." in ended.stderr
    path = f"/evaluations/{ticket['id']}"
    assert service.ask("GET", path, token="0123456789abcdef")[1]["state"] == "done"


def test_a_worker_of_another_version_is_refused(service: Service) -> None:
    call = msgspec.to_builtins(WorkerCall(worker="w", version="0.0.0"))
    code, answer = service.ask("POST", "/queue/take", call, "fedcba9876543210")
    assert code == 409
    assert answer["error"].endswith("the worker 0.0.0.")


def test_a_result_that_is_none_is_refused(service: Service) -> None:
    queue = RemoteQueue(service.address, "fedcba9876543210")
    with pytest.raises(EnvironmentFault, match="the result is not an assessment"):
        queue.finish("x", "w", b"{}")


@pytest.mark.slow
def test_a_full_disk_loses_nothing_and_the_service_goes_on(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    service = Service(place / "queue", 1)
    try:
        keys = [service.ask("POST", "/evaluations", job(number))[1]["id"] for number in range(5)]
        filler = place / "filler"
        with filler.open("wb", buffering=0) as file:
            free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
            os.posix_fallocate(file.fileno(), 0, free)
        codes, number = [], 5
        while 503 not in codes:
            number += 1
            code, answer = service.ask("POST", "/evaluations", job(number))
            codes.append(code)
            if code == 202:
                keys.append(answer["id"])
            assert number < 500
        assert "the queue can't be used now" in answer["error"]
        assert service.ask("GET", f"/evaluations/{keys[0]}")[0] == 200
        filler.unlink()
        code, answer = service.ask("POST", "/evaluations", job(number))
        assert code == 202
        keys.append(answer["id"])
        queue = Queue(place / "queue")
        wait_until(lambda: queue.counts() == {"done": len(keys)})
        for key in keys:
            assert [event.what for event in queue.events(key)].count("done") == 1
    finally:
        service.kill()
        wait_until(lambda: not service.workers())
        subprocess.run(["umount", "-l", str(place)], check=True)
