"""Workers that are forked: they begin and end as a process of their own would."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from support import wait_until

from kernelexp.system.process import processes
from kernelexp.system.process.processes import Completed

WORKER = """
import os
import sys

PRELOAD = ("colorsys", "no_such_module")

def main():
    exec(sys.stdin.read())
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.fixture(autouse=True)
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "worker_of_a_test.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")


def forked(code: str, timeout_s: float = 60) -> Completed:
    return processes.run_forked("worker_of_a_test", stdin=code, timeout_s=timeout_s)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_its_output_its_errors_and_its_exit_code_come_back() -> None:
    done = forked("print('out'); print('err', file=sys.stderr); sys.stdout.flush(); os._exit(7)")
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 7)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_signal_that_ends_it_comes_back(number: signal.Signals) -> None:
    assert forked(f"os.kill(os.getpid(), {int(number)})").returncode == -number


def test_an_exception_is_an_exit_code_of_1_with_its_traceback() -> None:
    done = forked("raise ValueError('so')")
    assert done.returncode == 1
    assert "ValueError: so" in done.stderr


def test_it_has_the_folder_and_the_environment_of_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forked("")
    monkeypatch.setenv("A_VARIABLE", "changed since\udcff")
    monkeypatch.chdir(tmp_path)
    done = forked("print(os.getcwd(), ascii(os.environ['A_VARIABLE']))")
    assert done.stdout == f"{tmp_path} 'changed since\\udcff'\n"


def test_what_is_slow_is_imported_once_and_before() -> None:
    code = "print(os.getppid(), 'colorsys' in sys.modules)"
    first, second = forked(code).stdout, forked(code).stdout
    assert first == second
    assert first.endswith(" True\n")


def test_it_can_be_imported_before_a_worker_is_asked_for(tmp_path: Path) -> None:
    imported = tmp_path / "imported"
    (tmp_path / "slow_of_a_test.py").write_text(f"open({str(imported)!r}, 'x')")
    (tmp_path / "other_of_a_test.py").write_text(WORKER.replace("colorsys", "slow_of_a_test"))
    processes.preload("no_such_worker")
    processes.preload("other_of_a_test")
    wait_until(imported.exists)
    done = processes.run_forked("other_of_a_test", stdin="print('so')", timeout_s=60)
    assert done.stdout == "so\n"


def test_two_draw_different_numbers() -> None:
    code = "import random; print(random.random())"
    forked(code)
    assert forked(code).stdout != forked(code).stdout


def test_past_its_limit_it_is_killed_with_what_it_started(tmp_path: Path) -> None:
    code = (
        "import subprocess\n"
        "child = subprocess.Popen(['setsid', 'sleep', '1000'])\n"
        f"open('{tmp_path}/pids', 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "child.wait()"
    )
    with pytest.raises(TimeoutError):
        forked(code, timeout_s=3)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    wait_until(lambda: not any(is_alive(pid) for pid in pids))


def test_a_server_that_was_killed_is_started_again_and_takes_its_workers_along(
    tmp_path: Path,
) -> None:
    pid, begun = int(forked("print(os.getppid())").stdout), tmp_path / "begun"
    code = f"import time; open({str(begun)!r}, 'x'); time.sleep(1000)"
    ended: list[Completed] = []
    thread = threading.Thread(target=lambda: ended.append(forked(code)))
    thread.start()
    wait_until(begun.exists)
    os.kill(pid, signal.SIGKILL)
    thread.join(30)
    assert [done.returncode for done in ended] == [-signal.SIGKILL]
    assert int(forked("print(os.getppid())").stdout) != pid


def test_a_server_that_is_killed_before_it_forks_is_started_and_asked_again() -> None:
    server = int(forked("print(os.getppid())").stdout)
    ended: list[Completed] = []
    thread = threading.Thread(target=lambda: ended.append(forked("print('in time')")))
    os.kill(server, signal.SIGSTOP)
    thread.start()
    wait_until(lambda: children(os.getpid(), "attach.py"))
    os.kill(server, signal.SIGKILL)
    thread.join(30)
    assert [(done.returncode, done.stdout) for done in ended] == [(0, "in time\n")]


def test_the_end_of_a_worker_and_of_what_stands_for_it_in_one_moment_is_no_fault() -> None:
    server = int(forked("print(os.getppid())").stdout)
    thread = threading.Thread(target=forked, args=("import time; time.sleep(1000)",), daemon=True)
    thread.start()
    wait_until(lambda: children(server))
    (worker,), (attached,) = children(server), children(os.getpid(), "attach.py")
    os.kill(server, signal.SIGSTOP)
    wait_until(
        lambda: Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    )
    for pid in (attached, worker):
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: not is_alive(pid))
    os.kill(server, signal.SIGCONT)
    thread.join(30)
    assert int(forked("print(os.getppid())").stdout) == server


def children(pid: int, program: str = "") -> list[int]:
    """The children of any thread of a process whose command line has `program` in it."""
    result = [
        int(child)
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]
    return [item for item in result if program in Path(f"/proc/{item}/cmdline").read_text()]


def test_many_at_once_have_an_answer_each() -> None:
    def ask(number: int) -> str:
        return forked(f"print({number} ** 2)").stdout

    assert processes.parallel(ask, range(24), workers=8) == [f"{n * n}\n" for n in range(24)]
