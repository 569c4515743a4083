"""One variant as several revisions built it, timed in the same processes."""

from __future__ import annotations

from collections.abc import Sequence

from kernelexp.dossier.session import Session
from kernelexp.evidence.measure.measured import Measuring
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import Experiment
from kernelexp.model.record import Record
from kernelexp.model.variant import Variant, arm_names
from kernelexp.project import Project
from kernelexp.services.run import conclusion, runner, runs, timing
from warpsim.launch import Launch


def compare(
    project: Project,
    variant: Variant,
    arms: Sequence[tuple[Arm, Sequence[Launch]]],
    session: Session,
    measuring: Measuring,
) -> Record:
    """Times arms, the baseline first, and judges them as a run does with its own; nothing is
    written. An arm without launches is launched as the project's problem.py says.

    Raises what kept them from being timed.
    """
    experiment = Experiment(
        kernel=variant.kernel,
        arch=variant.arch,
        title=f"{project.label(variant)} at several revisions",
        candidate={},
        hypothesis="The time is that of the first revision.",
    )
    settings = runs.RunSettings(measuring=measuring, keep=False)
    shared = runner.share(project, project.root, session, settings=settings)
    built = [arm for arm, _ in arms]
    names = arm_names(len(arms) - 1)
    launches = {name: item for name, (_, item) in zip(names, arms, strict=True) if item}
    timed = timing.take(shared, built, launches)
    return conclusion.conclude(shared, "revisions", experiment, built, timed).record
