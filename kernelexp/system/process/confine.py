"""Starts a program that may read and write named folders only, with limits on what it uses.

A script of its own, run by its path before the program: `confine.py '{"read": [...], ...}' PROGRAM
ARGUMENT...`, with the program's whole path. `output` names files for its standard output and its
errors; where there are none, it keeps those of the script. A forked process confines itself with
`apply`, before it has threads: what is restricted is the thread that asks, and those it starts.

Landlock (Linux 5.13) keeps the program and all that it starts from every other file, and from TCP
where the kernel is of version 6.7 or later; from 6.12 on also from signals to others. A seccomp
filter leaves it no sockets but local ones; namespaces, for which root is needed, give it a network
and a /dev/shm of its own. https://docs.kernel.org/userspace-api/landlock.html and
linux/{seccomp,filter,audit,sched,mount}.h have the numbers below.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Iterable, Mapping
from typing import Any

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVS = 38
_VERSION = 1
_RULE_PATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14 | 1 << 15
# What each version of the interface can forbid: ABI 1 has 13 rights, 2 adds refer, 3 truncate,
# 5 ioctl on devices.
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP = 3
"""Binding and connecting, from ABI 4 on."""
_SCOPES = 3
"""Abstract sockets and signals of processes outside, from ABI 6 on."""

_NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x40000000
"""Of mounts, of System V's memory, and of the network."""
_PRIVATE, _NO_SUID_DEV = 1 << 18 | 1 << 14, 2 | 4
_SECCOMP, _FILTER, _DUMPABLE = 22, 2, 4
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""As seccomp names them, and the number of their socket()."""
_IO_URING, _X32 = 425, 0x40000000

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
    """Returns the version of Landlock; 0 where the kernel has none."""
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
    """Restricts this process to what is in these folders, or is one of these files.

    OSError where the kernel can't restrict it.
    """
    abi = version()
    if not abi:
        raise OSError("the kernel has no Landlock")
    handled = max(rights for since, rights in _RIGHTS.items() if since <= abi)
    attributes = struct.pack("=Q", handled) + (struct.pack("=Q", _TCP) if abi >= 4 else b"")
    attributes += struct.pack("=Q", _SCOPES) if abi >= 6 else b""
    rules = _checked(_call(_CREATE, attributes, len(attributes), 0))
    for rights, paths in ((_READ, read), (handled, write)):
        for path in paths:
            _allow(rules, rights & handled, path)
    _control(_NO_NEW_PRIVS, 1)
    _checked(_call(_RESTRICT, rules, 0))
    os.close(rules)


def unshare() -> None:
    """A network without interfaces, and a /dev/shm that others don't see; OSError without root."""
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.unshare(_NEW_NAMESPACES))
    _checked(libc.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE), None))
    if os.path.isdir("/dev/shm"):
        flags = ctypes.c_ulong(_NO_SUID_DEV)
        _checked(libc.mount(b"none", b"/dev/shm", b"tmpfs", flags, b"mode=1777"))


def refuse_sockets() -> None:
    """Restricts socket() to local ones. OSError where the kernel can't filter calls."""
    machine, socket_call = _MACHINES[platform.machine()]
    # An instruction: what it does, how many to skip where it holds and where not, its operand.
    steps = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 0, 6, machine),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 4, 0, _X32),
        (_EQUAL, 3, 0, _IO_URING),  # which makes sockets by itself
        (_EQUAL, 0, 3, socket_call),
        (_LOAD, 0, 0, 16),
        (_EQUAL, 1, 0, 1),  # AF_UNIX
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    header = struct.pack("@HP", len(steps), ctypes.addressof(program))
    _control(_NO_NEW_PRIVS, 1)
    _control(_SECCOMP, _FILTER, ctypes.create_string_buffer(header))


def become(user: int) -> None:
    """A user whom no file belongs to; OSError without root."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _control(_DUMPABLE, 1)  # or its own /proc/self would be root's


def apply(order: Mapping[str, Any]) -> None:
    """All that an order names, of this thread and what it starts; OSError where one can't be."""
    limit(order["limits"])
    outputs = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in order["output"]]
    if order.get("namespaces"):
        unshare()
    if user := order.get("user"):
        become(user)
    if order.get("sockets"):
        refuse_sockets()
    if order.get("files", True):
        restrict(order["read"], order["write"])
    for number, file in enumerate(outputs, 1):
        os.dup2(file, number)
        os.close(file)


def _control(*arguments: object) -> None:
    """prctl()."""
    libc = ctypes.CDLL(None, use_errno=True)
    padding = [0] * (5 - len(arguments))
    _checked(libc.prctl(*arguments, *padding))


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
        apply(order)
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, programs inherit it
            signal.signal(ignored, signal.SIG_DFL)
        os.execv(program[0], program)
    except OSError as error:
        sys.stderr.write(f"can't confine {program[0]}: {error}\n")
        sys.exit(CANNOT)


if __name__ == "__main__":
    main()
