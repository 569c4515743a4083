"""What a confined process can't do; each process says what it could."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from kernelexp.system.process import confine, processes

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and users take root")
PUBLIC = "/usr/bin/python3"
"""An interpreter that any user may start."""
TRIES = """
import fcntl, json, os, socket
def could(what):
    try:
        what()
    except OSError:
        return False
    return True
def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("127.0.0.1", 9))
def control():
    with open("/dev/urandom") as device:
        fcntl.ioctl(device, 0x80045200, bytes(4))  # RNDGETENTCNT
print(json.dumps({
    "controls": could(control),
    "sends": could(send),
    "pairs": could(lambda: [s.close() for s in socket.socketpair()]),
    "reads": could(lambda: open(os.environ["HIDDEN"]).close()),
    "signals": could(lambda: os.kill(os.getppid(), 0)),
    "user": os.getuid(),
    "links": len(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else 0,
    "shared": os.listdir("/dev/shm"),
}))
"""


def run(place: Path, **order: object) -> dict[str, Any]:
    """What a process could do that was confined in that way, and by nothing else."""
    hidden = place / "hidden"
    hidden.write_text("")
    hidden.chmod(0o600)
    whole = {"files": False, "read": [], "write": [], "output": [], "limits": {}, **order}
    argv = [sys.executable, "-I", "-S", confine.__file__, json.dumps(whole)]
    env = {"HIDDEN": str(hidden)}
    python = PUBLIC if order.get("user") else sys.executable
    done = processes.run([*argv, python, "-I", "-c", TRIES], env=env)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_a_process_that_nothing_confines_can_do_all_of_it(tmp_path: Path) -> None:
    could = run(tmp_path)
    assert [could[what] for what in ("sends", "pairs", "reads", "signals")] == [True] * 4


def test_without_sockets_there_are_local_ones(tmp_path: Path) -> None:
    could = run(tmp_path, sockets=True)
    assert (could["sends"], could["pairs"]) == (False, True)


@pytest.mark.skipif(not confine.version(), reason="this kernel has no Landlock")
def test_files_that_are_not_named_can_t_be_opened(tmp_path: Path) -> None:
    readable = ["/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev/shm"]
    read = [*readable, sys.prefix, sys.base_prefix]
    could = run(tmp_path, files=True, read=read, write=["/dev/urandom"])
    assert (could["reads"], could["controls"]) == (False, True)
    assert could["signals"] is (confine.version() < 6)


@pytest.mark.skipif(not confine.version(), reason="this kernel has no Landlock")
def test_what_leaves_its_output_open_is_waited_for_where_proc_can_t_be_read(tmp_path: Path) -> None:
    # As a compiler on a busy machine: it has ended, and the end of its output comes a while later.
    code = f"""import sys
sys.path.insert(0, {str(ROOT)!r})
from kernelexp.system.process import processes
print(processes.run(["/bin/sh", "-c", "sleep 1.3 & echo said"]).stdout)
"""
    read = ["/usr", "/bin", "/lib", "/lib64", "/etc", sys.prefix, sys.base_prefix, str(ROOT)]
    order = {"files": True, "read": read, "write": ["/dev/null"], "output": [], "limits": {}}
    argv = [sys.executable, "-I", "-S", confine.__file__, json.dumps(order)]
    done = processes.run([*argv, sys.executable, "-I", "-c", code])
    assert (done.returncode, done.stdout) == (0, "said\n\n"), done.stderr


@root_only
def test_namespaces_have_no_network_and_shared_memory_of_their_own(tmp_path: Path) -> None:
    seen = Path("/dev/shm") / f"kernelexp-{os.getpid()}"
    seen.write_text("")
    try:
        could = run(tmp_path, namespaces=True)
    finally:
        seen.unlink()
    assert (could["sends"], could["shared"]) == (False, [])


@root_only
@pytest.mark.skipif(not Path(PUBLIC).is_file(), reason=f"there is no {PUBLIC}")
def test_another_user_reads_and_signals_nothing(tmp_path: Path) -> None:
    could = run(tmp_path, user=1 << 30)
    assert (could["user"], could["reads"], could["signals"]) == (1 << 30, False, False)
