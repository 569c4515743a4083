"""A source of a public repository: what of it is compiled, and how its kernels are launched."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import numpy as np
from conformance.case import Array, Case
from harness import compile_cu

from kernelexp.services.adopt import declarations
from kernelexp.services.adopt.declarations import Declaration
from warpsim.launch import Argument, Dim3, Launch, Pointer, Scalar

TARGET = "sm_90a"
ENVIRONMENT = "KX_REPOSITORIES"
"""Names a folder of checkouts, OWNER/NAME each; without it, programs of others are skipped."""
_TYPES = re.compile(r"\b(struct|class|union|enum|typedef|using|namespace)\b")
_VALUE = re.compile(r"[^(]*\bconst(expr)?\b[^(]*=")
_NOT_OF_THE_TOOLKIT = re.compile(r"cublas|helper_|torch|omp\.h|logging|gflags|sys/time|common/")


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One source and the launches of its kernels."""

    name: str
    repository: str
    commit: str
    file: str
    runs: Callable[[], Iterable[Case]]
    kernels: tuple[str, ...] = ()
    """Instances of its templates."""
    include: tuple[str, ...] = ()
    """Folders of the repository."""
    before: str = ""
    """What the source expects to be included or defined."""
    options: tuple[str, ...] = ()
    """Of nvcc."""


def checkout(program: Program) -> Path | None:
    """The folder of the program's repository, if there is one."""
    folder = os.environ.get(ENVIRONMENT, "")
    result = Path(folder) / program.repository
    return result if folder and (result / program.file).is_file() else None


def compile_program(program: Program, root: Path, scratch: Path) -> str:
    """The PTX of a program's device code.

    root: the checkout. scratch: an empty folder, for copies without host code.
    """
    folders = [root / item for item in program.include]
    for path in _reached(root / program.file, folders):
        copy = scratch / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(_device_code(path, folders))
    main = scratch / program.file
    instances = "".join(
        f"const void *kx_kernel_{i} = reinterpret_cast<const void *>(&{kernel});\n"
        for i, kernel in enumerate(program.kernels)
    )
    source = main.with_name(f"kx_{main.stem}.cu")
    source.write_text(f'{program.before}\n#include "{main.name}"\n{instances}')
    include = [scratch / item for item in program.include]
    return compile_cu(source, target=TARGET, include=include, options=program.options)


def _reached(main: Path, folders: list[Path]) -> set[Path]:
    """A source and what it includes of its repository."""
    result: set[Path] = set()
    waiting = [main]
    while waiting:
        path = waiting.pop()
        if path not in result:
            result.add(path)
            text = path.read_text("utf-8", "replace")
            waiting += [
                at for item in declarations.read(text) if (at := _local(item, path, folders))
            ]
    return result


def _local(each: Declaration, path: Path, folders: list[Path]) -> Path | None:
    name = each.include.strip('<>"')
    places = [(folder / name).resolve() for folder in (path.parent, *folders) if name]
    return next((place for place in places if place.is_file()), None)


def _device_code(path: Path, folders: list[Path]) -> str:
    """A file without host functions, and without headers that the toolkit does not have."""
    text = path.read_text("utf-8", "replace")
    out = [
        item
        for item in declarations.read(text)
        if not (_local(item, path, folders) or _is_wanted(item, text))
    ]
    return declarations.blank(text, out)


def _is_wanted(each: Declaration, text: str) -> bool:
    if each.include:
        return not _NOT_OF_THE_TOOLKIT.search(each.include)
    head = text[each.first : each.end].partition("{")[0]
    return each.is_for_device or bool(_TYPES.search(head) or _VALUE.match(head))


# ---- launches ------------------------------------------------------------------------------------


def i32(value: int) -> Scalar:
    return Scalar(type="s32", value=value)


def u32(value: int) -> Scalar:
    return Scalar(type="u32", value=value)


def u64(value: int) -> Scalar:
    return Scalar(type="u64", value=value)


def f32(value: float) -> Scalar:
    return Scalar(type="f32", value=value)


def launched(
    name: str,
    entry: str,
    grid: Dim3,
    block: Dim3,
    arrays: dict[str, Array],
    *arguments: str | Argument,
    smem: int = 0,
) -> Case:
    """A launch whose arguments are names of arrays and scalars; bits of the arrays as they are."""
    launch = Launch(
        entry=entry,
        grid=grid,
        block=block,
        dynamic_smem_bytes=smem,
        arguments=tuple(Pointer(array=x) if isinstance(x, str) else x for x in arguments),
    )
    return Case(name=name, launch=launch, arrays=arrays, outputs=())


def floats(count: int, seed: int = 0) -> Array:
    """Multiples of 1/8 between -2 and 2, as the bits of f32."""
    values = np.random.default_rng(seed).integers(-16, 17, count) / 8
    return values.astype(np.float32).view(np.uint32)


def halves(count: int, seed: int = 0) -> Array:
    values = np.random.default_rng(seed).integers(-16, 17, count) / 8
    return values.astype(np.float16).view(np.uint16)


def bfloats(count: int, seed: int = 0) -> Array:
    return (floats(count, seed) >> 16).astype(np.uint16)


def integers(count: int, below: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, below, count, dtype=np.uint32)


def zeros(count: int) -> Array:
    return np.zeros(count, np.uint32)
