"""kernelexp new: another experiment in experiments.yaml."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.completion import assignments
from kernelexp.cli.console import print_message
from kernelexp.cli.options import HERE, argument, option
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.project import Project


@app.command()
def new(
    title: Annotated[str, argument("[TITLE]", "What the experiment tries, in a line.")] = "",
    kernel: Annotated[str, option("--kernel KERNEL[@ARCH]", "The experiment's kernel.")] = "",
    set_: Annotated[
        list[str] | None,
        option(
            "--set AXIS=VALUE",
            "Where the candidate differs from the baseline. Repeatable.",
            completion=assignments,
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        option(
            "--baseline AXIS=VALUE", "Where the baseline differs from the defaults. Repeatable."
        ),
    ] = None,
    hypothesis: Annotated[str, option("--hypothesis TEXT", "What is expected, and why.")] = "",
    name: Annotated[str, option("--id ID", "Id of the experiment, instead of the next one.")] = "",
    origin: Annotated[
        str, option("--from RUN", "A sweep, for --row: its run, or sweep-KERNEL.")
    ] = "",
    row: Annotated[int | None, option("--row N", "The row of that sweep's table.")] = None,
    project: options.Project = HERE,
) -> None:
    """Add an experiment to experiments.yaml, with the next id.

    --from RUN --row N takes its variants from a sweep's table. All other lines of experiments.yaml
    stay as they are. To add a kernel, see kernelexp adopt.

    For example:
        kernelexp new 'Fewer stages' --kernel gemm --set stages=3
        kernelexp new --from sweep-gemm --row 2
    """
    from kernelexp.project import editing
    from kernelexp.system import disk

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
    with disk.alone(loaded.root):
        loaded = common.load(project)  # as it is now: another process may have added one
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
    from kernelexp.model.experiment import spell

    if all(spell(baseline[axis]) == spell(value) for axis, value in candidate.items()):
        raise UsageError(
            "the candidate is identical to the baseline: --set an axis to another value."
        )


def _ask() -> str:
    """The hypothesis, from a person at a terminal."""
    if not sys.stdin.isatty():
        return ""
    return str(typer.prompt("hypothesis: what do you expect, and why", default=""))
