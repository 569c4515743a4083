"""A foreign kernel in its folder of the project: compiled, then finished or discarded."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast, get_args

import msgspec

from kernelexp.facts.arch import ARCHITECTURES
from kernelexp.model.errors import UsageError, suggest
from kernelexp.model.names import is_name
from kernelexp.project import Project, editing, layout
from kernelexp.services.adopt import draft
from kernelexp.services.adopt import entry as entries
from kernelexp.services.adopt.copying import Omitted
from kernelexp.services.adopt.draft import Answers, MapLayout
from kernelexp.services.adopt.entry import KernelEntry, three
from kernelexp.system import wholefile
from warpsim.dtypes import SCALARS, TORCH_NAMES, DType, own_name
from warpsim.launch import Dim3, Element, Swizzle


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that is to become a kernel, compiled in its place in the project."""

    kernel: str
    """The name that it has in the project."""
    name: str
    """The entry's own, as launch() names it."""
    title: str
    source: str
    """What a variant is built from, in the folder."""
    origin: str
    """The file that it came from, as it was given."""
    arch: str
    folder: Path
    entry: KernelEntry
    left: tuple[Omitted, ...] = ()
    """What the copy lacks of the source."""
    flags: tuple[str, ...] = ()
    """What its source needs beside those that a person has given."""
    dynamic_smem_bytes: int = 0
    """Of its launch, where the compiler that made it has written that down."""


def name_kernel(project: Project, wanted: str) -> str:
    """The name of a new kernel; UsageError where it can't be that."""
    if not is_name(wanted):
        raise UsageError(f"{wanted!r} can't be a kernel's name: give another with --kernel.")
    if wanted in project.kernels or (project.root / "variants" / wanted).exists():
        raise UsageError(
            f"there is a kernel {wanted} already: edit variants/{wanted}/problem.py and run "
            f"kernelexp emulate {wanted}, or give another name with --kernel."
        )
    return wanted


@contextmanager
def whole(folder: Path) -> Iterator[None]:
    """Makes the kernel's folder; whatever ends that early leaves none."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def finish(project: Project, compiled: Compiled, answers: Answers, flags: Sequence[str]) -> str:
    """Writes problem.py and the kernel's entry in experiments.yaml; the text of problem.py."""
    text = draft.problem(compiled.entry, compiled.name, compiled.origin, answers)
    card = ARCHITECTURES[compiled.arch].card
    every = tuple(dict.fromkeys((*flags, *compiled.flags)))
    entry = draft.kernel(compiled.title, compiled.source, compiled.arch, card, every, answers.axes)
    path = project.root / layout.FILE
    yaml = editing.insert(path.read_text("utf-8"), "kernels", {compiled.kernel: entry})
    write(compiled.folder, {"problem.py": text})
    wholefile.write(path.resolve(), yaml.encode())
    return text


def discard(compiled: Compiled) -> None:
    """Removes the folder of a kernel that was not finished."""
    shutil.rmtree(compiled.folder, ignore_errors=True)


THREADS_PER_CTA, THREADS_IN_Z = 1024, 64
"""Of all architectures."""


def parse_block(text: str) -> Dim3:
    """256 or 16,16 as three extents; UsageError where it is none."""
    if not re.fullmatch(r"[1-9][0-9]*(,[1-9][0-9]*){0,2}", text.replace(" ", "")):
        raise UsageError(f"--block {text!r} should be threads in x, y and z, as in 256 or 16,16.")
    x, y, z = three([*map(int, text.split(","))])
    if x * y * z > THREADS_PER_CTA or z > THREADS_IN_Z:
        raise UsageError(
            f"--block {text}: {x * y * z:,} threads; a CTA has {THREADS_PER_CTA:,} at most, and "
            f"{THREADS_IN_Z} in z."
        )
    return x, y, z


def parse_map(name: str, text: str) -> MapLayout:
    """f16:64x128:128B as a layout; UsageError where it is none."""
    element, _, rest = text.partition(":")
    box, _, swizzle = rest.partition(":")
    extents = box.split("x")
    known = get_args(Swizzle)
    if (
        element not in _ELEMENTS
        or not all(map(str.isdigit, extents))
        or (swizzle or "none") not in known
    ):
        raise UsageError(
            f"--tensor-map {name}={text}: say TYPE:BOX:SWIZZLE, as in f16:64x128:128B; the swizzle "
            f"is one of {', '.join(known)}."
        )
    return MapLayout(
        element=cast(Element, element),
        box=tuple(map(int, extents)),
        swizzle=cast(Swizzle, swizzle or "none"),
    )


_ELEMENTS = tuple(each for each in get_args(Element) if each in SCALARS)


def parse_dtype(name: str, text: str) -> DType:
    """f16 or torch.float16; UsageError where it is no type."""
    dtype = own_name(text)
    if dtype not in TORCH_NAMES:
        raise UsageError(
            f"--dtype {name}={text}: there is no such type{suggest(dtype, TORCH_NAMES)}."
        )
    return dtype


def told(
    compiled: Compiled, outputs: Sequence[str], answers: Answers, dtypes: Mapping[str, DType]
) -> Compiled:
    """With what a person says of its arrays."""
    described = {name: cast(DType, layout.element) for name, layout in answers.maps.items()}
    elements = described | dict(dtypes)
    entry = entries.told(compiled.entry, outputs, elements)
    return msgspec.structs.replace(compiled, entry=entry)


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Those of the files that are not as they should be already."""
    for name, text in texts.items():
        path = folder / name
        if not path.is_file() or path.read_text("utf-8") != text:
            wholefile.write(path, text.encode(), durable=False)
