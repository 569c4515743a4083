"""Brings an entry of a foreign source into a project as a kernel of its own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp import build, wholefile
from kernelexp.arch import ARCHITECTURES
from kernelexp.build import Built, Diagnostic
from kernelexp.errors import UsageError, join, suggest
from kernelexp.foreign import copying, draft
from kernelexp.foreign import entry as entries
from kernelexp.foreign.copying import Copy, Left
from kernelexp.foreign.declarations import Declaration
from kernelexp.foreign.draft import Answers
from kernelexp.foreign.entry import Entry
from kernelexp.model import Variant
from kernelexp.names import is_name
from kernelexp.project import Project, editing, layout
from kernelexp.toolchain import Toolchain

ORIGIN = "origin"
"""The folder of the copy, in the kernel's own."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a source that is to become a kernel."""

    copy: Copy
    declaration: Declaration
    template: str
    """The instance to compile, such as gemm<64>; empty where the entry is no template."""
    kernel: str
    """The name that it gets in the project."""


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """A chosen entry, compiled in its place in the project."""

    chosen: Chosen
    folder: Path
    entry: Entry
    left: tuple[Left, ...]
    """What the copy lacks of the source."""


def choose(project: Project, source: Path, text: str, kernel: str) -> Chosen:
    """The entry `text` of a source, or its only one; UsageError lists those that there are."""
    copy = copying.read(source)
    found = copying.kernels(copy)
    if not found:
        raise UsageError(f"{source} has no __global__ function.")
    plain, bracket, _ = text.partition("<")
    plain = plain.strip().rpartition("::")[2]
    named = [each for each in found if each.kernel == plain] if text else found
    if not named:
        raise UsageError(f"{source} has no kernel {text!r}{suggest(plain, _names(found))}.")
    if not text and len(found) > 1:
        raise UsageError(
            f"{source} has several kernels: say which with --entry: {join(_names(found))}."
        )
    declaration = named[0]
    if declaration.template and not bracket:
        raise UsageError(
            f"{declaration.kernel} is a template: name its arguments, as in "
            f"--entry '{declaration.kernel}<...>'."
        )
    name = kernel or declaration.kernel
    if not is_name(name):
        raise UsageError(f"{name!r} can't be a kernel's name: give another with --kernel.")
    if name in project.kernels or (project.root / "variants" / name).exists():
        raise UsageError(
            f"there is a kernel {name} already: edit variants/{name}/problem.py and run kernelexp "
            f"emulate {name}, or give another name with --kernel."
        )
    template = text if declaration.template else ""
    return Chosen(copy=copy, declaration=declaration, template=template, kernel=name)


def _names(found: Sequence[Declaration]) -> list[str]:
    return list(dict.fromkeys(each.kernel + "<...>" * each.template for each in found))


def compile_entry(
    project: Project,
    chosen: Chosen,
    arch: str,
    answers: Answers,
    tools: Toolchain,
    flags: Sequence[str] = (),
) -> Compiled:
    """Writes the kernel's folder, with the copy and the source that includes it, and compiles.

    BuildError, in a sentence, where that does not come to an end; the folder is gone then.
    """
    if arch not in ARCHITECTURES:
        raise UsageError(f"there is no architecture {arch!r}{suggest(arch, ARCHITECTURES)}.")
    folder = project.root / "variants" / chosen.kernel
    copy, others = copying.only(chosen.copy, chosen.declaration.kernel)
    prefix = f"variants/{chosen.kernel}/{ORIGIN}/"
    variant = Variant(
        kernel=chosen.kernel,
        arch=arch,
        source=f"variants/{chosen.kernel}/{chosen.kernel}.cu",
        axes={},
        flags=tuple(flags),
    )
    built: list[Built] = []

    def attempt(texts: Mapping[str, str]) -> tuple[Diagnostic, ...]:
        _write(folder, {f"{ORIGIN}/{name}": text for name, text in texts.items()})
        (one,) = build.build(project.root, [variant], tools)
        if one.fault:
            raise one.fault
        built.append(one)
        found = () if one.ok else (*build.iter_errors(one.log), build.first_error(one.log))
        return tuple(
            msgspec.structs.replace(each, file=each.file.removeprefix(prefix))
            for each in dict.fromkeys(found)
            if each
        )

    include = f"{ORIGIN}/{copy.main}"
    text = draft.wrapper(
        chosen.template or chosen.declaration.kernel, chosen.template, include, copy.origin
    )
    try:
        _write(folder, {f"{chosen.kernel}.cu": text})
        _, left = copying.compile_copy(copy, attempt)
        ptx = build.artefacts(project.root, built[-1].identity).ptx.read_text("utf-8", "replace")
        entry = entries.read(ptx, chosen.declaration.parameters)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Compiled(chosen=chosen, folder=folder, entry=entry, left=(*others, *left))


def finish(
    project: Project, compiled: Compiled, arch: str, answers: Answers, flags: Sequence[str]
) -> str:
    """Writes problem.py and the kernel's entry in experiments.yaml; the text of problem.py."""
    chosen = compiled.chosen
    plain = chosen.declaration.kernel
    text = draft.problem(compiled.entry, plain, chosen.copy.origin, answers)
    entry = draft.kernel(
        f"{chosen.template or plain} of {Path(chosen.copy.origin).name}",
        f"{chosen.kernel}.cu",
        arch,
        ARCHITECTURES[arch].card,
        flags,
    )
    path = project.root / layout.FILE
    yaml = editing.insert(path.read_text("utf-8"), "kernels", {chosen.kernel: entry})
    _write(compiled.folder, {"problem.py": text})
    wholefile.write(path.resolve(), yaml.encode())
    return text


def discard(compiled: Compiled) -> None:
    """Removes the folder of a kernel that was not finished."""
    shutil.rmtree(compiled.folder, ignore_errors=True)


def parse_block(text: str) -> tuple[int, int, int]:
    """256 or 16,16 as three extents; UsageError where it is none."""
    if not re.fullmatch(r"[1-9][0-9]*(,[1-9][0-9]*){0,2}", text.replace(" ", "")):
        raise UsageError(f"--block {text!r} should be threads in x, y and z, as in 256 or 16,16.")
    x, y, z = [*map(int, text.split(",")), 1, 1][:3]
    return x, y, z


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        if not path.is_file() or path.read_text("utf-8") != text:
            wholefile.write(path, text.encode(), durable=False)
