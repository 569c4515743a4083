"""kernelexp sections: tables of a profile with what their values mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.completion import complete, experiment_names
from kernelexp.cli.console import output
from kernelexp.cli.options import HERE, JsonOption, ProjectOption
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from kernelexp.dossier.subjects import Subject
    from kernelexp.model.arm import Arm, ProfiledEvidence
    from kernelexp.project import Project
    from kernelexp.project.sections.evaluate import SectionReading
    from kernelexp.project.sections.given import Run
    from kernelexp.report.document.document import Block


@app.command()
def sections(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE",
            help="A profile's run (kernelexp show F3 lists them) or file, a CSV page or .ncu-rep "
            "report of ncu (FILE:2 for its launch 2), or an experiment whose run was profiled "
            "(F3:baseline or F3:2 for an arm).",
            autocompletion=complete(experiment_names),
        ),
    ],
    which: Annotated[
        str,
        typer.Option(
            "--sections",
            metavar="NAMES",
            help="With commas: tensor, pipes, conflicts, multicast, tmem, icache, stalls, global, "
            "source, gap, or files of your own: my.yaml. All of them without it.",
        ),
    ] = "",
    time_ms: Annotated[
        float | None,
        typer.Option(
            "--time-ms", metavar="MS", help="The measured time, if the profile's run has none."
        ),
    ] = None,
    peer_ms: Annotated[
        float | None, typer.Option("--peer-ms", metavar="MS", help="The peer's time, for the gap.")
    ] = None,
    peer: Annotated[
        str, typer.Option("--peer", metavar="NAME", help="Name of the peer, such as cuBLAS.")
    ] = "",
    flops: Annotated[
        float | None,
        typer.Option(
            "--flops", metavar="NUMBER", help="Useful FLOPs of the launch, if they are not known."
        ),
    ] = None,
    minimum_bytes: Annotated[
        float | None,
        typer.Option(
            "--bytes", metavar="NUMBER", help="Bytes that the launch must move to or from memory."
        ),
    ] = None,
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype", metavar="TYPE", help="The operands' type, for the peak: fp8, bf16, tf32."
        ),
    ] = "",
    names: Annotated[bool, typer.Option("--names", help="List ncu's names of the figures.")] = (
        False
    ),
    markdown: Annotated[bool, typer.Option("--markdown", help="Print markdown.")] = False,
    json: JsonOption = False,
    project: ProjectOption = HERE,
) -> None:
    """Show a profile as tables: metric, value, interpretation; last, the gap to the peak.

    For example:
        kernelexp sections published-9bf658a --dtype fp8
        kernelexp sections report.ncu-rep --peer cuBLAS --peer-ms 0.365
    """
    from kernelexp.project.sections.given import Run

    found = _find(subject, project)
    evidence = found.arm.profiled
    if evidence is None:
        raise UsageError(common.unprofiled(found.label, found.arm, _project(subject, project)))
    given = {
        "--time-ms": time_ms,
        "--peer-ms": peer_ms,
        "--flops": flops,
        "--bytes": minimum_bytes,
    }
    for option, value in given.items():
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"{option} {value:g}: give a number above 0.")
    known = _known(found.arm)
    run = Run(
        time_ms=time_ms or known.time_ms,
        time_source="given" if time_ms else known.time_source,
        peer=peer,
        peer_ms=peer_ms,
        flops=flops or known.flops,
        flops_source="given" if flops else known.flops_source,
        minimum_bytes=minimum_bytes,
        dtype=_dtype(dtype, evidence),
    )
    readings = _evaluate(which, evidence, run)
    output("sections", readings, _document(found, readings, names), json, markdown)


def _find(text: str, start: Path) -> Subject:
    from kernelexp.dossier import subjects

    project = _project(text, start)
    if project is not None and subjects.is_variant(project, text):
        from kernelexp.model.arm import Arm
        from kernelexp.project import parse_variant

        variant = parse_variant(project, text)
        arm = Arm(kernel=variant.kernel, arch=variant.arch, axes=dict(variant.axes))
        raise UsageError(common.unprofiled(project.label(variant), arm, project))
    return subjects.find(project, text)


def _project(text: str, start: Path) -> Project | None:
    """Where `text` is looked up; a file needs none."""
    from kernelexp.dossier import subjects

    return None if subjects.is_file(text) else common.load(start, sources=False)


def _known(arm: Arm) -> Run:
    """Time and work, as they were measured or else published."""
    from kernelexp.project.sections.given import Run

    if arm.measured and arm.measured.time_us is not None:
        flops = float(arm.measured.flops) or None
        return Run(time_ms=arm.measured.time_us / 1000, time_source="measured", flops=flops)
    result = arm.published
    if result is None or result.time_ms is None:
        return Run()
    work = result.tflops and result.tflops * 1e12 * result.time_ms / 1000
    return Run(
        time_ms=result.time_ms,
        time_source="published",
        flops=work,
        flops_source="published rate x time",
    )


def _dtype(text: str, evidence: ProfiledEvidence) -> str:
    from kernelexp.facts import chips
    from kernelexp.model.errors import join

    chip = chips.find(evidence.device)
    if text and chip and text not in chip.tensor:
        raise UsageError(f"--dtype {text}: of the {chip.name}, known are {join(chip.tensor)}.")
    return text


def _evaluate(which: str, evidence: ProfiledEvidence, run: Run) -> list[SectionReading]:
    from kernelexp.project import sections as files
    from kernelexp.project.sections.evaluate import evaluate
    from kernelexp.project.sections.gap import gap

    names = [name.strip() for name in which.split(",") if name.strip()] or [*files.NAMES, "gap"]
    return [
        gap(evidence, run) if section.name == "gap" else evaluate(section, evidence, run)
        for section in files.find(names)
    ]


def _document(found: Subject, readings: list[SectionReading], names: bool) -> Iterator[Block]:
    from kernelexp.report.document.document import Heading, paragraph
    from kernelexp.report.variants import sections as report

    yield Heading(f"Sections of {found.label}")
    if found.about:
        yield paragraph("; ".join(found.about))
    for words in found.warnings:
        yield paragraph(f"warning: {words}.", style="warn")
    for reading in readings:
        yield from report.document(reading, names)
