"""The tables of a profile with what their values mean, as `show` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from kernelexp.cli import common
from kernelexp.cli.console import output
from kernelexp.model.errors import UsageError
from kernelexp.project.sections.given import Run

if TYPE_CHECKING:
    from pathlib import Path

    from kernelexp.dossier.subjects import Subject
    from kernelexp.model.arm import Arm, ProfiledEvidence
    from kernelexp.project import Project
    from kernelexp.project.sections.evaluate import SectionReading
    from kernelexp.report.document.document import Block


def show(
    subject: str,
    which: str,
    run: Run,
    project: Path,
    *,
    names: bool = False,
    markdown: bool = False,
    json: bool = False,
) -> None:
    """Prints the tables; `run` has what the command line says of the launch, None where nothing."""
    profiled = _find(subject, project)
    evidence = profiled.arm.profiled
    if evidence is None:
        raise UsageError(
            common.unprofiled(profiled.label, profiled.arm, _project(subject, project))
        )
    _refuse_not_positive(run)
    readings = _evaluate(which, evidence, _completed(run, profiled.arm, evidence))
    output("sections", readings, _document(profiled, readings, names), json, markdown)


def _refuse_not_positive(run: Run) -> None:
    options = {
        "--time-ms": run.time_ms,
        "--peer-ms": run.peer_ms,
        "--flops": run.flops,
        "--bytes": run.minimum_bytes,
    }
    for option, value in options.items():
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"{option} {value:g}: give a number above 0.")


def _completed(run: Run, arm: Arm, evidence: ProfiledEvidence) -> Run:
    """Returns the run with time and work from the record, where the command line says neither."""
    known = _known(arm)
    return msgspec.structs.replace(
        run,
        time_ms=run.time_ms or known.time_ms,
        time_source="given" if run.time_ms else known.time_source,
        flops=run.flops or known.flops,
        flops_source="given" if run.flops else known.flops_source,
        dtype=_dtype(run.dtype, evidence),
    )


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
    """Returns the project to look up `text` in; a file needs none."""
    from kernelexp.dossier import subjects

    return None if subjects.is_file(text) else common.load(start, sources=False)


def _known(arm: Arm) -> Run:
    """Time and work, as they were measured or else published."""
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
    from kernelexp.project.sections.evaluate import evaluate, gap

    names = [name.strip() for name in which.split(",") if name.strip()] or [*files.NAMES, "gap"]
    return [
        gap(evidence, run) if section.name == "gap" else evaluate(section, evidence, run)
        for section in files.find(names)
    ]


def _document(profiled: Subject, readings: list[SectionReading], names: bool) -> Iterator[Block]:
    from kernelexp.report.document.document import Heading, paragraph
    from kernelexp.report.variants import sections as report

    yield Heading(f"Sections of {profiled.label}")
    if profiled.about:
        yield paragraph("; ".join(profiled.about))
    for words in profiled.warnings:
        yield paragraph(f"warning: {words}.", style="warn")
    for reading in readings:
        yield from report.document(reading, names)
