"""Processes end with all their children, however they end and whoever ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from support import ROOT, TOKEN, alive, wait_until

from kernelexp.model.errors import EnvironmentFault
from kernelexp.system.process import processes
from kernelexp.system.process.interrupts import Interrupted

# Two that leave the group, the session, and the second one the environment too.
TREE = "setsid sleep 1000 & sh -c 'sleep 1000' & exec sleep 1000"


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    name = uuid.uuid4().hex
    monkeypatch.setenv(TOKEN, name)
    return name


def children(token: str) -> list[int]:
    return [pid for pid in alive(token) if pid != os.getpid()]


def test_a_process_past_its_limit_dies_with_its_tree_and_says_so(token: str) -> None:
    with pytest.raises(TimeoutError, match=r"sh ran past 0\.5 s and was killed"):
        processes.run(["sh", "-c", TREE], timeout_s=0.5)
    assert not children(token)


def test_a_process_that_cleared_its_environment_dies_by_its_session(tmp_path: Path) -> None:
    script = f"env -i sleep 1000 & echo $! > {tmp_path}/pid; wait"
    with pytest.raises(TimeoutError):
        processes.run(["sh", "-c", script], timeout_s=0.5)
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not Path(f"/proc/{pid}/cmdline").exists() or not _is_running(pid))


def _is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_stop_all_ends_what_other_threads_wait_for(token: str) -> None:
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            processes.run(["sh", "-c", TREE])
        except BaseException as error:
            ended.append(error)

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(children(token)) >= 9)
    processes.stop_all()
    for thread in threads:
        thread.join(60)
    assert [type(item) for item in ended] == [Interrupted] * 3
    assert not children(token)


def test_what_a_process_leaves_behind_with_its_output_is_not_waited_for(token: str) -> None:
    done = processes.run(["sh", "-c", "cat; sleep 1000 & exit 3"], stdin="fed", timeout_s=60)
    assert (done.returncode, done.stdout) == (3, "fed")
    assert not children(token)


def test_a_program_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(EnvironmentFault, match=r"/nowhere can't be started: No such file"):
        processes.run(["/nowhere"])


@pytest.mark.parametrize(("script", "number"), [("kill -9 $$", 9), ("exit 139", 11), ("exit 1", 0)])
def test_a_process_says_which_signal_ended_it(script: str, number: int) -> None:
    assert processes.run(["sh", "-c", script]).killed_by == number


def test_parallel_gives_results_in_order_and_tells_each_begin_and_end() -> None:
    result: list[tuple[int, tuple[int, ...]]] = []
    results = processes.parallel(
        lambda x: 2 * x, [1, 2, 3], on_change=lambda done, now: result.append((done, tuple(now)))
    )
    assert results == [2, 4, 6]
    assert (result[0], result[-1], len(result)) == ((0, ()), (3, ()), 7)


def test_parallel_of_nothing_is_nothing() -> None:
    assert processes.parallel(str, []) == []


def test_one_item_that_fails_ends_the_others(token: str) -> None:
    def work(script: str) -> None:
        if not script:
            wait_until(lambda: len(children(token)) >= 3)
            raise ValueError("no script")
        processes.run(["sh", "-c", script])

    with pytest.raises(ValueError, match="no script"):
        processes.parallel(work, [TREE, "", TREE], workers=2)
    wait_until(lambda: not children(token))


PROGRAM = """
import signal
import sys
from kernelexp.system.process import interrupts, processes
for number in interrupts.SIGNALS:
    signal.signal(number, signal.SIG_DFL)  # the tests may run under nohup
interrupts.handle_signals()
try:
    processes.parallel(lambda x: processes.run(["sh", "-c", sys.argv[1]]), range(4), workers=2)
except KeyboardInterrupt as interrupt:
    sys.exit(interrupt.exit_code)
"""


def start(token: str) -> subprocess.Popen[bytes]:
    """A program that waits for two trees in two threads, once both are there."""
    environment = {**os.environ, TOKEN: token}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, TREE], env=environment)
    wait_until(lambda: len(alive(token)) >= 1 + 2 * 3)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_program_with_all_its_processes(number: signal.Signals) -> None:
    token = uuid.uuid4().hex
    process = start(token)
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    wait_until(lambda: not alive(token))


def test_a_program_that_is_killed_leaves_no_process() -> None:
    token = uuid.uuid4().hex
    process = start(token)
    process.kill()
    process.wait(60)
    wait_until(lambda: not alive(token))


def test_a_second_signal_ends_a_program_that_does_not_end() -> None:
    stuck = PROGRAM.replace("sys.exit(interrupt.exit_code)", "import time; time.sleep(1000)")
    token = uuid.uuid4().hex
    environment = {**os.environ, TOKEN: token}
    process = subprocess.Popen([sys.executable, "-c", stuck, TREE], env=environment)
    wait_until(lambda: len(alive(token)) >= 1 + 2 * 3)
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: len(alive(token)) <= 1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    wait_until(lambda: not alive(token))


NOT_WOKEN = """
import signal
import sys
import threading
import time
from kernelexp.system.process import interrupts, processes
interrupts.handle_signals()
def work(_):
    time.sleep(0.3)  # by now the main thread sleeps too
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    time.sleep(1000)
try:
    processes.parallel(work, ["once"])
except KeyboardInterrupt as interrupt:
    sys.exit(interrupt.exit_code)
"""


def test_a_signal_that_does_not_wake_the_main_thread_is_noticed() -> None:
    """The kernel may give it to any thread, and one that is about to sleep misses its own."""
    ended = subprocess.run([sys.executable, "-c", NOT_WOKEN], timeout=60)
    assert ended.returncode == 128 + signal.SIGTERM


UNRAISABLE = """
import os, signal, time, weakref
from kernelexp.system.process import interrupts
interrupts.handle_signals()
class Lock: pass
lock = Lock()
reference = weakref.ref(lock, lambda _: os.kill(os.getpid(), signal.SIGTERM))
del lock  # as at the end of each import
time.sleep(1000)
"""


def test_a_signal_in_the_callback_of_a_weak_reference_ends_a_program() -> None:
    argv = [sys.executable, "-c", UNRAISABLE]
    ended = subprocess.run(argv, timeout=60, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGTERM, "interrupted\n")


def test_an_ignored_hang_up_stays_ignored() -> None:
    code = (
        "import os, signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from kernelexp.system.process import interrupts; interrupts.handle_signals()\n"
        "os.kill(os.getpid(), signal.SIGHUP); print('there')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "there\n"


@pytest.mark.parametrize("stream", ["1", "2"])
def test_what_prints_without_end_is_killed_with_a_sentence(token: str, stream: str) -> None:
    with pytest.raises(processes.TooMuchOutput, match="sh printed more than 1 MiB and was killed"):
        processes.run(["sh", "-c", f"yes >&{stream}"], output_max=1 << 20)
    assert not children(token)


def test_much_is_fed_while_much_is_printed() -> None:
    text = "line\n" * 200_000
    assert processes.run(["cat"], stdin=text).stdout == text
    assert processes.run(["true"], stdin=text).returncode == 0


def test_a_process_that_closes_its_output_is_waited_for() -> None:
    assert processes.run(["sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 3"]).returncode == 3


TOLD = """
import select, signal, threading, time
from kernelexp.system.process import interrupts
interrupts.handle_signals()
interrupts.end_at_once()
def take():
    time.sleep(0.2)  # until the main thread waits
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
threading.Thread(target=take, daemon=True).start()
select.select([], [], [])
"""


def test_a_signal_that_another_thread_has_taken_ends_a_server_that_waits() -> None:
    result = subprocess.run([sys.executable, "-c", TOLD], cwd=ROOT, timeout=60, check=False)
    assert result.returncode == 128 + signal.SIGTERM
