"""kernelexp new: an experiment more in experiments.yaml, or a kernel from a source."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.completion import assignments, complete
from kernelexp.cli.console import print_message
from kernelexp.cli.options import HERE, NvccOption, ProjectOption
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.project import Project

SOURCES = (".cu", ".cuh", ".h", ".hpp", ".ptx", ".cubin")


@app.command()
def new(
    title: Annotated[
        str, typer.Argument(metavar="[TITLE]", help="What the experiment tries, in a line.")
    ] = "",
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel", metavar="KERNEL[@ARCH]", help="The experiment's kernel; or a new name."
        ),
    ] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="AXIS=VALUE",
            autocompletion=complete(assignments),
            help="Where the candidate differs from the baseline. Repeatable.",
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            metavar="AXIS=VALUE",
            help="Where the baseline differs from the defaults. Repeatable.",
        ),
    ] = None,
    hypothesis: Annotated[
        str, typer.Option("--hypothesis", metavar="TEXT", help="What is expected, and why.")
    ] = "",
    name: Annotated[
        str, typer.Option("--id", metavar="ID", help="Its id instead of the next one.")
    ] = "",
    origin: Annotated[
        str,
        typer.Option(
            "--from", metavar="RUN|FILE", help="A sweep, for --row; or a .cu, .ptx or .cubin."
        ),
    ] = "",
    row: Annotated[
        int | None, typer.Option("--row", metavar="N", help="The row of that sweep's table.")
    ] = None,
    entry: Annotated[
        str,
        typer.Option("--entry", metavar="NAME", help="Kernel in the source: 'gemm<64, 64>'."),
    ] = "",
    arch: Annotated[
        str, typer.Option("--arch", metavar="SM", help="Architecture of a new kernel.")
    ] = "",
    block: Annotated[
        str, typer.Option("--block", metavar="X,Y,Z", help="Threads per CTA: 256 or 16,16.")
    ] = "",
    grid: Annotated[
        str,
        typer.Option(
            "--grid", metavar="X,Y,Z", help="CTAs by integer parameters, rounded up: N/64,M/64."
        ),
    ] = "",
    smem: Annotated[
        int, typer.Option("--smem", min=0, metavar="BYTES", help="Dynamic shared memory.")
    ] = 0,
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", metavar="NAME=M,K", help="The shape of an array. Repeatable."),
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Option(
            "--value", metavar="NAME=NUMBER", help="A scalar's or a size's value. Repeatable."
        ),
    ] = None,
    emulated: Annotated[
        list[str] | None,
        typer.Option(
            "--emulated",
            metavar="NAME=NUMBER",
            help="The value to emulate with, if smaller. Repeatable.",
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            "--reference",
            metavar="NAME=EXPR",
            help="What an output should be: 'C=A @ B'. Repeatable.",
        ),
    ] = None,
    workspace: Annotated[
        list[str] | None,
        typer.Option(
            "--workspace",
            metavar="NAME",
            help="The kernel's own memory, zero before each launch. Repeatable.",
        ),
    ] = None,
    zero: Annotated[
        list[str] | None,
        typer.Option(
            "--zero",
            metavar="NAME",
            help="An output that is zero before each launch, as bins are. Repeatable.",
        ),
    ] = None,
    flag: Annotated[
        list[str] | None,
        typer.Option("--flag", metavar="FLAG", help="Argument for nvcc: --flag=-DX=4. Repeatable."),
    ] = None,
    signature: Annotated[
        str,
        typer.Option(
            "--signature",
            metavar="TEXT",
            help="Parameters of a .ptx or .cubin: 'const float* x, float* y, int n'.",
        ),
    ] = "",
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Add an experiment to experiments.yaml, or a kernel from a source.

    An experiment gets the next id; --from RUN --row N adds a row of a sweep's table. --from FILE
    copies a CUDA source, PTX or a cubin, compiles it, drafts the rest of a kernel, and executes it
    once nothing is blank. All other lines of experiments.yaml stay as they are.

    For example:
        kernelexp new 'Fewer stages' --kernel gemm --set stages=3
        kernelexp new --from gemm.cu --entry 'gemm<64>' --block 256
    """
    if Path(origin).suffix in SOURCES:
        if title or set_ or baseline or hypothesis or name or row is not None:
            raise UsageError("--from FILE adds a kernel: leave out what describes an experiment.")
        from kernelexp.cli.adopt import Words, adopt

        words = Words(
            entry=entry,
            kernel=kernel,
            arch=arch,
            block=block,
            grid=grid,
            smem=smem,
            shapes=shape or (),
            workspaces=workspace or (),
            zeros=zero or (),
            values=value or (),
            emulated=emulated or (),
            references=reference or (),
            flags=flag or (),
            signature=signature,
        )
        adopt(project, Path(origin), words, nvcc)
        return
    arrays = shape or workspace or zero or reference
    launch = block or grid or smem
    if entry or arch or launch or arrays or value or emulated or flag or signature:
        raise UsageError("these options describe a source: name it with --from FILE.cu.")
    from kernelexp.project import editing

    loaded = common.load(project)
    if bool(origin) != (row is not None):
        raise UsageError("--from and --row go together: a sweep's run, and a row of its table.")
    if row is not None:
        if set_ or baseline or kernel:
            raise UsageError("--from takes variants from the sweep: leave out what names others.")
        experiment = _of_sweep(loaded, origin, row)
    else:
        experiment = _of_words(loaded, kernel, title, set_ or [], baseline or [])
    if title:
        experiment["title"] = title
    if hypothesis or not experiment["hypothesis"]:
        experiment["hypothesis"] = hypothesis or _ask()
    name = name or editing.next_id(loaded, experiment["kernel"], experiment["arch"])
    editing.add(loaded, name, experiment)
    place = common.load(project).place(name)
    typer.echo(f"added {name}, {place}")
    if not experiment["hypothesis"]:
        print_message(f"note: write its hypothesis, at {place}")
    typer.echo(f"next: kernelexp run {name}")


def _of_sweep(loaded: Project, run: str, row: int) -> dict[str, Any]:
    from kernelexp.logs import records
    from kernelexp.services.run import sweep

    record = records.read_file(records.find(loaded.root, run))
    return sweep.experiment_of(loaded, record, row)


def _of_words(
    loaded: Project, kernel: str, title: str, sets: list[str], baseline: list[str]
) -> dict[str, Any]:
    from kernelexp.model.errors import join
    from kernelexp.project import parse_point

    if not title:
        raise UsageError("say what the experiment tries: kernelexp new TITLE --set AXIS=VALUE.")
    if not kernel and len(loaded.kernels) > 1:
        raise UsageError(f"say which kernel: --kernel; known: {join(loaded.kernels)}.")
    name, _, arch = (kernel or next(iter(loaded.kernels), "")).partition("@")
    default = loaded.variant(name, arch or None)
    target = loaded.kernel(name).targets[default.arch]
    start = parse_point(target, baseline, "--baseline")
    candidate = parse_point(target, sets, "--set")
    _refuse_equal(default.axes | start, candidate)
    return {
        "kernel": name,
        "arch": default.arch,
        "title": title,
        "baseline": start,
        "candidate": candidate,
        "hypothesis": "",
    }


def _refuse_equal(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> None:
    from kernelexp.model.axes import spell

    if all(spell(baseline[axis]) == spell(value) for axis, value in candidate.items()):
        raise UsageError(
            "the candidate is identical to the baseline: --set an axis to another value."
        )


def _ask() -> str:
    """The hypothesis, from a person at a terminal."""
    if not sys.stdin.isatty():
        return ""
    return str(typer.prompt("hypothesis: what do you expect, and why", default=""))
