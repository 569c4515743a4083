"""Building and emulating a source that nobody vouches for: what compilers and workers may use."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.model.errors import EnvironmentFault
from kernelexp.system import toolchain
from kernelexp.system.process import confine, processes
from kernelexp.system.process.processes import Completed
from kernelexp.system.toolchain import Toolchain

MEMORY_BYTES = 8 << 30
"""Of each program, and of an emulation beyond what its libraries take."""
CANNOT = confine.CANNOT
FILE_BYTES = 256 << 20
FILES = 1024
LONGEST_LOG = 1 << 16
"""Characters of what a compiler said that are kept."""
PROCESSES = 4096
"""Of the user, all of them: far above what a machine has, far below what hurts it."""
# What programs are linked with, and what their loader reads.
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache")
_DEVICES = ("/dev/null",)


def tools(tools: Toolchain, readable: Path) -> Toolchain:
    """The toolchain confined to the folder `readable`; EnvironmentFault where this machine
    can't confine it."""
    if not confine.version():
        raise EnvironmentFault(
            "a hostile source needs a kernel with Landlock (Linux 5.13 or later, "
            "CONFIG_SECURITY_LANDLOCK), which this machine lacks: evaluate it in a container "
            "without --hostile."
        )
    return msgspec.structs.replace(tools, confined_to=os.path.realpath(readable))


def run(
    argv: Sequence[str],
    tools: Toolchain,
    folder: Path,
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
) -> Completed:
    """Runs a command that can read the project, the compiler and the system's programs only, and
    write to `folder` only; as processes.run().

    What it prints goes to files, so that it has their limit.
    """
    printed = [folder / name for name in ("printed", "errors")]
    try:
        whole = _wrap(argv, tools, folder, printed, timeout_s)
        done = processes.run(whole, cwd=cwd, env=env, timeout_s=timeout_s)
        output, errors = (path.read_bytes() if path.exists() else b"" for path in printed)
    finally:
        for path in printed:
            path.unlink(missing_ok=True)
    words = done.stderr + errors.decode(errors="replace")
    return Completed(returncode=done.returncode, output=output, stderr=words)


def _wrap(
    argv: Sequence[str], tools: Toolchain, writable: Path, printed: Sequence[Path], cpu_s: float
) -> list[str]:
    named = [tools.nvcc, tools.ptxas, tools.cuobjdump, toolchain.host_compiler()]
    programs = [os.path.realpath(path) for program in named if (path := shutil.which(program))]
    order = {
        "read": [*_SYSTEM, tools.confined_to, str(toolchain.HEADERS.resolve()), *_homes(programs)],
        "write": [*_DEVICES, os.path.realpath(writable)],
        "output": [os.path.realpath(path) for path in printed],
        "limits": {
            "memory_bytes": MEMORY_BYTES,
            "cpu_s": math.ceil(cpu_s),
            "file_bytes": FILE_BYTES,
            "files": FILES,
            "processes": PROCESSES,
            "core_bytes": 0,
        },
    }
    return [sys.executable, "-I", "-S", confine.__file__, json.dumps(order), *argv]


def _homes(programs: Sequence[str]) -> list[str]:
    """The folders that the programs were installed in, with what they need besides themselves."""
    folders = {Path(program).parent for program in programs}
    installed = {folder.parent if folder.name == "bin" else folder for folder in folders}
    return sorted(str(folder) for folder in folders | (installed - {Path.home(), Path("/")}))
