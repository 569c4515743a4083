"""Starts a program that may read and write named folders only, with limits on what it uses.

A script of its own, run by its path before the program: `confine.py '{"read": [...], ...}' PROGRAM
ARGUMENT...`, with the program's whole path. `output` names files for its standard output and its
errors; where there are none, it keeps those of the script.

Landlock (Linux 5.13) keeps the program and all that it starts from every other file, and from TCP
where the kernel is of version 6.7 or later; https://docs.kernel.org/userspace-api/landlock.html has
the numbers below.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable, Mapping

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVS = 38
_VERSION = 1
_RULE_PATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14
# What each version of the interface can forbid: ABI 1 has 13 rights, 2 adds refer, 3 truncate,
# 5 ioctl on devices.
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP = 3
"""Binding and connecting, from ABI 4 on."""

CANNOT = 126
"""The exit code where the program was not started."""
LIMITS = {
    "memory_bytes": resource.RLIMIT_AS,
    "cpu_s": resource.RLIMIT_CPU,
    "file_bytes": resource.RLIMIT_FSIZE,
    "files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "data_bytes": resource.RLIMIT_DATA,
    "core_bytes": resource.RLIMIT_CORE,
}


def version() -> int:
    """Of the kernel's interface; 0 where it has none."""
    return max(0, _call(_CREATE, None, 0, _VERSION))


def limit(limits: Mapping[str, int]) -> None:
    """Lowers limits of this process, by the names of LIMITS; none is raised."""
    for name, value in limits.items():
        hard = resource.getrlimit(LIMITS[name])[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(LIMITS[name], (least, least))


def limit_growth(size: int) -> None:
    """Lets this process allocate so many bytes more than it has now."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[5])
    limit({"data_bytes": pages * resource.getpagesize() + size})


def restrict(read: Iterable[str], write: Iterable[str]) -> None:
    """From here on this process can open only what is in these folders, or is one of these files.

    OSError where the kernel can't restrict it.
    """
    abi = version()
    if not abi:
        raise OSError("the kernel has no Landlock")
    handled = max(rights for since, rights in _RIGHTS.items() if since <= abi)
    attributes = struct.pack("=Q", handled) + (struct.pack("=Q", _TCP) if abi >= 4 else b"")
    rules = _checked(_call(_CREATE, attributes, len(attributes), 0))
    for rights, paths in ((_READ, read), (handled, write)):
        for path in paths:
            _allow(rules, rights & handled, path)
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(_call(_RESTRICT, rules, 0))
    os.close(rules)


def _allow(rules: int, rights: int, path: str) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= _OF_FILES
    _checked(_call(_ADD, rules, _RULE_PATH, struct.pack("=Qi", rights, folder), 0))
    os.close(folder)


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(number, *arguments))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def main() -> None:
    """Becomes the program that the arguments name; CANNOT where it can't be confined."""
    order, program = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        limit(order["limits"])
        outputs = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in order["output"]]
        restrict(order["read"], order["write"])
    except OSError as error:
        sys.stderr.write(f"can't confine {program[0]}: {error}\n")
        sys.exit(CANNOT)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and a program inherits
        signal.signal(ignored, signal.SIG_DFL)
    for number, file in enumerate(outputs, 1):
        os.dup2(file, number)
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
