"""Variants that are named on the command line as one experiment, the first as its baseline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import TIMED, Experiment, Point, Variant, spell, spell_point
from kernelexp.project import Project, editing

NAME = TIMED
"""What such an experiment is called where nothing is recorded."""


def plan(project: Project, variants: Sequence[Variant]) -> Experiment:
    """The experiment that compares the first variant with the others, each once.

    UsageError where they are not of one kernel and architecture, or fewer than two.
    """
    baseline, *others = variants
    for other in others:
        if (other.kernel, other.arch) != (baseline.kernel, baseline.arch):
            raise UsageError(
                f"{other.kernel}@{other.arch} and {baseline.kernel}@{baseline.arch} are not timed "
                "together: name variants of one kernel and one architecture."
            )
    own = [_own(baseline, other) for other in others if other != baseline]
    candidates = [point for place, point in enumerate(own) if point not in own[:place]]
    if not candidates:
        raise UsageError(
            f"{project.label(baseline)} is compared with itself only: name another variant, as in "
            f"{baseline.kernel}@{baseline.arch}:axis=value."
        )
    defaults = project.variant(baseline.kernel, baseline.arch)
    start = _own(defaults, baseline)
    return Experiment(
        kernel=baseline.kernel,
        arch=baseline.arch,
        title=f"{'; '.join(map(spell_point, candidates))} against {spell_point(start)}",
        baseline=start,
        candidate=candidates[0] if len(candidates) == 1 else candidates,
        hypothesis="",
    )


def alone(project: Project, experiment: Experiment) -> Project:
    """The project with nothing but this experiment, called NAME."""
    return msgspec.structs.replace(
        project, experiments={NAME: experiment}, history=(), places={NAME: "the command line"}
    )


def add(project: Project, experiment: Experiment) -> tuple[str, Path]:
    """Writes the experiment to the project's files under the next id; the id and the file."""
    name = editing.next_id(project, experiment.kernel, experiment.arch)
    fields = ("kernel", "arch", "title", "baseline", "candidate", "hypothesis")
    values: dict[str, Any] = {field: getattr(experiment, field) for field in fields}
    return name, editing.add(project, name, values)


def _own(baseline: Variant, variant: Variant) -> Point:
    """The axes in which a variant departs from another."""
    return {
        axis: value
        for axis, value in variant.axes.items()
        if spell(value) != spell(baseline.axes[axis])
    }
