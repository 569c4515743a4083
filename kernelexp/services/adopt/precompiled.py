"""Brings a kernel into a project that exists as PTX or as a cubin only.

Neither has names, and types only as far as a mangled name has them: a signature, as C++ would
declare the kernel, says both. In Triton's cache a kernel has a folder with NAME.json, which holds
the number of warps and the bytes of shared memory, and NAME.ttir, whose function has the parameters
with their names and types.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence import build
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.model.arm import sound
from kernelexp.model.errors import BuildError, UsageError, join, suggest
from kernelexp.model.experiment import Variant, form_of
from kernelexp.project import Project
from kernelexp.services.adopt import adopted, declarations, jobs
from kernelexp.services.adopt import entry as reading
from kernelexp.services.adopt.adopted import Compiled
from kernelexp.services.adopt.entry import KernelEntry, KernelParameter
from kernelexp.services.adopt.notation import WantedLaunch
from kernelexp.system.disk import decode
from kernelexp.system.toolchain import Toolchain
from warpsim.launch import plain_name

_FUNCTION = re.compile(r"tt\.func public @\w+\((.*?)\)\s*(?:->|attributes|\{)", re.S)
_PARAMETER = re.compile(r"%(\w+):\s*(?:!tt\.ptr<(\w+)[^>]*>|([fi]\d+|bf16))")
_TYPES = {
    **{"f16": "__half", "bf16": "__nv_bfloat16", "f32": "float", "f64": "double"},
    **{"f8E4M3FN": "__nv_fp8_e4m3", "f8E5M2": "__nv_fp8_e5m2"},
    **{"i1": "bool", "i8": "signed char", "i16": "short", "i32": "int", "i64": "long"},
}


class LaunchNotes(msgspec.Struct, frozen=True, kw_only=True):
    """The launch of a kernel, as far as files next to it say."""

    threads: int = 0
    dynamic_smem_bytes: int = 0
    parameters: tuple[str, ...] = ()
    """As C++ would declare them."""


class _Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """NAME.json."""

    num_warps: int = 0
    shared: int = 0


def read_notes(path: Path) -> LaunchNotes:
    """Reads the notes beside a file; empty where Triton did not make it."""
    try:
        metadata = decode(path.with_suffix(".json").read_bytes(), _Metadata)
        function = _FUNCTION.search(path.with_suffix(".ttir").read_text("utf-8"))
    except (OSError, UnicodeDecodeError, msgspec.DecodeError):
        return LaunchNotes()
    return LaunchNotes(
        threads=32 * metadata.num_warps,
        dynamic_smem_bytes=metadata.shared,
        parameters=tuple(_declare(*item) for item in _PARAMETER.findall(function[1]))
        if function
        else (),
    )


def _declare(name: str, element: str, scalar: str) -> str:
    kind = element or scalar
    return f"{_TYPES.get(kind, kind)}{'*' if element else ''} {name}"


SUFFIXES = (".ptx", ".cubin")
_TARGET = re.compile(r"^\s*\.target\s+(sm_\w+)", re.M)


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file that another compiler left."""

    path: Path
    content: bytes
    symbols: tuple[str, ...]
    """Of its entries."""
    target: str
    """The architecture that it says it is for; empty where it does not."""


def read(path: Path) -> File:
    """A file by its suffix; UsageError where it is not what that says, or has no entry."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from None
    if form_of(path.name) == "ptx":
        text = content.decode("utf-8", "replace")
        symbols, target = tuple(jobs.symbols(text)), _TARGET.search(text)
        file = File(path=path, content=content, symbols=symbols, target=target[1] if target else "")
    else:
        file = _read_cubin(path, content)
    if not file.symbols:
        raise UsageError(f"{path} has no kernel.")
    return file


def _read_cubin(path: Path, content: bytes) -> File:
    from warpsim.front.sass import cubin
    from warpsim.front.sass.faults import CubinError

    try:
        symbols, sm = cubin.entries(content), cubin.architecture(content)
    except CubinError as fault:
        raise UsageError(f"{path}: {fault}") from None
    return File(path=path, content=content, symbols=symbols, target=f"sm_{sm}")


def choose(file: File, text: str) -> str:
    """The symbol of the entry `text`, or of the only one; UsageError lists those that there are."""
    named = [symbol for symbol in file.symbols if text in ("", symbol, plain_name(symbol))]
    if len(named) == 1:
        return named[0]
    names = list(dict.fromkeys(map(plain_name, file.symbols)))
    known = names if len(names) == len(file.symbols) else list(file.symbols)
    if not named:
        raise UsageError(f"{file.path} has no kernel {text!r}{suggest(text, known)}.")
    raise UsageError(f"{file.path} has several kernels: say which with --entry: {join(known)}.")


def adopt(
    project: Project,
    file: File,
    wanted: Sequence[WantedLaunch],
    kernel: str,
    arch: str,
    signature: str,
    tools: Toolchain,
    flags: Sequence[str] = (),
    option: str = "--kernel",
) -> Compiled:
    """Copies the file into the kernel's folder and builds it.

    option: gives another name of the kernel.
    BuildError where ptxas refuses it, UsageError for a signature that it can't have.
    """
    arch = _arch(file, arch)
    symbols = [choose(file, launch.entry) for launch in wanted]
    plain = list(map(plain_name, symbols))
    name = adopted.name_kernel(project, kernel or plain[0], option)
    written = _parse(signature)
    beside = read_notes(file.path)
    source = f"{name}{file.path.suffix}"
    folder = project.root / "variants" / name
    variant = Variant(
        kernel=name, arch=arch, source=f"variants/{name}/{source}", axes={}, flags=tuple(flags)
    )
    with adopted.whole(folder):
        folder.mkdir(parents=True)
        (folder / source).write_bytes(file.content)
        (built,) = build.build(project.root, [variant], tools)
        if (arm := sound(built)).refused:
            raise _refusal(file.path, arm.build_log)
        entries = [_entry(file, symbol, written or beside.parameters) for symbol in symbols]
    if beside.threads and entries[0].block is None:
        entries = [msgspec.structs.replace(x, block=(beside.threads, 1, 1)) for x in entries]
    return Compiled(
        kernel=name,
        title=f"{', '.join(dict.fromkeys(plain))} of {file.path.name}",
        source=source,
        origin=str(file.path),
        arch=arch,
        folder=folder,
        entries=tuple(map(_called, entries, plain, wanted)),
        dynamic_smem_bytes=beside.dynamic_smem_bytes,
    )


def _called(entry: KernelEntry, name: str, wanted: WantedLaunch) -> KernelEntry:
    return jobs.called(msgspec.structs.replace(entry, name=name), wanted.arguments)


def _refusal(path: Path, log: str) -> BuildError:
    error = build.first_error(log)
    words = error.message if error else log
    if "Unsupported .version" in words:
        words += " Name a newer compiler with --nvcc, or bring in the .cubin that belongs to it."
    return BuildError(f"{path}: {words}")


def _arch(file: File, wanted: str) -> str:
    """The architecture of the target: what the file says, with the suffix that has a card."""
    digits = re.sub(r"\D", "", file.target)
    named = [
        architecture for architecture in ARCHITECTURES if re.sub(r"\D", "", architecture) == digits
    ]
    arch = wanted or next(iter(named), "")
    if arch not in ARCHITECTURES:
        what = f"there is no architecture {wanted!r}" if wanted else f"it is for {file.target}"
        raise UsageError(f"{file.path}: {what}{suggest(arch or file.target, ARCHITECTURES)}.")
    return arch


def _parse(signature: str) -> tuple[str, ...]:
    """The parameters of `const float* x, int n`."""
    if not signature:
        return ()
    inside = signature.partition("(")[2].rpartition(")")[0] if "(" in signature else signature
    read = declarations.read(f"__global__ void kernel({inside});")
    if len(read) != 1 or not read[0].kernel:
        raise UsageError(f"--signature {signature!r} should be as in 'const float* x, int n'.")
    return read[0].parameters


def _entry(file: File, symbol: str, written: Sequence[str]) -> KernelEntry:
    if ptx := _ptx(file, symbol):
        entry = reading.read(ptx, written, symbol)
    else:
        entry = _entry_of_cubin(file.content, symbol, written)
    have = len(entry.parameters)
    if len(written) > have:
        raise UsageError(f"--signature names {len(written)} parameters, and {symbol} has {have}.")
    return entry


def _ptx(file: File, symbol: str) -> str:
    """Returns the kernel's PTX; for a cubin, that which it was made from, if that lies beside
    it."""
    if form_of(file.path.name) == "ptx":
        return file.content.decode("utf-8", "replace")
    try:
        beside = file.path.with_suffix(".ptx").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return beside if re.search(rf"\.entry\s+{re.escape(symbol)}\b", beside) else ""


def _entry_of_cubin(content: bytes, symbol: str, written: Sequence[str]) -> KernelEntry:
    """Reads an entry without its SASS: const says which arrays are read, and what is not named is
    taken for pointers that may be null."""
    from warpsim.front.sass import cubin

    cubin_entry = cubin.read(content, symbol)
    types, names = reading.types_and_names(symbol, written)
    parameters = [
        KernelParameter(
            name=names[place] if place < len(names) else f"p{place}",
            type=reading.bare(types[place]) if place < len(types) else "",
            size=parameter.size,
            align=min(parameter.size, 8),
            is_pointer=place < len(types) and types[place].rstrip().endswith("*"),
            read=place < len(types) and "*" in types[place] and "const" in types[place],
            written=place < len(types) and "*" in types[place] and "const" not in types[place],
            ignored=bool(types) and place >= len(types),
        )
        for place, parameter in enumerate(cubin_entry.parameters)
    ]
    return KernelEntry(
        symbol=symbol,
        signature=reading.demangle(symbol),
        parameters=tuple(parameters),
        threads=cubin_entry.max_threads or 0,
        block=cubin_entry.block,
        dynamic_smem=False,  # which it does not say
    )
