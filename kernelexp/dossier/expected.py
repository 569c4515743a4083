"""Expectations of an experiment, and whether they predate the records they are judged by."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from kernelexp.dossier.standing import Standings
from kernelexp.judge.expectations import Judged, judge
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import arm_names

Rewriting: TypeAlias = Literal["", "reworded", "edited"]
"""What became of a hypothesis after it was measured: reworded has the same figures."""
_FIGURE = re.compile(r"\d[\d,.]*")


def of_experiment(name: str, standings: Standings) -> dict[str, tuple[Judged, ...]]:
    """Judges the current expectations of experiment `name` by the records of its candidates."""
    nothing = Arm(arch=standings.experiment.arch)
    judged = {}
    for place, standing, expected in zip(
        arm_names(len(standings.candidates))[1:],
        standings.candidates,
        standings.experiment.expectations,
        strict=True,
    ):
        record, arm = standing.record, standing.arm or nothing
        baseline, margin = (record.baseline, record.margin) if record else (nothing, 0.0)
        if expected:
            judged[place] = judge(expected, baseline, arm, margin, name)
    return judged


def written_later(standings: Standings) -> bool:
    """Whether a record that speaks is of a run before these expectations were written."""
    return any(
        expected and standing.record and expected not in standing.record.expect
        for standing, expected in zip(
            standings.candidates, standings.experiment.expectations, strict=True
        )
    )


def rewritten(standings: Standings) -> Rewriting:
    """Returns how the hypothesis differs from that of the measured records in use."""
    now = standings.experiment.hypothesis
    measured = {
        standing.record.hypothesis
        for standing in standings.candidates
        if standing.record and standing.record.measurement
    }
    other = [then for then in measured if then.split() != now.split()]
    if any(_figures(then) != _figures(now) for then in other):
        return "edited"
    return "reworded" if other else ""


def _figures(text: str) -> list[str]:
    return sorted(figure.rstrip(".,") for figure in _FIGURE.findall(text))
