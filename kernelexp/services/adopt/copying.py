"""A source with the headers beside it, copied into a kernel's folder and made to compile there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp.evidence.build import Diagnostic
from kernelexp.model.errors import BuildError, UsageError, join
from kernelexp.services.adopt import declarations
from kernelexp.services.adopt.declarations import Declaration
from kernelexp.system import toolchain

ROUNDS = 40
"""Compilations until no error is left; each missing #include takes one."""


class SourceCopy(msgspec.Struct, frozen=True, kw_only=True):
    """Files by their path from the folder that holds them all."""

    main: str
    texts: dict[str, str]
    origin: str
    """The path of the source as it was given."""
    top: Path = Path()
    """The folder that holds them all."""


def torch_flags(copy: SourceCopy) -> tuple[str, ...]:
    """Returns what PyTorch compiles an extension with; UsageError where it is not installed."""
    if toolchain.torch_headers() is None:
        raise UsageError(f"{copy.origin} needs PyTorch's headers: pip install torch.")
    # Of PyTorch's own headers some include Python.h.
    python = [f"-I{toolchain.PYTHON}"] * (toolchain.python_headers() / _PYTHON).is_file()
    return (f"-I{toolchain.TORCH}", f"-I{toolchain.TORCH}/torch/csrc/api/include", *python, *_TORCH)


_PYTHON = "Python.h"
_TORCH = (
    "-std=c++17",
    "--expt-relaxed-constexpr",
    *(f"-D__CUDA_NO_{item}__" for item in ("HALF_OPERATORS", "HALF_CONVERSIONS")),
    *(f"-D__CUDA_NO_{item}__" for item in ("HALF2_OPERATORS", "BFLOAT16_CONVERSIONS")),
)
"""As torch.utils.cpp_extension does."""


def includes_torch(copy: SourceCopy) -> bool:
    """Whether one of its files includes a header of PyTorch's."""
    return any(re.search(r"#\s*include\s*[<\"](?:c10|ATen|torch)/", x) for x in copy.texts.values())


class ForeignError(BuildError):
    """The first error of a copy that does not compile is in a header that is no part of it."""


class FlaglessError(BuildError):
    """A copy does not compile for want of a flag that the error itself names."""

    def __init__(self, message: str, flag: str) -> None:
        super().__init__(message)
        self.flag = flag


def with_headers(copy: SourceCopy, first: BuildError, second: BuildError) -> BuildError:
    """The error to show of a copy that compiles neither alone nor with PyTorch's headers: one in
    the source itself before one in those."""
    if isinstance(first, ForeignError):
        return second
    again = str(second).removeprefix(f"{copy.origin} does not compile: ")
    return BuildError(f"{first} With PyTorch's headers and flags it does not either: {again}")


Omitted: TypeAlias = tuple[str, Declaration]
"""A declaration that the copy leaves out, with its file."""


def read(source: Path, folders: Sequence[Path] = ()) -> SourceCopy:
    """The source and whatever it includes that is there: in quotes beside it, or in one of
    `folders` of the same repository, but for libraries of many files; UsageError if it can't be
    read."""
    repository = _repository(source.resolve())
    folders = [x for x in (y.resolve() for y in folders) if x.is_relative_to(repository)]
    texts: dict[Path, str] = {}
    waiting = [source.resolve()]
    while waiting:
        path = waiting.pop()
        if path in texts:
            continue
        try:
            # Of another encoding are comments, as a rule.
            texts[path] = path.read_text("utf-8", "replace")
        except OSError as error:
            raise UsageError(f"{path} can't be read: {error.strerror}.") from None
        waiting += _included(path, texts[path], folders)
        if len(texts) > MOST and folders:
            return read(source)
    top = Path(os.path.commonpath([path.parent for path in texts]))
    return SourceCopy(
        main=source.resolve().relative_to(top).as_posix(),
        texts={path.relative_to(top).as_posix(): text for path, text in texts.items()},
        origin=str(source),
        top=top,
    )


MOST = 64
"""Files that are copied of folders of headers."""


def _repository(source: Path) -> Path:
    """The one that has a source; without one, the folder above its own."""
    found = (folder for folder in source.parents if (folder / ".git").exists())
    return next(found, source.parent.parent if source.parent.parent.parents else source.parent)


def _included(path: Path, text: str, folders: Sequence[Path]) -> Iterator[Path]:
    for declaration in declarations.read(text):
        name = declaration.include.strip('<">')
        beside = [path.parent] if declaration.include.startswith('"') else []
        places = ((folder / name).resolve() for folder in (*beside, *folders))
        yield from islice(filter(Path.is_file, places), 1 if name else 0)


def folders_of(flags: Iterable[str], root: Path) -> list[Path]:
    """Those of -I, which are named from the project's folder."""
    return [root / flag.removeprefix("-I") for flag in flags if flag.startswith("-I")]


def moved(flags: Iterable[str], copy: SourceCopy, root: Path, into: str) -> tuple[str, ...]:
    """Flags whose folders of headers are those of the copy in the folder `into`, where they have
    files in it."""
    return tuple(_moved(flag, copy, root, into) for flag in flags)


def _moved(flag: str, copy: SourceCopy, root: Path, into: str) -> str:
    if not flag.startswith("-I"):
        return flag
    folder = (root / flag.removeprefix("-I")).resolve()
    if not folder.is_relative_to(copy.top):
        return flag
    within = folder.relative_to(copy.top).as_posix()
    has_some = within == "." or any(name.startswith(f"{within}/") for name in copy.texts)
    return f"-I{into}/{within}".removesuffix("/.") if has_some else flag


def kernels(copy: SourceCopy) -> list[Declaration]:
    """The kernels of all its files, those of the source itself first."""
    names = sorted(copy.texts, key=lambda name: name != copy.main)
    generator = (
        declaration for name in names for declaration in declarations.read(copy.texts[name])
    )
    return [declaration for declaration in generator if declaration.kernel]


def only(copy: SourceCopy, kernels: frozenset[str]) -> tuple[SourceCopy, list[Omitted]]:
    """Leaves out other kernels and what launches any."""
    left: list[Omitted] = []
    texts = {}
    for name, text in copy.texts.items():
        out = [
            declaration
            for declaration in declarations.read(text)
            if (declaration.kernel and declaration.kernel not in kernels)
            or (
                not declaration.is_for_device and "<<<" in text[declaration.first : declaration.end]
            )
        ]
        texts[name] = declarations.blank(text, out)
        left += ((name, declaration) for declaration in out)
    return msgspec.structs.replace(copy, texts=texts), left


def compile_copy(
    copy: SourceCopy, attempt: Callable[[Mapping[str, str]], tuple[Diagnostic, ...]]
) -> tuple[SourceCopy, list[Omitted]]:
    """The copy without the host code that does not compile.

    `attempt` compiles the texts and returns the errors in them, in files named as in the copy. A
    header with an error that the copy includes by -I becomes part of it. BuildError where an error
    is in device code, or in any other file.
    """
    left: list[Omitted] = []
    for _ in range(ROUNDS):
        errors = attempt(copy.texts)
        if not errors:
            return copy, left
        texts = dict(copy.texts)
        for name in dict.fromkeys(error.file for error in errors):
            lines = {error.line: error for error in reversed(errors) if error.file == name}
            if name not in texts:
                beside = _as_included(texts, name) or _stubs(lines.values())
                if not beside:  # others may be in host code, which is left out then
                    raise _refusal(copy, lines[min(lines)], left)
                texts |= beside  # where the compiler finds it first, and the next errors are in it
                continue
            if any(
                message.startswith(f"{header}: ")
                for header in _OPAQUE
                for message in (error.message for error in lines.values())
            ):
                texts |= _stubs(lines.values())
                continue
            out = [
                declaration
                for declaration in declarations.read(texts[name])
                if any(declaration.first_line <= line <= declaration.last_line for line in lines)
            ]
            if blocked := next(
                (declaration for declaration in out if declaration.is_for_device), None
            ):
                first = min(n for n in lines if blocked.first_line <= n <= blocked.last_line)
                raise _refusal(copy, lines[first], left)
            if not out:
                raise _refusal(copy, lines[min(lines)], left)
            texts[name] = declarations.blank(texts[name], out)
            left += ((name, declaration) for declaration in out)
        copy = msgspec.structs.replace(copy, texts=texts)
    raise BuildError(
        f"{copy.origin} still does not compile after {ROUNDS} tries to leave host code out."
    )


INTEGERS = "--pre-include=cstdint"
STUBS = "stubs"
"""A folder of the copy that the compiler looks through: empty headers."""
_ABSENT = re.compile(r"([\w./+-]+): No such file or directory")


def _stubs(errors: Iterable[Diagnostic]) -> dict[str, str]:
    """An empty header for each that a header elsewhere includes and nobody has, as those of a GPU
    build of PyTorch beside a CPU build."""
    generator = (_ABSENT.fullmatch(error.message) for error in errors)
    names = [match[1] for match in generator if match]
    # The compiler names one at a time, each after 20 s of PyTorch's headers; they come together.
    names += [name for name in _OPAQUE if not _OPAQUE.keys().isdisjoint(names)]
    return {f"{STUBS}/{name}": _stub(name) for name in names if ".." not in name}


def _stub(name: str) -> str:
    types = "".join(f"typedef void* {kind};\n" for kind in _OPAQUE.get(name, ()))
    # NVIDIA's include these, and kernels take their types from there.
    halves = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n" if types else ""
    return f"#pragma once\n{halves}{types}"


_OPAQUE = {
    "cublas_v2.h": ("cublasHandle_t", "cublasStatus_t"),
    "cublasLt.h": ("cublasLtHandle_t",),
    "cusparse.h": ("cusparseHandle_t", "cusparseStatus_t"),
    "cusolverDn.h": ("cusolverDnHandle_t", "cusolverStatus_t"),
}
"""Types of libraries that PyTorch's headers name and no kernel uses."""


def _as_included(texts: Mapping[str, str], path: str) -> dict[str, str]:
    """A header that was found through -I, where an #include in quotes looks first: beside the file
    that has the #include. Nothing where none is for it."""
    for name, text in texts.items():
        for declaration in declarations.read(text):
            included = declaration.include.strip('"')
            if declaration.include.startswith('"') and path.endswith(f"/{included}"):
                place = os.path.normpath(os.path.join(os.path.dirname(name), included))
                try:
                    return (
                        {}
                        if place.startswith("..")
                        else {place: Path(path).read_text("utf-8", "replace")}
                    )
                except OSError:
                    return {}
    return {}


def _refusal(copy: SourceCopy, error: Diagnostic, left: list[Omitted]) -> BuildError:
    where = f"{error.file}:{error.line}" if error.file else "ptxas"
    is_foreign = error.file and error.file not in copy.texts
    if is_foreign and f"{STUBS}/{_PYTHON}" in copy.texts:
        return ForeignError(
            f"{where} needs {_PYTHON}, which was not found: install Python's development headers, "
            "or name their folder with --flag=-I/folder."
        )
    undeclared = _INTEGER.search(error.message)
    wanted = next(iter(_FLAG.findall(error.message)), "")
    flag = wanted or (INTEGERS if undeclared else "")
    includes = dict.fromkeys(item.include for _, item in left if item.include and not wanted)
    # Of host libraries no kernel uses more than the names of types.
    missing = [item for item in includes if item.strip('<">') not in _OPAQUE]
    absent = f" (these headers were not found: {join(missing)})" if missing else ""
    if match := _REMOVED.search(error.message):
        advice = (
            f"{match[1]} was removed from CUDA: write {match[1]}_sync(0xffffffff, ...) instead."
        )
    elif is_foreign and error.file.endswith(".cu") and (match := _UNDEFINED.search(error.message)):
        advice = (
            f"--entry names {match[1]}, which the source does not have: write its value there, or "
            f"give it several with --axis {match[1]}=2,3."
        )
    elif wanted:
        advice = f"try --flag={wanted}."
    elif folder := next(filter(None, (_nearby(copy, item) for item in missing)), ""):
        advice = f"try --flag=-I{folder}."
    elif undeclared:
        advice = f"{undeclared[1]} is of a header that was not included: try --flag={INTEGERS}."
    elif (match := _UNDEFINED.search(error.message)) and _is_in_pragma(copy, error, match[1]):
        advice = (
            f"macros are not replaced in a #pragma: write the value of {match[1]} there, or make "
            f"it a constant, as in constexpr int {match[1]} = ...;"
        )
    elif not missing and (match := _UNDEFINED.search(error.message)):
        advice = (
            f"{match[1]} is declared by no header that it includes: adopt the file that includes "
            "this one, or name a macro with --flag=-DNAME=VALUE, a folder with --flag=-I/folder, a "
            "header with --flag=--pre-include=FILE."
        )
    else:
        advice = (
            "name folders of headers with --flag=-I/folder and macros with --flag=-DNAME=VALUE, "
            "or copy the kernel to a file of its own."
        )
    what = error.message.rstrip(".")
    words = f"{copy.origin} does not compile: {where}: {what}{absent}: {advice}"
    if is_foreign:
        return ForeignError(words)
    return FlaglessError(words, flag) if flag else BuildError(words)


def _is_in_pragma(copy: SourceCopy, error: Diagnostic, name: str) -> bool:
    """Whether the line of an undefined name is a #pragma; the compiler names it or the next."""
    lines = copy.texts.get(error.file, "").splitlines()[max(error.line - 2, 0) : error.line]
    return any(re.match(rf"\s*#\s*pragma\b.*\b{name}\b", line) for line in lines)


_REMOVED = re.compile(r'identifier "(__(?:shfl(?:_up|_down|_xor)?|ballot|any|all))" is undefined')
_FLAG = re.compile(r"The experimental flag '(--[\w-]+)' can be used")
_UNDEFINED = re.compile(r'identifier "(\w+)" is undefined')
_INTEGER = re.compile(r'identifier "(u?int(?:8|16|32|64)_t)" is undefined')
LOOKED_THROUGH = 20_000
"""Files of the source's repository among which a header is looked for."""


def _nearby(copy: SourceCopy, include: str) -> str:
    """The folder from which an #include would find its header, in the repository of the source."""
    wanted = include.strip('<">')
    source = Path(copy.origin).resolve()
    above = (folder for folder in source.parents if (folder / ".git").exists())
    top = next(above, source.parents[2] if len(source.parents) > 4 else source.parent)
    inside = (Path(folder) / name for folder, _, names in os.walk(top) for name in names)
    files = islice(inside, LOOKED_THROUGH)
    generator = (path for path in files if path.as_posix().endswith(f"/{wanted}"))
    nearest = min(
        generator, key=lambda path: len(os.path.relpath(path, source.parent)), default=None
    )
    return str(nearest).removesuffix(f"/{wanted}") if nearest else ""
