"""One more axis of a kernel that was taken from a program: its block, or a number in its source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kernelexp.model.errors import UsageError
from kernelexp.project import Project, editing
from kernelexp.services.adopt.adopted import Compiled
from kernelexp.services.adopt.draft import Answers, DraftAxis
from kernelexp.services.adopt.launched import AdoptedLaunch
from kernelexp.system import wholefile

BLOCK = "block"
"""The axis that is the extent of the block in x."""


def parse(text: str) -> tuple[str, tuple[int, ...]]:
    """BLOCK=128,256 as a name and numbers; UsageError where it is none."""
    name, equals, values = text.partition("=")
    words = values.split(",")
    if not name.isidentifier() or not equals or not all(map(str.isdigit, words)):
        raise UsageError(f"--axis {text!r} should be as in BLOCK=128,256 or block=128,256.")
    return name, tuple(map(int, words))


def add(launch: AdoptedLaunch, name: str, values: tuple[int, ...]) -> AdoptedLaunch:
    """The launch with an axis, which its source, block and grid follow.

    The block follows in the extents that are the axis's value as the program has it; the grid,
    where it is a size of the launch divided by that.
    """
    compiled, answers, flags = launch.compiled, launch.answers, launch.flags
    assert answers.block is not None
    axis = name.lower()  # as axes are named; the macro keeps its own name
    if axis in answers.values or axis in answers.axes:
        raise UsageError(f"--axis {name}: a parameter of the kernel, or another axis, is {axis}.")
    if name == BLOCK:
        default, about = answers.block[0], "threads of a CTA in x"
        follows = [True, False, False]
    else:
        default, about, flags = _defined(compiled, name, flags)
        follows = [extent == default > 1 for extent in answers.block]
    grid = [
        _extent(answers, count, axis, default) if follow else count
        for count, follow in zip(answers.grid, follows, strict=True)
    ]
    block = [
        axis if follow else str(extent)
        for extent, follow in zip(answers.block, follows, strict=True)
    ]
    made = DraftAxis(values=tuple(sorted({default, *values})), default=default, about=about)
    answers = msgspec.structs.replace(
        answers, axes=answers.axes | {axis: made}, grid=tuple(grid), extents=tuple(block)
    )
    return msgspec.structs.replace(launch, answers=answers, flags=flags)


def _extent(answers: Answers, count: str, name: str, default: int) -> str:
    sizes = (key for key, value in answers.values.items() if type(value) is int)
    for key in sizes:
        if -(-int(answers.values[key]) // default) == int(count):
            return f"{key}/{name}"
    return count


def _defined(
    compiled: Compiled, name: str, flags: tuple[str, ...]
) -> tuple[int, str, tuple[str, ...]]:
    """The number that a macro is, which is the axis's from now on; where it was defined; the flags
    without it."""
    line = re.compile(rf"^([ \t]*#[ \t]*define[ \t]+{name}[ \t]+)\(?([0-9]+)\)?[ \t]*(?=$|/)", re.M)
    macro = f"KX_{name.upper()}"
    for path in sorted((compiled.folder / "origin").rglob("*")):
        text = path.read_text("utf-8") if path.is_file() else ""
        matches = line.findall(text)
        if len(matches) > 1:
            raise UsageError(f"--axis: {path.name} defines {name} {len(matches)} times.")
        if matches:
            wholefile.write(path, line.sub(rf"\g<1>{macro} ", text).encode(), durable=False)
            return int(matches[0][1]), f"#define {name} of {path.name}", flags
    for flag in flags:
        if re.fullmatch(rf"-D{name}=[0-9]+", flag):
            main = compiled.folder / compiled.source
            text = f"#define {name} {macro}\n{main.read_text('utf-8')}"
            wholefile.write(main, text.encode(), durable=False)
            rest = tuple(each for each in flags if each != flag)
            return int(flag.partition("=")[2]), f"was {flag}", rest
    raise UsageError(
        f"--axis: the kernel's sources have no line `#define {name} NUMBER`, and the program is "
        f"compiled without -D{name}=NUMBER; --axis {BLOCK}=... is the kernel's block in x."
    )


def experiments(project: Project, launch: AdoptedLaunch) -> Iterator[str]:
    """Adds an experiment for each value that the program does not use; their ids."""
    kernel, arch = launch.compiled.kernel, launch.compiled.arch
    for name, axis in launch.answers.axes.items():
        for value in axis.values:
            if value == axis.default:
                continue
            identity = editing.next_id(project, kernel, arch)
            experiment = {
                "kernel": kernel,
                "arch": arch,
                "title": f"{name} {value}, not {axis.default}",
                "baseline": {},
                "candidate": {name: value},
                "hypothesis": f"{name}={value} is faster than the program's {name}={axis.default}.",
            }
            editing.add(project, identity, experiment)
            project = _reloaded(project)
            yield identity


def _reloaded(project: Project) -> Project:
    from kernelexp.project import load

    return load(Path(project.root))
