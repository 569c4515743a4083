"""The baseline of an experiment that names none: what was accepted last, or the defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.logs import decisions
from kernelexp.logs.decisions import Decision
from kernelexp.model.axes import Point
from kernelexp.model.experiment import Kernel
from kernelexp.project.faults import Fault
from kernelexp.project.meaning import ProjectEntry
from kernelexp.project.points import check_point


def fill(
    entries: Iterable[ProjectEntry], kernels: Mapping[str, Kernel], root: Path
) -> tuple[list[ProjectEntry], list[Fault]]:
    """The entries with the baselines that were left out; a fault for each that can't be taken."""
    filled: list[ProjectEntry] = []
    faults: list[Fault] = []
    decided: Sequence[Decision] | None = None
    for entry in entries:
        if entry.experiment and not entry.names_baseline:
            decided = decisions.read_all(root)[0] if decided is None else decided
            point, fault = _take(entry, decided, kernels)
            faults += [fault] if fault else []
            experiment = msgspec.structs.replace(entry.experiment, baseline=point)
            entry = msgspec.structs.replace(entry, experiment=experiment)
        filled.append(entry)
    return filled, faults


def _take(
    entry: ProjectEntry, decided: Sequence[Decision], kernels: Mapping[str, Kernel]
) -> tuple[Point, Fault | None]:
    """The baseline as a point, without the axes that are at their default."""
    assert entry.experiment
    kernel, arch = entry.experiment.kernel, entry.experiment.arch
    axes = decisions.baseline_of(decided, entry.id, kernel, arch)
    target = kernels[kernel].targets.get(arch) if kernel in kernels else None
    if axes is None or target is None:
        return {}, None  # an unknown target has a fault of its own
    for _, complaint in check_point(axes, target.axes):
        message = (
            f"without a baseline this starts from the variant that was accepted last, which is "
            f"none any more ({complaint.rstrip('.')}): write a baseline."
        )
        return {}, entry.document.fault(entry.path, message)
    return {
        name: value
        for name, value in axes.items()
        if (type(value), value) != (type(target.axes[name].default), target.axes[name].default)
    }, None
