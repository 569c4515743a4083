"""kernelexp plot: charts of the history, a sweep, a run, stalls, the roofline."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.completion import variant_names
from kernelexp.cli.console import output, print_document
from kernelexp.cli.options import HERE, argument, option
from kernelexp.model.errors import UsageError, join, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernelexp.model.arm import Arm
    from kernelexp.project import Project
    from kernelexp.report.charts.chart import Chart
    from kernelexp.report.document.document import Block


class ChartKind(StrEnum):
    """Kinds of chart."""

    HISTORY = "history"
    SWEEP = "sweep"
    RUN = "run"
    STALLS = "stalls"
    ROOFLINE = "roofline"


@app.command()
def plot(
    kind: Annotated[
        ChartKind | None,
        argument(
            "[CHART]",
            "history, sweep, run, stalls or roofline; what there is of each without one.",
            show_default=False,
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        argument(
            "[NAME]...",
            "history, roofline: KERNEL or KERNEL@ARCH, all without one. sweep: the same, for the "
            "latest sweep, or its run. run: an experiment, for its latest measured run, or a "
            "run. stalls: profiles, as for `kernelexp show`.",
            completion=variant_names,
        ),
    ] = None,
    out: Annotated[Path | None, option("--out -o FILE", "Draw into FILE.svg or FILE.png.")] = None,
    by: Annotated[str, option("--by AXIS,AXIS", "The two axes of a sweep's map.")] = "",
    dtype: Annotated[
        str, option("--dtype TYPE", "The operands' type, for the roofline: fp8, bf16.")
    ] = "",
    json: options.Json = False,
    project: options.Project = HERE,
) -> None:
    """Show a chart: in the terminal, or drawn into an SVG or PNG file.

    For example:
        kernelexp plot history --out history.svg
    """
    from kernelexp.report.charts import text
    from kernelexp.report.site import drawing

    if by and kind is not ChartKind.SWEEP:
        raise UsageError("--by goes with `plot sweep`.")
    if dtype and kind is not ChartKind.ROOFLINE:
        raise UsageError("--dtype goes with `plot roofline`.")
    if out is not None:
        drawing.require_format(out)
        common.require_folder(out)
    if kind is None:
        if out is not None or json or by or dtype:
            raise UsageError("CHART is missing; `kernelexp plot` lists what there is.")
        print_document(_listed(common.load(project, sources=False)))
        return
    charts = _make(kind, common.load(project, sources=False), names or [], by, dtype)
    if out is None:
        output("plot", charts, text.render(charts), json)
        return
    drawing.write(charts, out)
    if json:
        output("plot", charts, (), json)
    else:
        typer.echo(f"wrote {out}")


def _listed(project: Project) -> Iterable[Block]:
    """Returns a table of what can be drawn, a row for each chart."""
    from kernelexp.report.document.document import table

    kernels = f"{join(list(project.kernels))}, or all of them" if project.kernels else "none"
    named = {
        kind: join(_known(kind, project))
        for kind in (ChartKind.SWEEP, ChartKind.RUN, ChartKind.STALLS)
    }
    rows = [
        (f"plot {ChartKind.HISTORY}", kernels),
        *((f"plot {kind} NAME", names) for kind, names in named.items()),
        (f"plot {ChartKind.ROOFLINE}", kernels),
    ]
    yield table(("chart", "of"), rows)


def _make(kind: ChartKind, project: Project, names: list[str], by: str, dtype: str) -> list[Chart]:
    makers: dict[ChartKind, Callable[[], Iterable[Chart]]] = {
        ChartKind.HISTORY: lambda: _history(project, names),
        ChartKind.SWEEP: lambda: _sweep(project, _one(kind, names, project), by),
        ChartKind.RUN: lambda: _run(project, _one(kind, names, project)),
        ChartKind.STALLS: lambda: _stalls(project, names),
        ChartKind.ROOFLINE: lambda: _roofline(project, names, dtype),
    }
    return list(makers[kind]())


def _one(kind: ChartKind, names: list[str], project: Project) -> str:
    if len(names) != 1:
        known = join(_known(kind, project)) or "none yet"
        raise UsageError(f"plot {kind} shows one {kind}: name it; known: {known}.")
    return names[0]


def _known(kind: ChartKind, project: Project) -> list[str]:
    """Returns what can be drawn: measured experiments, kernels that were swept, profiles."""
    from kernelexp.logs import profiles, records
    from kernelexp.model.experiment import SWEEP, is_sweep

    if kind is ChartKind.STALLS:
        return [profile.run for profile in profiles.read_all(project.root)[0]]
    if kind is ChartKind.SWEEP:
        return [name for name in project.kernels if records.count(project.root, f"{SWEEP}{name}")]
    measured = (record.experiment for record in records.measured(project.root))
    return [name for name in dict.fromkeys(measured) if not is_sweep(name)]


def _kernels(project: Project, names: list[str]) -> set[tuple[str, str]]:
    """The kernels and architectures that KERNEL or KERNEL@ARCH name; all without a name."""
    every = {(k, arch) for k, kernel in project.kernels.items() for arch in kernel.targets}
    chosen = set()
    for name in names:
        kernel, _, arch = name.partition("@")
        own = {one for one in every if one[0] == kernel and arch in ("", one[1])}
        if not own:
            known = sorted({*project.kernels, *(f"{kernel}@{arch}" for kernel, arch in every)})
            raise UsageError(f"there is no kernel {name!r}{suggest(name, known)}.")
        chosen |= own
    return chosen or every


def _history(project: Project, names: list[str]) -> Iterable[Chart]:
    from kernelexp.report.charts import changes
    from kernelexp.services import kernel_logs

    chosen = _kernels(project, names)
    logs = kernel_logs.assemble(project)
    common.warn(project.root, (unreadable for one in logs for unreadable in one.unreadable))
    charts = list(changes.of_history([one for one in logs if (one.kernel, one.arch) in chosen]))
    if not charts:
        raise UsageError("no committed step has a time yet: measure one of the history's steps.")
    return charts


def _sweep(project: Project, name: str, by: str) -> Iterable[Chart]:
    from kernelexp.logs import records
    from kernelexp.model.experiment import SWEEP, is_sweep
    from kernelexp.model.record import swept_axes
    from kernelexp.report.runs import sweep_map
    from kernelexp.services.run import sweep

    if name.removeprefix(SWEEP).partition("@")[0] in project.kernels:
        record = sweep.latest(project, name.removeprefix(SWEEP))
    else:
        record = records.read_file(records.find(project.root, name))
    if not is_sweep(record.experiment):
        raise UsageError(f"{record.run} is a run of {record.experiment}, not a sweep.")
    axes = sweep.parse_map(swept_axes(record), by) if by else None
    charts = list(sweep_map.charts(record, axes))
    if not charts:
        raise UsageError(f"the sweep {record.run} has no map: it takes two swept axes and a build.")
    return charts


def _run(project: Project, name: str) -> Iterable[Chart]:
    from kernelexp.logs import records
    from kernelexp.report.charts import changes

    record = records.read_file(records.find(project.root, project.id_of(name), measured=True))
    charts = [*changes.of_sizes(record), *changes.of_pairs(record)]
    if not charts:
        raise UsageError(f"the run {record.run} timed no pairs: name a measured one.")
    return charts


def _stalls(project: Project, names: list[str]) -> Iterable[Chart]:
    from kernelexp.dossier import subjects
    from kernelexp.report.charts import ncu

    if not names:
        known = join(_known(ChartKind.STALLS, project)) or "none yet"
        raise UsageError(f"plot stalls shows profiles side by side: name some; known: {known}.")
    result = [subjects.find(project, name) for name in names]
    profiled = []
    for one in result:
        if one.arm.profiled is None:
            raise UsageError(common.unprofiled(one.label, one.arm, project))
        profiled.append((one.label, one.arm.profiled))
    return [ncu.stalls(profiled)]


def _roofline(project: Project, names: list[str], dtype: str) -> Iterable[Chart]:
    from kernelexp.logs import profiles, records
    from kernelexp.model.experiment import spell_point
    from kernelexp.report.charts import ncu

    def measured(arm: Arm) -> Arm | None:
        device = arm.profiled.device if arm.profiled else ""
        result = records.latest_measured(project.root, arm, arm.files, device)
        return result[1] if result else None

    chosen = _kernels(project, names)
    kept, unreadable = profiles.read_all(project.root)
    common.warn(project.root, unreadable)
    own = [
        (spell_point(one.arm.axes), one) for one in kept if (one.arm.kernel, one.arm.arch) in chosen
    ]
    charts, reasons = ncu.rooflines(own, measured, dtype)
    if not charts:
        why = "; ".join(reasons) or "there is no profile; kernelexp profile takes one"
        raise UsageError(f"no variant can be placed on a roofline: {why}.")
    return charts
