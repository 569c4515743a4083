"""Meaning of a failed tool's output: the source is wrong, the compiler crashed, the machine failed.

Only an error that the compiler itself diagnosed says something of a variant. The forms are those of
nvcc 13.0 with gcc 12, from a process killed, a disk filled, a memory limited at each of the steps.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from kernelexp.system.process.processes import Completed

Cause: TypeAlias = Literal["source", "crash", "machine"]

_CRASHES = frozenset(
    {
        signal.SIGSEGV,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGILL,
        signal.SIGFPE,
        signal.SIGTRAP,
        signal.SIGSYS,
    }
)
_WORDS_OF_SIGNALS = {
    "Killed": signal.SIGKILL,
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
    "Illegal instruction": signal.SIGILL,
    "Terminated": signal.SIGTERM,
}
# gcc: "Killed signal terminated program cc1plus"; nvcc: "'gcc' died due to signal 9 (Kill signal)".
_GCC_SIGNAL = re.compile(rf"error: ({'|'.join(_WORDS_OF_SIGNALS)}) signal terminated program")
_NVCC_SIGNAL = re.compile(r"^\w+ error\s*: '[^'\n]+' died due to signal (\d+)", re.M)

_ERROR = r"(?:fatal error|catastrophic error|internal error|error)\s*(?:#[\w-]+)?\s*:\s*(.*)"
# cicc and cudafe++: x.cu(3): error: ...; gcc: x.cu:3:5: error: ...
_IN_FILE = re.compile(rf"^([^\s:(][^:(\n]*)(?:\((\d+)\)|:(\d+)(?::\d+)?):? {_ERROR}$", re.M)
# An -include that is missing has no line of a file.
_IN_ARGUMENTS = re.compile(r"^<command-line>: fatal error: (.*: No such file or directory)$", re.M)
# ptxas kernel.ptx, line 3; error   : ...; ptxas fatal   : ...
_BY_PTXAS = re.compile(
    r"^ptxas (?:[^,;\n]+, line \d+; )?(?:error|fatal)\s*:\s*+(?!Ptx assembly aborted)(.*)$", re.M
)
# ld: x.cpp:(.text+0x33): undefined reference to `f()'; nvlink error   : Undefined reference to ...
_BY_LINKER = re.compile(
    r"^(?:.*?: ?)?((?:undefined reference to|multiple definition of) .*)$"
    r"|^nvlink (?:error|fatal)\s*: (.*)$",
    re.M,
)
_OF_OPTIONS = re.compile(
    r"^nvcc (?:fatal|error)\s*:\s*((?:Unknown option|Unsupported gpu architecture|Redefinition of "
    r"argument|Value '.*' is not defined|Option |Argument |.*requires an argument).*)$",
    re.M,
)
_NOT_THE_SOURCE = re.compile(
    r"^(?:out of memory|Memory allocation failure|.*could not be opened$|when writing output to|"
    r"could not open (?:output|temporary)|#error -- unsupported|"
    r".*: (?:No space left on device|Disk quota exceeded|Permission denied|Too many open files|"
    r"Input/output error|Cannot allocate memory|Read-only file system)$)",
    re.I,
)
_INTERNAL = re.compile(r"\binternal (?:compiler )?error\b", re.I)


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """An error of the compiler in a file."""

    file: str
    """From the project's root; empty where the error is in no source, as ptxas's are."""
    line: int
    message: str


def find_cause(completed: Completed, words: str) -> Cause:
    """Classifies why a step did not do its work."""
    killed_by = completed.killed_by or _signal_in(words)
    if killed_by:
        return "crash" if killed_by in _CRASHES else "machine"
    if completed.returncode == 0:
        return "machine"  # a tool that says all is well and leaves nothing whole
    if first_error(words):
        return "source"
    return "crash" if _INTERNAL.search(words) else "machine"


def first_error(words: str) -> Diagnostic | None:
    """The first error that the compiler diagnosed in the source or in its own arguments."""
    if diagnostic := next(iter_errors(words), None):
        return diagnostic
    for pattern in (_BY_PTXAS, _IN_ARGUMENTS, _OF_OPTIONS):
        for match in pattern.finditer(words):
            if not (_NOT_THE_SOURCE.match(match[1]) or _INTERNAL.search(match[1])):
                return Diagnostic(file="", line=0, message=match[1].strip())
    if linker := _BY_LINKER.search(words):
        return Diagnostic(file="", line=0, message=(linker[1] or linker[2]).strip())
    return None


def iter_errors(words: str) -> Iterator[Diagnostic]:
    """The errors that the compiler diagnosed at a line of a file."""
    for match in _IN_FILE.finditer(words):
        file, line, other_line, message = match.groups()
        if not (_NOT_THE_SOURCE.match(message) or _INTERNAL.search(match[0])):
            rest = words[match.end() :]
            more = _candidates(rest) if message.rstrip().endswith(":") else _types(rest)
            words_of = f"{message.strip()}{more}"
            yield Diagnostic(file=file, line=int(line or other_line), message=words_of)


def _types(rest: str) -> str:
    """` (argument types are: (int, float))` from the line below an error, where it has them."""
    match = re.match(r"\n\s+((?:argument|operand) types are: .*)", rest)
    return f" ({match[1].strip()})" if match else ""


def _candidates(rest: str) -> str:
    """The indented lines below an error that ends in a colon: what the compiler could not choose
    among, up to the line of the source that it repeats."""
    result = []
    for line in rest.lstrip("\n").splitlines():
        text = line.strip()
        if not line.startswith(" ") or not text or text.startswith("^"):
            break
        result.append(text)
    listed = [text for text in result if "built-in operator" in text or "function " in text]
    return f" {'; '.join(dict.fromkeys(listed))}" if listed else ""


def quote(words: str) -> str:
    """The line that says most, for a sentence: the first error, else the last line."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = (line for line in lines if re.search(r"\b(?:error|fatal)\b|: cannot find ", line))
    return next(errors, lines[-1] if lines else "it said nothing")


def _signal_in(words: str) -> int:
    """The signal that ended a process below the one that was started, as its parent says."""
    if match := _GCC_SIGNAL.search(words):
        return _WORDS_OF_SIGNALS[match[1]]
    if match := _NVCC_SIGNAL.search(words):
        return int(match[1])
    return 0
