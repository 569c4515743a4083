"""Helpers of several commands: load the project, find the compiler, warn of skipped records."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kernelexp.cli.console import print_message, progress_bars
from kernelexp.model.errors import KernelexpError, UsageError, explain

if TYPE_CHECKING:
    from kernelexp.dossier.session import Session
    from kernelexp.evidence.executor import Executor
    from kernelexp.logs.records import Unreadable
    from kernelexp.model.arm import Arm
    from kernelexp.project import Project
    from kernelexp.system.toolchain import Toolchain


def load(start: Path, *, sources: bool = True) -> Project:
    """The project at or above `start`; without `sources` its kernels' files may be missing."""
    from kernelexp import project

    return project.load(start, sources=sources)


def tools(project: Project, nvcc: str | None) -> Toolchain:
    """The compiler that --nvcc or the environment names, else the installed one."""
    from kernelexp.evidence import build
    from kernelexp.system import toolchain

    return toolchain.find(nvcc, project.root / build.CACHE)


@contextlib.contextmanager
def executor(device: str | None, devices: str | None, scheduler: str | None) -> Iterator[Executor]:
    """Yields the executor that --device, --devices or --scheduler name; UsageError for two."""
    given = {"--device": device, "--devices": devices, "--scheduler": scheduler}
    names = [name for name, text in given.items() if text is not None]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} do not go together: choose one.")
    if scheduler is None:
        from kernelexp.evidence.executor import Local

        yield Local(device if devices is None else devices)
        return
    from kernelexp.evidence import cluster

    with cluster.connect(scheduler) as workers:
        yield workers


@contextlib.contextmanager
def session(
    project: Project,
    nvcc: str | None,
    limit: list[str] | None = None,
    *,
    emulate: bool = False,
    device: str | None = None,
    devices: str | None = None,
    scheduler: str | None = None,
) -> Iterator[Session]:
    """Yields the session for a command's options; shows the progress meanwhile."""
    from kernelexp.cli.arguments import parse_limits
    from kernelexp.dossier.session import Session

    compiler, limits = tools(project, nvcc), parse_limits(limit)
    with (
        executor(device, devices, scheduler) as where,
        progress_bars(project.root) as bars,
    ):
        yield Session(
            tools=compiler, limits=limits, executor=where, emulate=emulate, on_progress=bars
        )


def record_file(start: Path, text: str) -> Path:
    """The file of a measured record that RUN names; a path needs no project."""
    from kernelexp.logs import records

    path = Path(text)
    if path.is_file():
        return path
    loaded = load(start, sources=False)
    return records.find(loaded.root, loaded.id_of(text), measured=True)


def warn(root: Path, unreadable: Iterable[Unreadable]) -> None:
    """A line on standard error for each file among the records that was skipped, once."""
    from kernelexp.model.text import printable

    for path, why in dict.fromkeys((one.path, one.why) for one in unreadable):
        name = path.relative_to(root) if path.is_relative_to(root) else path
        print_message(f"warning: skipped {printable(str(name))}: it {printable(why)}.")


def unprofiled(label: str, arm: Arm, project: Project | None) -> str:
    """Says that an arm has no profile of its own, and names the latest of its variant, if any."""
    from kernelexp.logs import profiles

    root = project.root if project else None
    latest = profiles.latest(root, arm.kernel, arm.arch, arm.axes) if root else None
    if latest is None:
        return f"{label} has no profile: kernelexp profile takes one, or imports one."
    return (
        f"{label} has no profile of its own: the latest of these axes, maybe of other sources, is "
        f"{latest.run}; name that."
    )


def write_log(project: Project, force: bool = False) -> bool:
    """Renders logs/EXPERIMENTS.md, and returns whether it changed; UsageError if the file there
    was written by somebody else."""
    from kernelexp.report.log import log, logbook
    from kernelexp.services import kernel_logs

    logs = kernel_logs.assemble(project)
    warn(project.root, (unreadable for one in logs for unreadable in one.unreadable))
    return log.write(project.root, logbook.file(logs), force)


def refresh_log(project: Project) -> None:
    """Renders the log after a run that is recorded: a log that can't be written is a warning."""
    try:
        write_log(project)
    except KernelexpError as error:
        print_message(f"warning: {error}")
    except OSError as error:
        print_message(f"warning: {explain(error)}.")


def require_folder(path: Path) -> None:
    """UsageError where a file that an option names can't be written, before any work is done."""
    if path.is_dir():
        raise UsageError(f"{path} can't be written: it is a folder.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path} can't be written: there is no folder {path.parent}.")
