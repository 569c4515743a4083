"""A record as a project of its own: its files as they were, its axes, its one experiment."""

from __future__ import annotations

from pathlib import Path

from kernelexp.logs import sources
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import Axis, Experiment, Kernel, Target
from kernelexp.model.record import Record, is_usual, own_axes
from kernelexp.project import Project


def project_of(root: Path, record: Record) -> Project:
    """The project of a run's own time, restored under .kernelexp; UsageError where files are lost.

    Its experiment has the same id and the same variants, as they were recorded.
    """
    _require_sources(record)
    is_program = any(arm.program for arm in record.arms)
    if not is_program and f"variants/{record.kernel}/problem.py" not in record.host_files:
        raise UsageError(
            f"run {record.run} does not say which problem.py it was made with, as runs of early "
            "versions do not: it can't be repeated."
        )
    return _project(sources.restore(root, record), record)


def sources_of(root: Path, record: Record) -> Project:
    """The sources of a run as they were, restored; problem.py may be missing."""
    _require_sources(record)
    return _project(sources.restore(root, record), record)


def project_now(root: Path, record: Record) -> Project:
    """The project of a run: the tree itself, if all files are there as they were; else restored.

    A run of an early version, which does not say which problem.py it had, takes today's.
    """
    _require_sources(record)
    if sources.are_unchanged(root, sources.of_record(record)):
        return _project(root, record)
    return project_of(root, record)


def _require_sources(record: Record) -> None:
    if record.provenance != "run":
        raise UsageError(f"the {record.experiment} record is published: its sources are not here.")
    if not sources.of_record(record):
        raise UsageError(f"run {record.run} built nothing: there are no sources to take again.")


def _project(root: Path, record: Record) -> Project:
    return Project(
        root=root,
        kernels={record.kernel: _kernel(record)},
        experiments={record.experiment: _experiment(record)},
        history=(),
        places={record.experiment: f"the record of run {record.run}"},
    )


def _kernel(record: Record) -> Kernel:
    values = {
        axis: Axis(
            values=list(
                {
                    (type(v), v): v
                    for arm in record.arms
                    if axis in arm.axes
                    for v in (arm.axes[axis],)
                }.values()
            ),
            default=value,
        )
        for axis, value in record.baseline.axes.items()
    }
    folder = f"variants/{record.kernel}/"
    target = Target(
        source=record.baseline.sources or record.baseline.source.removeprefix(folder),
        axes=values,
        flags=list(_own_flags(record)),
        config=record.baseline.config.removeprefix(folder),
    )
    program = next((arm.program.spec for arm in record.arms if arm.program), None)
    return Kernel(
        title=record.title,
        problem="",
        targets={record.arch: target},
        runner="program" if program else "kernel",
        program=program,
    )


def _own_flags(record: Record) -> tuple[str, ...]:
    """The flags of the kernel's target: what is behind those that every variant gets."""
    flags = next((arm.flags for arm in record.arms if arm.flags), ())
    places = [n for n, flag in enumerate(flags) if flag.startswith(("arch=", "-arch="))]
    return flags[places[0] + 1 :] if places else ()


def _experiment(record: Record) -> Experiment:
    return Experiment(
        kernel=record.kernel,
        arch=record.arch,
        title=record.title,
        baseline=dict(record.baseline.axes),
        candidate=[own_axes(record.baseline, arm) for arm in record.arms[1:]],
        hypothesis=record.hypothesis,
        size="" if is_usual(record.size) else record.size,
    )
