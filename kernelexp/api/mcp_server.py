"""Commands as tools of the Model Context Protocol, for programs that write kernels."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from kernelexp import __version__, api
from kernelexp.model.errors import EnvironmentFault, KernelexpError, UsageError
from kernelexp.project import Project
from kernelexp.system.disk import decode
from kernelexp.system.process import interrupts

_ABOUT = (
    "Experiments on CUDA kernel variants. list names kernels, axes and experiments; a variant is "
    "written KERNEL@ARCH:axis=value,... Every tool answers with the JSON of the command of its "
    "name; `kernelexp show --schema NAME` prints its schema."
)


def serve(start: Path) -> None:
    """Answers on standard input and output until that is closed; about the project at `start`."""
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise EnvironmentFault(
            "kernelexp serve --mcp needs the MCP SDK: pip install 'kernelexp[mcp]'."
        ) from None

    api.load(start)  # a fault of the project's is said before anybody asks
    server = MCPServer("kernelexp", version=__version__, instructions=_ABOUT, log_level="WARNING")
    for function in _tools(lambda: api.load(start)):
        server.add_tool(function, structured_output=False)
    interrupts.end_at_once()
    _limit_messages()
    server.run("stdio")


def _limit_messages() -> None:
    """Puts itself before standard input: a message of any length would be parsed whole."""
    begin, end = os.pipe()
    source = os.fdopen(os.dup(0), "rb")
    os.dup2(begin, 0)
    os.close(begin)
    answers = os.dup(1)  # the server lets what is printed by mistake go to standard error
    threading.Thread(target=_pass_on, args=(source, end, answers), daemon=True).start()


def _pass_on(source: BinaryIO, end: int, answers: int) -> None:
    with os.fdopen(end, "wb", buffering=0) as sink:
        while line := source.readline(LONGEST_BYTES + 1):
            if len(line) <= LONGEST_BYTES:
                if why := _unreadable(line):  # the server would never answer it
                    os.write(answers, _refusal(-32700, f"the message is not JSON: {why}."))
                else:
                    sink.write(line)
                continue
            while line and not line.endswith(b"\n"):
                line = source.readline(LONGEST_BYTES)
            words = f"the message has more than {LONGEST_BYTES:,} bytes: none was read."
            os.write(answers, _refusal(-32600, words))


LONGEST_BYTES = 12 << 20
"""Of a message: the source of a kernel and what goes with it."""
_LONGEST_NAME = 1000


def _unreadable(line: bytes) -> str:
    """Says why a line is no message, such as half a surrogate pair; empty where it may be one."""
    try:
        decode(line.strip() or b"null", Any)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return str(error)
    return ""


def _refusal(code: int, words: str) -> bytes:
    error = {"code": code, "message": words}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error}) + b"\n"


def _tools(project: Callable[[], Project]) -> tuple[Callable[..., str], ...]:
    """Each reads the project anew, since its files may have changed."""

    def list() -> str:
        """List the project's kernels with their axes, and its experiments with verdicts."""
        return _answer("list", lambda: api.list_project(project()))

    def show(name: str) -> str:
        """Show an experiment with its records, by its id; or one record, by its run's name."""
        if len(name) > _LONGEST_NAME:
            return _answer("record", lambda: _refuse_name(name))
        loaded = project()
        if name in loaded.experiments:
            return _answer("show", lambda: api.show(loaded, name))
        return _answer("record", lambda: api.record(loaded, name))

    def run(experiment: str, gpu: bool = True, record: bool = False) -> str:
        """Run an experiment: build, emulate, time where there is a GPU, judge; record if asked."""
        return _answer("run", lambda: api.run(project(), [experiment], gpu=gpu, keep=record))

    def emulate(variant: str, full: bool = False) -> str:
        """Execute a variant on the CPU: is it right, what does it count; full: at full size."""
        return _answer("emulate", lambda: api.emulate(project(), [variant], full=full))

    def model(variants: Sequence[str], size: str = "full") -> str:
        """Model times of variants against the first's: a cheap filter."""
        return _answer("modelled", lambda: api.model(project(), variants, size=size))

    def explain(experiment: str, candidate: int = 1) -> str:
        """Explain an experiment: differences, expectations, nearest limits of the chip."""
        return _answer("explain", lambda: api.explain(project(), experiment, candidate))

    def evaluate(variant: str, source: str, gpu: bool = True) -> str:
        """Evaluate a CUDA source instead of the variant's, treating it as hostile."""
        return _answer(
            "time", lambda: api.evaluate(project(), variant, source, gpu=gpu, hostile=True)
        )

    return list, show, run, emulate, model, explain, evaluate


def _refuse_name(name: str) -> None:
    raise UsageError(f"a name has at most {_LONGEST_NAME:,} characters, not {len(name):,}.")


def _answer(kind: str, work: Callable[[], Any]) -> str:
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        return api.encode(kind, work()).decode()
    except KernelexpError as error:
        raise ToolError(str(error)) from None
    except (ValueError, OSError) as error:  # a null byte, a name that no file system takes
        raise ToolError(f"this can't be answered: {type(error).__name__}: {error}.") from None
