"""Output of adopting a kernel (parameters, what an axis changed, blanks, the first emulation), or a
log that was kept by hand (`adopt --log`)."""

from __future__ import annotations

import os
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kernelexp.cli import common
from kernelexp.cli.console import print_message
from kernelexp.cli.emulate import execute
from kernelexp.model.errors import OK, USAGE, WRONG_RESULT, KernelexpError, UsageError, join
from warpsim.dtypes import INTEGERS

if TYPE_CHECKING:
    from kernelexp.project import Project
    from kernelexp.services.adopt.adopted import Compiled
    from kernelexp.services.adopt.answers import Answers
    from kernelexp.services.adopt.declarations import Declaration
    from kernelexp.services.adopt.entry import KernelEntry, KernelParameter
    from kernelexp.services.adopt.launched import AdoptedLaunch
    from warpsim.launch import Dim3


def tell(compiled: Compiled, answers: Answers) -> None:
    """Prints what was found and what was left out."""
    from kernelexp.services.adopt import answers as answering
    from kernelexp.services.adopt import jobs

    for signature, *parameters in dict.fromkeys(map(_described, compiled.entries)):
        _print_wrapped(f"entry: {signature}")
        typer.echo("".join(f"{parameter}\n" for parameter in parameters), nl=False)
    for name in answering.read_and_written(jobs.values(compiled.entries), answers):
        print_message(
            f"note: {name} is read and written: it is an input and an output, and holds the input "
            f"before the first launch; if it starts as zero, say --zero {name} where it is a "
            f"result, --workspace {name} where it is the kernel's own memory"
        )
    for name in _shared_results(compiled, answers):
        print_message(
            f"note: several launches use {name}, which is an output by --zero {name}: if nothing "
            f"but they read it, say --workspace {name} instead; it is zero before the first too"
        )
    for job in jobs.values(compiled.entries):
        if job.is_array and job.mixed and job.packed and job.dtype in INTEGERS:
            print_message(
                f"note: {job.name} has halves among its bits: random bits make some of them "
                "infinite, which hides errors; draw them in inputs() as the format has them"
            )
    for name in _small_numbers(compiled, answers):
        print_message(
            f"note: {name} is drawn as 0 to 99, as the kernel may index with its values; if they "
            "are keys or packed bits, draw all bits in inputs(), or most of them are not tested"
        )
    for name in answers.between:
        print_message(
            f"note: {name} is written by one launch and read by a later one: it is the job's own "
            f"and compared with nothing; if it is a result too, say --output {name}"
        )
    if compiled.unset:
        print_message(
            "note: __constant__ memory that only host code sets is zero in an experiment: "
            f"{join(compiled.unset)}; give it values in the copy of the source"
        )
    _tell_omitted(compiled)


def tell_numbers(numbers: Mapping[str, int], axes: Collection[str]) -> None:
    """Prints the numbers that names of the source stand for in grids and the like."""
    from kernelexp.services.adopt import notation

    for name, number in numbers.items():
        typer.echo(f"{notation.spelled(name)} is {number:,}, as the source has it")
    if numbers and axes:
        print_message("note: these numbers follow no axis: where one does, write it with the axis")


def tell_clusters(compiled: Compiled, answers: Answers) -> None:
    """Prints the cluster that a source says, or that nothing says one."""
    from kernelexp.services.adopt import adopted

    for entry, shape in zip(compiled.entries, answers.launches, strict=True):
        if adopted.is_open(entry, shape):
            print_message(
                f"note: {entry.name} asks for its place in a cluster, and nothing says how many "
                "CTAs that has: it is launched without one; otherwise say --cluster 2"
            )
        elif shape.cluster and shape.cluster == compiled.cluster:
            typer.echo(f"cluster: {','.join(shape.cluster)}, as the source launches it")


def _shared_results(compiled: Compiled, answers: Answers) -> Iterator[str]:
    """Outputs by --zero that nobody has described, and that several launches use."""
    from kernelexp.services.adopt import jobs

    for name in answers.zeros:
        users = sum(
            any(value.name == name for value in jobs.values((entry,))) for entry in compiled.entries
        )
        if users > 1 and name not in answers.references:
            yield name


def _small_numbers(compiled: Compiled, answers: Answers) -> Iterator[str]:
    """Inputs whose values are taken apart and may be indices."""
    from kernelexp.services.adopt import answers as answering
    from kernelexp.services.adopt import jobs

    for value in answering.inputs(jobs.values(compiled.entries), answers):
        if value.may_index and not value.packed and value.dtype in INTEGERS:
            yield value.name


def _described(entry: KernelEntry) -> tuple[str, ...]:
    """Its signature and a line for each parameter, the same for launches that differ in values."""
    lines = [entry.signature]
    for parameter in entry.parameters:
        lines.append(f"  {_describe(parameter)}")
        lines += [f"    {_describe(member)}" for member in parameter.members]
    return tuple(lines)


def _tell_omitted(compiled: Compiled) -> None:
    if added := [flag for flag in compiled.flags if flag.startswith("--")]:
        _print_wrapped(f"compiled with {' '.join(added)}, which it needs")
    files = list(dict.fromkeys(file for file, _ in compiled.left))
    for file in files[:_FILES]:
        omitted = [declaration for own, declaration in compiled.left if own == file]
        includes = [f"#include {item.include}" for item in omitted if item.include]
        lines = [item for item in omitted if not item.include]
        parts = [*_spell_lines(_copied(compiled, file), lines), *includes]
        _print_wrapped(f"left out of the copy of {file}, lines: {', '.join(parts)}")
    if more := files[_FILES:]:
        files_left = "1 more file" if len(more) == 1 else f"{len(more)} more files"
        _print_wrapped(f"left out of the copies of {files_left}: host code, kernels")


_FILES = 3
"""Files whose omissions are listed; the others are counted."""


def _copied(compiled: Compiled, file: str) -> list[str]:
    path = compiled.folder / "origin" / file
    return path.read_text("utf-8").splitlines() if path.is_file() else []


def _print_wrapped(text: str) -> None:
    """Prints text within 80 columns, words such as paths and types whole."""
    indent = text[: len(text) - len(text.lstrip())] + "  "
    lines = textwrap.wrap(
        text, 80, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    typer.echo("\n".join(lines))


def _describe(parameter: KernelParameter) -> str:
    """x: float*, 8 bytes, read"""
    used = {(True, False): "read", (False, True): "written", (True, True): "read and written"}
    if parameter.ignored:
        role = "not used: 0 is passed"
    elif parameter.passed:
        role = f"scalar, {parameter.passed} is passed"
    elif parameter.is_array:
        # The address of a tensor map may go where it is not followed.
        unseen = "no copy found that takes it" if parameter.is_tensor_map else "not used"
        role = used.get((parameter.read, parameter.written), unseen)
    else:
        role = "scalar" if parameter.scalar else "structure"
    kind = f"{parameter.type or '?'}{'*' * parameter.is_pointer}"
    return f"{parameter.name}: {kind}, {parameter.size} bytes, {role}"


def _spell_lines(text: Sequence[str], left: Sequence[Declaration]) -> list[str]:
    """Ranges of lines; two with nothing but empty lines between them are one."""
    ranges: list[tuple[int, int]] = []
    for omitted in sorted(left, key=lambda item: item.first_line):
        first, last = omitted.first_line, omitted.last_line
        if ranges and not "".join(text[ranges[-1][1] : first - 1]).strip():
            first = ranges.pop()[0]
        ranges.append((first, last))
    return [str(first) if first == last else f"{first}-{last}" for first, last in ranges]


def vary(
    launch: AdoptedLaunch,
    axes: list[tuple[str, tuple[int, ...]]],
    usual: Dim3 | None = None,
    grid: tuple[str, ...] = (),
    sizes: Mapping[str, int | float] | None = None,
) -> AdoptedLaunch:
    """Adds these axes; shows what changed in the sources and in the launch.

    usual: --block; grid: how the grid that a program's launch had depends on axes and sizes.
    """
    from kernelexp.services.adopt import launch_axes

    before = launch_axes.sources(launch.compiled)
    for name, values in axes:
        launch = launch_axes.add(launch, name, values, usual)
    for line in launch_axes.changes(before, launch_axes.sources(launch.compiled)):
        typer.echo(line)
    if grid or sizes:
        launch = launch_axes.with_grid(launch, grid, sizes or {}, [name for name, _ in axes])
    for name, _ in axes:
        axis, shapes = launch.answers.axes[name.lower()], launch.answers.launches
        grids = [",".join(shape.grid) or "blank" for shape in shapes]
        if launch_axes.is_unused(launch.compiled, name):
            print_message(
                f"note: nothing in the kernel's sources uses {name}: its values change no "
                "instruction"
            )
        elif launch_axes.is_missing(launch, name):
            print_message(
                f"note: the grid has the number {axis.default} and does not follow {name.lower()}: "
                f"if a CTA's work depends on it, name it there, as in --grid 'n/{name}'"
            )
        elif launch_axes.stays(launch, name):
            print_message(
                f"note: the block follows {name.lower()} and the grid does not, which is right for "
                "a loop over the grid: if the program derives its grid from it, say how, as in "
                f"--grid 'n/{name}'"
            )
        blocks = [",".join(shape.extents or map(str, shape.block or ())) for shape in shapes]
        typer.echo(
            f"axis {name.lower()}: {', '.join(map(str, axis.values))} (default: {axis.default}); "
            f"grid {'; '.join(grids)}; block {'; '.join(blocks)}"
        )
    return launch


def add_experiments(loaded: Project, launch: AdoptedLaunch) -> list[str]:
    """One for each value of an axis that is not the one that the kernel has now; their ids."""
    from kernelexp.services.adopt import launch_axes

    project = common.load(loaded.root)  # which refuses a flag that experiments.yaml can't have
    if not launch.answers.axes:
        return []
    names = list(launch_axes.experiments(project, launch))
    if names:
        typer.echo(f"added {', '.join(names)} to experiments.yaml")
    if len(launch.answers.axes) > 1:
        points = " ".join(
            f"--set {name}={next(x for x in axis.values if x != axis.default)}"
            for name, axis in launch.answers.axes.items()
        )
        typer.echo(
            "each changes one axis alone; for values that belong together:\n"
            f"  kernelexp new 'Both' --kernel {launch.compiled.kernel} {points}"
        )
    return names


def conclude(
    loaded: Project,
    launch: AdoptedLaunch,
    text: str,
    experiments: Sequence[str],
    undo: Callable[[], None] | None,
    nvcc: str | None,
) -> int:
    """Says what was written, executes it once nothing is blank, and says what to do next; the exit
    code of that.

    `undo` removes it all where problem.py fails, as it does after a mistake in an option.
    """
    from kernelexp.services.adopt import draft

    compiled = launch.compiled
    kernel = shlex.quote(compiled.kernel)
    folder = f"variants/{compiled.kernel}"
    typer.echo(f"wrote {folder}/problem.py and {folder}/{compiled.source}")
    missing = list(draft.blanks(text))
    for line, what in missing:
        typer.echo(f"blank: {folder}/problem.py:{line}: {what}")
    if missing:
        typer.echo(f"next: fill the blanks, then kernelexp emulate {kernel}")
        return OK
    untold = draft.untold(compiled.entries, launch.answers)
    if untold:
        print_message(
            f"note: {untold}, so that tiles() was not drafted: counts of the full problem need it, "
            "at a size that suits or by hand"
        )
    code, faults = execute([compiled.kernel], loaded.root, nvcc)
    if code == USAGE and undo:
        _tell_lines(f"{folder}/problem.py", text, faults)
        undo()
        print_message("note: nothing was kept: correct the option, and adopt it again")
    elif code == USAGE:
        print_message(f"next: correct it there, then kernelexp emulate {kernel}")
    elif code == WRONG_RESULT:
        _note_tolerance(loaded.root, compiled.kernel, text, nvcc)
    elif code == OK and experiments:
        typer.echo(f"next: kernelexp run {' '.join(experiments)}")
    elif code == OK and untold:
        typer.echo(
            f"next: make what you change an axis, and compare its values: kernelexp new. With "
            f"tiles() in\n{folder}/problem.py, kernelexp explain {kernel} says what limits it."
        )
    elif code == OK:
        typer.echo(
            f"next: kernelexp explain {kernel} says what limits it. Make what you change an axis,\n"
            "and compare its values in an experiment: kernelexp new."
        )
    return code


def _tell_lines(problem: str, text: str, faults: Sequence[KernelexpError]) -> None:
    """The lines of the draft that failed, which will be gone."""
    for fault in faults:
        if match := re.match(rf"{re.escape(problem)}:(\d+)", str(fault)):
            print_message(f"  {match[1]}: {text.splitlines()[int(match[1]) - 1].strip()}")


def _note_tolerance(root: Path, kernel: str, problem: str, nvcc: str | None) -> None:
    """Notes that the tolerance is a guess, if values are nearly right."""
    if _is_only_inexact(root, kernel, nvcc):
        lines = problem.splitlines()
        line = next(i for i, text in enumerate(lines, 1) if "return Tolerance(" in text)
        print_message(
            "note: if the values are almost right, say how much they may differ, at "
            f"variants/{kernel}/problem.py:{line}, where the tolerance is a guess; then "
            f"kernelexp emulate {shlex.quote(kernel)}"
        )


def _is_only_inexact(root: Path, kernel: str, nvcc: str | None) -> bool:
    """Whether the launch came to its end with values that are nearly right and no other fault, by
    the emulation that was just kept."""
    from kernelexp.dossier import emulations
    from kernelexp.evidence.emulate.emulated import EmulationOptions
    from kernelexp.project import parse_variant

    loaded = common.load(root)
    wanted = [parse_variant(loaded, kernel)]
    with common.session(loaded, nvcc) as session:
        kept, _ = emulations.emulate(loaded, wanted, session, EmulationOptions(), full=False)
    evidence = kept[0].arm.emulated if kept else None
    if evidence is None or not evidence.finished:
        return False
    wrong = [array for array in evidence.arrays if array.wrong]
    return bool(wrong) and all(a.frobenius < _NEARLY and a.worst < _ROUNDED for a in wrong)


_NEARLY = 0.1
"""||got - want|| / ||want|| up to which wrong values may be roundings: of f8 they have 0.05."""
_ROUNDED = 50
"""Times a drafted tolerance up to which a value may be rounded otherwise; a lost term was 577."""


def adopt_log(
    log: Path, kernel: str, arch: str, source: str, column: Sequence[str], project: Path
) -> None:
    """Writes what the log has to the project, and says what was unclear."""
    from kernelexp.services.handlog import service, tables

    loaded = common.load(project)
    columns = tables.parse_columns(column)
    asking = _ask_column if sys.stdin.isatty() else None
    done = service.write(loaded, log, kernel, arch, source, columns, asking)
    steps, experiments = len(done.log.steps), len(done.log.experiments)
    typer.echo(
        f"imported {steps} step{'s' * (steps != 1)} and {experiments} "
        f"experiment{'s' * (experiments != 1)} of {done.kernel}"
    )
    for doubt in done.log.doubts:
        typer.echo(f"unclear: {doubt}")
    for kept in done.log.kept:
        typer.echo(f"kept as text: {kept}")
    typer.echo(f"wrote {os.path.relpath(done.copy)}, the whole log")
    common.refresh_log(common.load(loaded.root))
    typer.echo("next: kernelexp log")


def _ask_column(role: str, headings: Sequence[str]) -> str | None:
    """Asks on a terminal which column of a table has a role."""
    for number, heading in enumerate(headings, 1):
        typer.echo(f"  {number}: {heading}")
    choice: int = typer.prompt(f"which column is the {role}? (0: not this table)", type=int)
    if not 0 <= choice <= len(headings):
        raise UsageError(f"{choice} is none of the columns 0 to {len(headings)}.")
    return headings[choice - 1] if choice else None
