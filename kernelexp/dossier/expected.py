"""Expected figures of an experiment, judged by the records that speak for its candidates."""

from __future__ import annotations

from kernelexp.dossier.standing import Standings
from kernelexp.judge.expectations import Judged, judge
from kernelexp.model.arm import Arm
from kernelexp.model.variant import arm_names


def of_experiment(name: str, standings: Standings) -> dict[str, tuple[Judged, ...]]:
    """What experiment `name` expects now, judged by the records that speak for its candidates."""
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
