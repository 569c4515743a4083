"""One more axis of a kernel that is brought in: its block, or a number in its source."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kernelexp.model.errors import UsageError, join
from kernelexp.project import Project, editing, load
from kernelexp.services.adopt import adopted, jobs
from kernelexp.services.adopt import answers as answering
from kernelexp.services.adopt.adopted import Compiled
from kernelexp.services.adopt.answers import Answers, DraftAxis, LaunchShape
from kernelexp.services.adopt.entry import KernelEntry, KernelParameter
from kernelexp.services.adopt.expressions import names_in, value_of
from kernelexp.services.adopt.launched import AdoptedLaunch
from kernelexp.system import disk
from warpsim.launch import Dim3, plain_name

BLOCK = "block"
"""The axis that is the extent of the block in x."""


def parse(text: str) -> tuple[str, tuple[int, ...]]:
    """BLOCK=128,256 as a name and numbers; UsageError where it is none."""
    name, equals, values = text.partition("=")
    words = values.split(",")
    if not name.isidentifier() or not equals or not all(map(str.isdigit, words)):
        raise UsageError(
            f"--axis {text!r} should be a name and whole numbers, as in BLOCK=128,256, or in "
            f"{BLOCK}=128,256, which is the block's x: an axis has no y or z."
        )
    return name, tuple(map(int, words))


def add(
    launch: AdoptedLaunch, name: str, values: tuple[int, ...], usual: Dim3 | None = None
) -> AdoptedLaunch:
    """The launch with an axis, which its source, block and grid follow.

    The block of each launch follows in the extents that are the axis's value as the program has it,
    which for the axis of the block is x of `usual`, or else of the first launch that has a number
    there; the grid, where it is a size of the launch divided by that, or the elements of an array
    that it writes.
    """
    axis = name.lower()  # as axes are named; the macro keeps its own name
    compiled, answers = _named(launch.compiled, launch.answers, name, axis)
    flags = launch.flags
    shapes = [
        _known(name, entry, shape)
        for entry, shape in zip(compiled.entries, answers.launches, strict=True)
    ]
    if axis in answers.values or axis in answers.axes:
        raise UsageError(f"--axis {name}: a parameter of the kernel, or another axis, is {axis}.")
    if name == BLOCK:
        default, about = _block_now(usual, shapes), "threads of a CTA in x"
    else:
        default, about, flags = _defined(compiled, name, flags)
    draft_axis = DraftAxis(values=tuple(sorted({default, *values})), default=default, about=about)

    def followed(entry: KernelEntry, shape: LaunchShape) -> LaunchShape:
        # Whoever has named it has named it where it is meant: other numbers stay.
        own = msgspec.structs.replace(answers, launches=(shape,))
        named = axis in names_in([*answering.texts(own), *jobs.passed([entry])])
        return _follow(shape, _counts(entry, answers), name, default, named)

    answers = msgspec.structs.replace(
        answers,
        axes=answers.axes | {axis: draft_axis},
        launches=tuple(map(followed, compiled.entries, shapes)),
    )
    return msgspec.structs.replace(launch, compiled=compiled, answers=answers, flags=flags)


def with_grid(
    launch: AdoptedLaunch,
    grid: Sequence[str],
    sizes: Mapping[str, int | float],
    axes: Sequence[str],
) -> AdoptedLaunch:
    """The launch of a program with its grid in the names of sizes and axes, and sizes of its own.

    UsageError where that is not the grid that the launch had.
    """
    answers = launch.answers
    for name in sizes:
        if name in answers.values:
            raise UsageError(
                f"--value {name}: leave it out, the launch says that it is {answers.values[name]}."
            )
    answers = msgspec.structs.replace(answers, values={**answers.values, **sizes})
    (shape,) = answers.launches
    text = ",".join(grid or shape.grid)
    for name in axes:
        text = re.sub(rf"\b(?:{name}|{name.upper()})\b", name.lower(), text)
    named = (*text.split(","), "1", "1")[: len(shape.grid)]
    now = {name: axis.default for name, axis in answers.axes.items()}
    counts = [value_of(part, "--grid", answers.values, now) for part in named]
    if list(map(str, counts)) != list(shape.grid):
        raise UsageError(
            f"--grid {','.join(grid)}: that is {','.join(map(str, counts))} here, and the launch "
            f"had {','.join(shape.grid)}."
        )
    shape = msgspec.structs.replace(shape, grid=named)
    answers = msgspec.structs.replace(answers, launches=(shape,))
    return msgspec.structs.replace(launch, answers=answers)


def _named(compiled: Compiled, answers: Answers, name: str, axis: str) -> tuple[Compiled, Answers]:
    """Puts the axis under its own name wherever a person wrote the macro's: in grids, blocks, bytes
    of shared memory, shapes, and in what is passed."""

    def renamed(text: str) -> str:
        return re.sub(rf"\b(?:{name}|{name.upper()})\b", axis, text)

    def passed(parameter: KernelParameter) -> KernelParameter:
        is_axis = parameter.scalar and parameter.name in (name, axis)
        return msgspec.structs.replace(parameter, passed=axis) if is_axis else parameter

    compiled, answers = adopted.rewritten(compiled, answers, renamed)
    entries = [
        msgspec.structs.replace(entry, parameters=tuple(map(passed, entry.parameters)))
        for entry in compiled.entries
    ]
    return msgspec.structs.replace(compiled, entries=tuple(entries)), answers


def _known(name: str, entry: KernelEntry, shape: LaunchShape) -> LaunchShape:
    """Adds the block that the entry was compiled for, where nobody has said one."""
    if shape.block or shape.extents:
        return shape
    if entry.block is None:
        plain = plain_name(entry.symbol)
        raise UsageError(
            f"--axis {name}: say what the block of {plain} is now: --block 256 for every launch "
            f"that has none, or --entry '{plain}<<<n/256, 256>>>'."
        )
    return msgspec.structs.replace(shape, block=entry.block)


def _block_now(usual: Dim3 | None, shapes: Sequence[LaunchShape]) -> int:
    """Threads in x that the axis of the block is by default."""
    blocks = [shape.block for shape in shapes if shape.block]
    if usual is None and not blocks:
        raise UsageError(f"--axis {BLOCK}: say which block is the one of now, as in --block 256.")
    written = [name for shape in shapes for name in shape.extents]
    now = (usual or blocks[0])[0]
    if now not in [block[0] for block in blocks] and BLOCK not in names_in(written):
        known = join(str(x) for x in dict.fromkeys(block[0] for block in blocks)) or "no number"
        raise UsageError(
            f"--axis {BLOCK}: no launch has a block of {now} in x, as --block says, but {known}: "
            f"give one of these, or write {BLOCK} in an --entry, as in 'k<<<n/{BLOCK}, {BLOCK}>>>'."
        )
    return now


def _counts(entry: KernelEntry, answers: Answers) -> dict[str, int]:
    """Returns counts that a grid may be made from, by how they are spelled: the launch's sizes, and
    how many elements the arrays have that it writes."""
    sizes = {name: int(x) for name, x in answers.values.items() if type(x) is int}
    shapes = [answers.shapes.get(x.name, ()) for x in entry.parameters if x.written]
    elements = [shape[0] for shape in shapes if len(shape) == 1 and shape[0].isdigit()]
    return sizes | {text: int(text) for text in elements}


def _follow(
    shape: LaunchShape, counts: Mapping[str, int], name: str, default: int, named: bool
) -> LaunchShape:
    """A launch's shape with the axis in its block and its grid; where it is named already, in x of
    the block alone, if that is the axis."""
    if named and name != BLOCK:
        return shape
    axis, block = name.lower(), shape.block or (1, 1, 1)
    if name != BLOCK:
        follows = [extent == default > 1 for extent in block]
    elif block[0] == default or BLOCK in names_in(shape.extents):
        follows = [block[0] == default, False, False]
    else:
        return shape
    grid = [
        count if named else _extent(counts, count, axis, default, follow)
        for count, follow in zip(shape.grid, follows, strict=False)
    ]
    extents = [
        axis if follow else extent
        for extent, follow in zip(shape.extents or map(str, block), follows, strict=True)
    ]
    return msgspec.structs.replace(shape, grid=tuple(grid), extents=tuple(extents))


def _extent(counts: Mapping[str, int], count: str, name: str, default: int, follows: bool) -> str:
    """A number of CTAs, or an expression, with the axis for the value that it has now."""
    if not count.isdigit():
        is_meant = follows or name != BLOCK
        return re.sub(rf"(?<=/)\s*{default}\b", name, count) if is_meant else count
    for spelled, size in counts.items():
        if follows and -(-size // default) == int(count):
            return f"{spelled}/{name}"
    return count


def _defined(
    compiled: Compiled, name: str, flags: tuple[str, ...]
) -> tuple[int, str, tuple[str, ...]]:
    """The number that a name is, which is the axis's from now on; where it is; the flags
    without it."""
    macro = f"KX_{name.upper()}"
    files = sorted((compiled.folder / "origin").rglob("*"))
    texts = {path: path.read_text("utf-8") for path in files if path.is_file()}
    for pattern, what in _WRITTEN:
        line = re.compile(pattern.replace("NAME", name), re.M)
        matches = [(path, match) for path, text in texts.items() for match in line.finditer(text)]
        if len(matches) > 1:
            places = join(f"{p.name}:{_line(texts[p], match.start())}" for p, match in matches)
            raise UsageError(f"--axis: {name} is a {what} in {len(matches)} places: {places}.")
        for path, match in matches:
            text = f"{texts[path][: match.end(1)]}{macro}{texts[path][match.end(2) :]}"
            disk.write(path, text.encode(), durable=False)
            return int(match[2]), f"{what} {name} of {path.name}", flags
    if (default := _argument(compiled, name, macro, [*texts.values()])) is not None:
        return default, f"template argument {name}", flags
    for flag in flags:
        if re.fullmatch(rf"-D{name}=[0-9]+", flag):
            main = compiled.folder / compiled.source
            text = f"#define {name} {macro}\n{main.read_text('utf-8')}"
            disk.write(main, text.encode(), durable=False)
            rest = tuple(item for item in flags if item != flag)
            return int(flag.partition("=")[2]), f"was {flag}", rest
    raise UsageError(
        f"--axis: the kernel's sources have no line `#define {name} NUMBER`, no constant {name} "
        f"that is a number and no template argument {name}, and it is compiled without "
        f"-D{name}=NUMBER; --axis {BLOCK}=... is the kernel's block in x."
    )


_WRITTEN = (
    (r"^([ \t]*#[ \t]*define[ \t]+NAME[ \t]+\(?)([0-9]+)(?=\)?[ \t]*(?:$|/))", "#define"),
    (r"^((?![ \t]*//)[^\n;=]*\bconst(?:expr)?\b[^\n;=]*\bNAME\s*=\s*)([0-9]+)(?=[uU]?\s*;)",
     "constant"),
)  # fmt: skip
"""How a number is given a name, the text before it first."""


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _argument(compiled: Compiled, name: str, macro: str, texts: Sequence[str]) -> int | None:
    """The number that a template parameter is, which is the axis's from now on, in the instances
    that are compiled."""
    main = compiled.folder / compiled.source
    text = main.read_text("utf-8")
    for kernel in dict.fromkeys(entry.name for entry in compiled.entries):
        instances = list(re.finditer(rf"(kx_instance\d* = &[^<;]*\b{kernel}<)([^;]*)(>;)", text))
        place = compiled.places.get(name, _place(kernel, name, texts))
        if place is None or len(instances) != 1:
            continue
        (instance,) = instances
        arguments = [part.strip() for part in instance[2].split(",")]
        if place < len(arguments) and arguments[place].isdigit():
            default, arguments[place] = int(arguments[place]), macro
            inside = ", ".join(arguments)
            text = f"{text[: instance.end(1)]}{inside}{text[instance.start(3) :]}"
            disk.write(main, text.encode(), durable=False)
            return default
    return None


def _place(kernel: str, name: str, texts: Sequence[str]) -> int | None:
    """Returns the position of a kernel's template parameter of this name."""
    head = re.compile(rf"template\s*<([^<>]*)>[^;{{}}]*?\b{kernel}\s*\(")
    match = next(filter(None, map(head.search, texts)), None)
    written = match[1].split(",") if match else []
    words = [re.findall(r"\w+", item.partition("=")[0]) for item in written]
    names = [word[-1] for word in words if word]
    return names.index(name) if name in names else None


def is_unused(compiled: Compiled, name: str) -> bool:
    """Whether nothing but its definition names a constant of the sources."""
    texts = sources(compiled).values()
    code = "\n".join(_COMMENT.sub(" ", text) for text in texts)
    return name != BLOCK and len(re.findall(rf"\b{name}\b", code)) == 1


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def is_missing(launch: AdoptedLaunch, name: str) -> bool:
    """Whether a grid seems to have the axis, as a number that equals its default, and nothing names
    it: no grid, shared memory, box or argument."""
    default, shapes = launch.answers.axes[name.lower()].default, launch.answers.launches
    numbers = re.findall(r"\d+", " ".join(text for shape in shapes for text in shape.grid))
    return str(default) in numbers and default != 1 and not _is_followed(launch, name)


def stays(launch: AdoptedLaunch, name: str) -> bool:
    """Whether the axis is an extent of a block, and nothing else of the launch follows it: a grid
    that its program derives from it would have to."""
    extents = [text for shape in launch.answers.launches for text in shape.extents]
    grids = [count for shape in launch.answers.launches for count in shape.grid]
    several = any(count != "1" for count in grids)
    return name.lower() in extents and several and not _is_followed(launch, name)


def _is_followed(launch: AdoptedLaunch, name: str) -> bool:
    launches, maps = launch.answers.launches, launch.answers.maps.values()
    texts = [text for shape in launches for text in (*shape.grid, shape.smem) if text]
    texts += [text for layout in maps for text in layout.box]
    return name.lower() in names_in([*texts, *jobs.passed(launch.compiled.entries)])


def sources(compiled: Compiled) -> dict[str, str]:
    """The texts of the kernel's folder by their paths in it, to show what an axis changed."""
    files = (path for path in sorted(compiled.folder.rglob("*")) if path.is_file())
    own = (path for path in files if path.suffix in _SOURCES)
    return {path.relative_to(compiled.folder).as_posix(): path.read_text("utf-8") for path in own}


_SOURCES = (".cu", ".cuh", ".h", ".hpp", ".hh", ".inl", ".inc", ".cc", ".cpp")


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """The lines of a diff."""
    for name in after:
        old, new = before.get(name, "").splitlines(), after[name].splitlines()
        lines = difflib.unified_diff(old, new, name, name, lineterm="", n=0)
        yield from (line for line in lines if not line.startswith("@@"))


def experiments(project: Project, launch: AdoptedLaunch) -> Iterator[str]:
    """Adds an experiment for each value that the program does not use; their ids."""
    kernel, arch = launch.compiled.kernel, launch.compiled.arch
    for name, axis in launch.answers.axes.items():
        for value in axis.values:
            if value == axis.default:
                continue
            experiment = {
                "kernel": kernel,
                "arch": arch,
                "title": f"{name} {value}, not {axis.default}",
                "baseline": {},
                "candidate": {name: value},
                "hypothesis": f"Is {name}={value} faster than {name}={axis.default}? Why?",
            }
            with disk.alone(project.root):
                project = load(project.root)  # as it is now: another process may have added one
                identity = editing.next_id(project, kernel, arch)
                editing.add(project, identity, experiment)
            yield identity
