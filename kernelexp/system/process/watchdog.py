"""Finds and kills process trees by a mark in their environment, also when kernelexp itself is dead.

Every process of a tree inherits the environment, whatever sessions and groups it makes of its own,
so a mark in it names the tree. A process that cleared its environment is found by its session.

Run as a script, this is the watchdog: it waits until its parent is gone, however that ended, and
then kills what the parent left. (PR_SET_PDEATHSIG would reach only the first process of each tree,
is bound to the thread that started it, and needs code between fork and exec.) Only the standard
library, so that it starts in a few milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys
import time

MARK = "KERNELEXP_TREE"
PATIENCE_S = 2.0
"""A process that is still there this long after SIGKILL is stuck in the kernel."""


def kill(mark: str, sessions: frozenset[int] = frozenset()) -> None:
    """Kills every process with an environment whose mark starts with `mark`, or of a session.

    Looks again until there are none, because a process may fork while it is being killed.
    """
    deadline = time.monotonic() + PATIENCE_S
    while _kill_once(f"{MARK}={mark}".encode(), sessions) and time.monotonic() < deadline:
        time.sleep(0.002)


def _kill_once(mark: bytes, sessions: frozenset[int]) -> bool:
    any_left = False
    try:
        names = os.listdir("/proc")
    except PermissionError:  # whoever confined this process ends what it leaves
        return False
    for name in names:
        if name.isdigit() and int(name) != os.getpid():
            any_left |= _kill_if_marked(int(name), mark, sessions)
    return any_left


def _kill_if_marked(pid: int, mark: bytes, sessions: frozenset[int]) -> bool:
    try:
        handle = os.pidfd_open(pid)  # so that a number used anew can't be hit
    except OSError:
        return False
    try:
        if not _is_marked(pid, mark, sessions):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return True
    except OSError:  # it ended, or it is somebody else's
        return False
    finally:
        os.close(handle)


def _is_marked(pid: int, mark: bytes, sessions: frozenset[int]) -> bool:
    with open(f"/proc/{pid}/stat", "rb") as file:
        state, _, _, session = file.read().rpartition(b")")[2].split()[:4]
    if state in (b"Z", b"X"):
        return False
    if int(session) in sessions:
        return True
    with open(f"/proc/{pid}/environ", "rb") as file:
        return any(variable.startswith(mark) for variable in file.read().split(b"\0"))


def main() -> None:
    """Waits for the end of standard input, which the parent holds open and never writes to."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    kill(sys.argv[1])


if __name__ == "__main__":
    main()
