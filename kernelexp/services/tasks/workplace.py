"""The folders of a problem and its solution, and the processes that run in them."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.evidence import hostcompiler
from kernelexp.evidence.hostcompiler import HostCompiler
from kernelexp.evidence.programs import compiling, library
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.services import execution
from kernelexp.services.execution import ExecRequest, Executed
from kernelexp.services.tasks import extensions, jail
from kernelexp.services.tasks.assessment import Confinement
from kernelexp.services.tasks.extensions import HEADERS
from kernelexp.services.tasks.problem_process import ROUNDS, ProblemReport
from kernelexp.services.tasks.solution_process import REPORT
from kernelexp.services.tasks.task import SolutionReport, Task
from kernelexp.system.disk import decode
from kernelexp.system.process import forkserver, processes
from kernelexp.system.toolchain import Toolchain
from warpsim.runtime.capturing import CapturedLaunch
from warpsim.runtime.triton import SITE
from warpsim.schedule import Schedule

_MEMORY_SOURCE = HEADERS / "allocator.cpp"
_MEMORY = "torch's memory"
_LIBRARY_FLAGS = ("-std=c++20", "-O1", "-fPIC", "-shared", "-w")


def torch_memory(root: Path, runtime: Path) -> Path:
    """The library that puts torch's memory where emulated kernels reach it, made once per user.

    EnvironmentFault where this machine can't make it.
    """
    compiler = hostcompiler.find(_MEMORY, _LIBRARY_FLAGS)
    key = hostcompiler.digest((_MEMORY_SOURCE,), version("torch"), runtime.name)
    name = f"torch-memory-{key}.so"
    # A process that is confined to reading this file may not read another one that takes its place.
    return hostcompiler.library(
        root, name, _MEMORY, lambda folder: _make_memory(compiler, runtime, folder / name)
    )


def _make_memory(compiler: HostCompiler, runtime: Path, path: Path) -> Path:
    torch = _torch()
    include = (str(_MEMORY_SOURCE), f"-I{torch / 'include'}", *library.headers())
    link = (f"-L{torch / 'lib'}", "-lc10", f"-L{runtime}", "-lcudart")
    compiler.run(*include, *link, "-o", str(path))
    return path


def _torch() -> Path:
    import importlib.util

    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise EnvironmentFault("torch was not found: install kernelexp with its dependencies.")
    return Path(spec.origin).parent


INSTRUCTIONS = 200_000_000
"""Of a launch, in warp instructions."""
ARCH = "sm_90a"


class Workplace:
    """Three folders: the problem's own, what the solution is given, and what it answers."""

    def __init__(
        self, task: Task, tools: Toolchain, root: Path, place: Path, device: str, limit_s: float
    ) -> None:
        self._task, self._tools, self._root = task, tools, root
        self._device, self._limit_s = device, limit_s
        self.own, self.given, self.answers = (
            place / name for name in ("problem", "given", "answers")
        )
        for folder in (self.own, self.given, self.answers):
            folder.mkdir()
        (self.answers / "built").mkdir()
        self.own.chmod(0o700)
        place.chmod(0o711)  # a solution's user passes through
        self._solutions_user: int | None = None
        self._write()

    def _write(self) -> None:
        encoded = msgspec.json.encode(self._task)
        (self.own / "task.json").write_bytes(encoded)
        # The reference stays here.
        (self.given / "task.json").write_bytes(
            msgspec.json.encode(msgspec.structs.replace(self._task, files={}))
        )
        seeds = [secrets.randbelow(1 << 31) for _ in range(len(self._task.cases) * ROUNDS)]
        (self.own / "seeds.json").write_text(json.dumps(seeds))
        for folder, files in (
            (self.own, self._task.files),
            (self.given, self._task.solution.files),
        ):
            for name, text in files.items():
                path = (folder / name).resolve()
                if not path.is_relative_to(folder.resolve()):
                    raise UsageError(f"the file name {name!r} leads out of its folder.")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def problem(self, stage: str, other: Path) -> ProblemReport:
        done = processes.run_forked(
            "kernelexp.services.tasks.problem_process",
            stdin=json.dumps([stage, str(self.own), str(other)]),
            timeout_s=self._limit_s,
        )
        result = self.own / f"{stage}.msgpack"
        if done.returncode != 0 or not result.is_file():
            last = done.stderr.strip().splitlines()[-1:] or ["it was killed"]
            raise EnvironmentFault(f"{self._task.name}: its reference can't be run: {last[0]}.")
        return msgspec.msgpack.decode(result.read_bytes(), type=ProblemReport)

    def solution(self, stage: str, schedule: Schedule) -> Executed:
        """Runs it with new answers."""
        request = msgspec.structs.replace(self._request(stage), schedule=schedule)
        return execution.execute(request, self._tools, self._root)

    def launches(self, most: int) -> Sequence[CapturedLaunch]:
        """Returns the launches of a call, none of it executed; EnvironmentFault where it raises."""
        _, launches = execution.launches(self._request("launch"), most, self._tools, self._root)
        if (report := self.report()).error:
            raise EnvironmentFault(report.sentence)
        return launches

    def _request(self, stage: str) -> ExecRequest:
        for old in self.answers.iterdir():
            if old.name != "built":
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        runtime = library.folder(self._root)
        memory = torch_memory(self._root, runtime)
        argv = [sys.executable, "-P", "-m", "kernelexp.services.tasks.solution_process", stage]
        argv += [str(self.given), str(self.answers), str(memory)]
        output = [self.answers / name for name in ("printed", "errors")]
        limit = self._limit_s
        confinement = jail.strongest("emulated")
        if confinement.measures:
            read = [self.given, runtime, memory, self._toolkit()]
            argv = jail.command(argv, jail.order(confinement, read, self.answers, output, limit))
        return ExecRequest(
            argv=tuple(argv),
            device=self._device,
            limit=INSTRUCTIONS,
            timeout_s=limit,
            environment=self._environment(runtime),
        )

    def _environment(self, runtime: Path) -> dict[str, str]:
        """Returns the environment of the solution's process: compilers, and places to write to."""
        flags = [*compiling.link_flags(runtime, ARCH), "-std=c++20", "-Xcompiler=-fPIC", "-w"]
        result = {"nvcc": [self._tools.nvcc, *flags], "folder": str(self.answers / "built")}
        return {
            "PYTHONPATH": f"{SITE}{os.pathsep}{jail.packages(self.given)}",
            "TRITON_CACHE_DIR": str(self.answers),
            extensions.VARIABLE: json.dumps(result),
            **dict.fromkeys(forkserver.SECRET, ""),
            "TMPDIR": str(self.answers),
            "HOME": str(self.answers),
            "CUDA_VISIBLE_DEVICES": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def around(self, device: str, arch: str) -> tuple[dict[str, Any], dict[str, str]]:
        """Returns the confinement of the solution's process that is timed, if any, and its
        environment."""
        flags = [f"-arch={arch}", "-std=c++20", "-Xcompiler=-fPIC", "-w", "-cudart=shared"]
        built = self.answers / "built"
        result = {"nvcc": [self._tools.nvcc, *flags], "folder": str(built), "gpu": True}
        environment = {
            extensions.VARIABLE: json.dumps(result),
            "TORCH_EXTENSIONS_DIR": str(built),
            "TORCH_CUDA_ARCH_LIST": re.sub(r"^sm_(\d+)(\d)", r"\1.\2", arch),
            "CUDA_HOME": str(self._toolkit()),
            **dict.fromkeys(forkserver.SECRET, ""),
            "TMPDIR": str(self.answers),
            "HOME": str(self.answers),
        }
        confinement = jail.strongest("timed" if device == "cuda" else "emulated")
        if not confinement.measures:
            return {}, environment
        output = [self.answers / name for name in ("printed", "errors")]
        read = [self.given, self._toolkit()]
        limit = 10 * self._limit_s
        return jail.order(
            confinement, read, self.answers, output, limit, self._user(confinement)
        ), environment

    def _user(self, confinement: Confinement) -> int:
        """Returns the user of all processes of the solution here, which may read what it is given,
        and own what it answers."""
        if self._solutions_user is None:
            self._solutions_user = jail.new_user(confinement)
            jail.hand(self.answers, self._solutions_user)
        return self._solutions_user

    def _toolkit(self) -> Path:
        """The compiler's folder."""
        return Path(self._tools.nvcc).resolve().parent.parent

    def report(self) -> SolutionReport:
        """Returns the report of the solution's process on its end; its last words where it left
        none, or none that makes sense."""
        try:
            return decode((self.answers / REPORT).read_bytes(), SolutionReport)
        except (OSError, msgspec.DecodeError):
            errors = self.answers / "errors"
            words = errors.read_text(errors="replace").strip() if errors.is_file() else ""
            last = words.splitlines()[-1][:300] if words else "its process ended without a word"
            return SolutionReport(error="raised", sentence=last)
