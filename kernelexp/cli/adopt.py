"""kernelexp new --from FILE: a kernel from a source that is there, with questions on a terminal."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import typer

from kernelexp.cli import common
from kernelexp.cli.console import print_message
from kernelexp.cli.emulate import emulate
from kernelexp.model.errors import WRONG_RESULT, UsageError

if TYPE_CHECKING:
    from kernelexp.project import Project
    from kernelexp.services.adopt.adopted import Compiled
    from kernelexp.services.adopt.copying import Omitted
    from kernelexp.services.adopt.draft import Answers
    from kernelexp.services.adopt.entry import KernelParameter
    from kernelexp.system.toolchain import Toolchain

T = TypeVar("T")


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command that are about a source, as they were typed."""

    entry: str
    kernel: str
    arch: str
    block: str
    grid: str
    smem: int
    shapes: Sequence[str]
    workspaces: Sequence[str]
    zeros: Sequence[str]
    values: Sequence[str]
    emulated: Sequence[str]
    references: Sequence[str]
    flags: Sequence[str]
    signature: str


def adopt(start: Path, source: Path, words: Words, nvcc: str | None) -> None:
    """Brings the source in, and executes it where nothing is left blank."""
    from kernelexp.services.adopt import adopted, draft

    loaded = common.load(start)
    tools = common.tools(loaded, nvcc)
    answers = _answers(words)
    compiled = _compile(loaded, source, words, tools)
    try:
        _tell(compiled, answers)
        if not answers.smem_bytes:
            answers = msgspec.structs.replace(answers, smem_bytes=compiled.dynamic_smem_bytes)
        if sys.stdin.isatty():
            answers = _ask(compiled, answers)
        text = adopted.finish(loaded, compiled, answers, words.flags)
    except BaseException:
        adopted.discard(compiled)
        raise
    folder = f"variants/{compiled.kernel}"
    typer.echo(f"wrote {folder}/problem.py and {folder}/{compiled.source}")
    missing = list(draft.blanks(text))
    for line, what in missing:
        typer.echo(f"blank: {folder}/problem.py:{line}: {what}")
    if missing:
        typer.echo(f"next: fill the blanks, then kernelexp emulate {shlex.quote(compiled.kernel)}")
    else:
        _execute(loaded.root, compiled.kernel, text, nvcc)


def _compile(loaded: Project, source: Path, words: Words, tools: Toolchain) -> Compiled:
    """Whatever compiler its source is for, or was compiled by."""
    from kernelexp.services.adopt import precompiled, service

    if source.suffix in precompiled.SUFFIXES:
        found = precompiled.read(source)
        symbol = precompiled.choose(found, words.entry)
        return precompiled.adopt(
            loaded, found, symbol, words.kernel, words.arch, words.signature, tools, words.flags
        )
    if words.signature:
        raise UsageError("--signature is for .ptx and .cubin: a source has its own.")
    chosen = service.choose(loaded, source, words.entry, words.kernel)
    arch = words.arch or _usual_arch(loaded)
    return service.compile_entry(loaded, chosen, arch, tools, words.flags)


def _execute(root: Path, kernel: str, problem: str, nvcc: str | None) -> None:
    """Emulates it; with a note where it is wrong, since its tolerance is a guess."""
    try:
        emulate([kernel], project=root, nvcc=nvcc)
    except typer.Exit as end:
        if end.exit_code == WRONG_RESULT:
            lines = problem.splitlines()
            line = next(i for i, text in enumerate(lines, 1) if "return Tolerance(" in text)
            print_message(
                "note: if the values are almost right, say how much they may differ, at "
                f"variants/{kernel}/problem.py:{line}, where the tolerance is a guess; then "
                f"kernelexp emulate {shlex.quote(kernel)}"
            )
        raise


def _usual_arch(loaded: Project) -> str:
    """The architecture that the project's kernels are for, or the first of several."""
    targets = (arch for kernel in loaded.kernels.values() for arch in kernel.targets)
    return next(targets, "sm_90a")


def _answers(words: Words) -> Answers:
    from kernelexp.services.adopt import adopted, draft
    from kernelexp.services.adopt.expressions import parse_expressions, parse_reference

    return draft.Answers(
        block=adopted.parse_block(words.block) if words.block else None,
        grid=parse_expressions(words.grid) if words.grid else (),
        smem_bytes=words.smem,
        shapes={name: parse_expressions(text) for name, text in _pairs(words.shapes, "--shape")},
        workspaces=tuple(words.workspaces),
        zeros=tuple(words.zeros),
        values={name: _number(text) for name, text in _pairs(words.values, "--value")},
        emulated={name: _whole(text) for name, text in _pairs(words.emulated, "--emulated")},
        references={
            name: parse_reference(text) for name, text in _pairs(words.references, "--reference")
        },
    )


def _pairs(texts: Sequence[str], option: str) -> list[tuple[str, str]]:
    from kernelexp.services.adopt.entry import python_name

    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} {text!r} should be NAME=..., with a parameter's name.")
        pairs.append((python_name(name.strip()), value.strip()))
    return pairs


def _number(text: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise UsageError(f"{text!r} should be a number, as the value of a parameter.")


def _whole(text: str) -> int:
    value = _number(text)
    if not isinstance(value, int):
        raise UsageError(f"{text!r} should be a whole number.")
    return value


def _tell(compiled: Compiled, answers: Answers) -> None:
    """What was found and what was left out."""
    from kernelexp.services.adopt import draft

    entry = compiled.entry
    typer.echo(f"entry: {entry.signature}")
    for parameter in entry.parameters:
        typer.echo(f"  {_describe(parameter)}")
        for member in parameter.members:
            typer.echo(f"    {_describe(member)}")
    for name in draft.read_and_written(entry, answers):
        print_message(
            f"note: {name} is read and written: it is an input and an output, and holds the input "
            f"before every launch; if it starts as zero, say --zero {name} where it is a result, "
            f"--workspace {name} where it is the kernel's own memory"
        )
    for file in dict.fromkeys(each.file for each in compiled.left):
        parts = [
            f"#include {each.include}" if each.include else _spell_lines(each)
            for each in compiled.left
            if each.file == file
        ]
        typer.echo(f"left out of the copy of {file}, lines: {', '.join(parts)}")


def _describe(parameter: KernelParameter) -> str:
    """x: float*, 8 bytes, read"""
    used = {(True, False): "read", (False, True): "written", (True, True): "read and written"}
    if parameter.ignored:
        role = "not used: 0 is passed"
    elif parameter.is_pointer:
        role = used.get((parameter.read, parameter.written), "not used")
    else:
        role = "scalar" if parameter.scalar else "structure"
    kind = f"{parameter.type or '?'}{'*' * parameter.is_pointer}"
    return f"{parameter.name}: {kind}, {parameter.size} bytes, {role}"


def _spell_lines(left: Omitted) -> str:
    if left.first_line == left.last_line:
        return str(left.first_line)
    return f"{left.first_line}-{left.last_line}"


def _ask(compiled: Compiled, answers: Answers) -> Answers:
    """The answers with those of a person at the terminal; an empty one leaves a blank."""
    from kernelexp.services.adopt import adopted, draft
    from kernelexp.services.adopt.expressions import parse_expressions

    values, grid, smem_bytes = dict(answers.values), answers.grid, answers.smem_bytes
    threads = draft.block(compiled.entry, answers)
    if threads is None:
        threads = _prompt("threads of a CTA, as in 256 or 16,16", adopted.parse_block)
    for each in compiled.entry.values:
        if each.scalar and each.name not in values:
            value = _prompt(f"value of {each.type} {each.name}", _number)
            values.update({each.name: value} if value is not None else {})
    answers = _ask_arrays(compiled.entry.values, answers)
    if compiled.entry.dynamic_smem and not smem_bytes:
        smem_bytes = _prompt("bytes of dynamic shared memory", _whole) or 0
    if not grid:
        grid = _prompt("CTAs of the grid, as in N/64,M/64", parse_expressions) or ()
    return msgspec.structs.replace(
        answers, block=threads, values=values, grid=grid, smem_bytes=smem_bytes
    )


def _ask_arrays(parameters: Sequence[KernelParameter], answers: Answers) -> Answers:

    from kernelexp.services.adopt.expressions import parse_expressions, parse_reference

    shapes, references = dict(answers.shapes), dict(answers.references)
    workspaces, zeros = list(answers.workspaces), list(answers.zeros)
    for parameter in parameters:
        if parameter.is_pointer and parameter.name not in shapes:
            shape = _prompt(f"shape of {parameter.name}, as in M,K", parse_expressions)
            shapes.update({parameter.name: shape} if shape else {})
        if parameter.read and parameter.written and parameter.name not in (*workspaces, *zeros):
            if typer.confirm(f"is {parameter.name} zero before each launch?", default=False):
                is_result = typer.confirm(f"is {parameter.name} a result?", default=True)
                (zeros if is_result else workspaces).append(parameter.name)
        if (
            parameter.is_pointer
            and parameter.written
            and parameter.name not in (*references, *workspaces)
        ):
            expected = _prompt(f"what {parameter.name} should be, as in A @ B", parse_reference)
            references.update({parameter.name: expected} if expected else {})
    return msgspec.structs.replace(
        answers,
        shapes=shapes,
        workspaces=tuple(workspaces),
        zeros=tuple(zeros),
        references=references,
    )


def _prompt(question: str, parse: Callable[[str], T]) -> T | None:
    """The answer, asked for until it can be parsed; None where it is empty."""
    while True:
        text = typer.prompt(f"{question} (empty: later)", default="", show_default=False).strip()
        try:
            return parse(text) if text else None
        except UsageError as error:
            print_message(f"error: {error}")
