"""kernelexp decide: people's decisions beside the verdicts."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import msgspec

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.completion import experiment_names
from kernelexp.cli.console import output
from kernelexp.cli.options import HERE, argument, option
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.project import Project
    from kernelexp.services.deciding import Done
    from kernelexp.services.kernel_logs import KernelLog


class Action(Enum):
    """A person's decision on a candidate."""

    accept = "accept"
    reject = "reject"
    replace = "replace"


@app.command()
def decide(
    action: Annotated[Action, argument("accept|reject|replace", "The decision.")],
    experiment: Annotated[
        str,
        argument(
            "EXPERIMENT",
            "Id of an experiment or of a step of the history; T3:1 is its first candidate.",
            completion=experiment_names,
        ),
    ],
    by: Annotated[
        str | None,
        option(
            "--by EXPERIMENT",
            "With replace: the experiment whose candidate takes its place.",
            completion=experiment_names,
        ),
    ] = None,
    candidate: Annotated[
        int | None, option("--candidate N", "Which of several candidates.", min=1)
    ] = None,
    commit: Annotated[str, option("--commit REV", "The commit that the decision is about.")] = "",
    note: Annotated[str, option("--note TEXT", "A short note for the log's table.")] = "",
    why: Annotated[str, option("--why TEXT", "Why the result is what it is.")] = "",
    json: options.Json = False,
    project: options.Project = HERE,
) -> None:
    """Accept, reject or replace a candidate.

    An accepted candidate is its kernel's current best, from which experiments without a baseline
    start. Rejecting or replacing it makes the one accepted before it the best again. A later
    decision on the same candidate undoes an earlier one; the machine's verdict never changes.

    For example:
        kernelexp decide accept F8 --commit abf04a5 --note 'simpler code'
        kernelexp decide reject F9 --why 'needs 1,024 TMEM columns'
        kernelexp decide replace F5 --by 892766c
    """
    from kernelexp.services import deciding

    if (by is None) is (action is Action.replace):
        raise UsageError("--by goes with replace, as in kernelexp decide replace F5 --by F13.")
    loaded = common.load(project, sources=False)
    experiment, candidate = _numbered(loaded.id_of(experiment), candidate)
    before = _log(loaded, experiment)
    request = deciding.DecisionRequest(commit=commit, note=note, why=why)
    if by is not None:
        done = deciding.replace(loaded, experiment, loaded.id_of(by), candidate, request)
    elif action is Action.accept:
        done = deciding.accept(loaded, experiment, candidate, request)
    else:
        done = deciding.reject(loaded, experiment, candidate, request)
    _show(loaded, done, before, json)


def _log(project: Project, experiment: str) -> KernelLog:
    """Returns the log of the experiment's kernel."""
    from kernelexp.services import kernel_logs

    own = project.experiment(experiment)
    where = (own.kernel, own.arch)
    alike = {k: v for k, v in project.experiments.items() if (v.kernel, v.arch) == where}
    (result,) = kernel_logs.assemble(msgspec.structs.replace(project, experiments=alike))
    return result


def _numbered(experiment: str, candidate: int | None) -> tuple[str, int | None]:
    """`T3:1` names a candidate as it does for `compare`."""
    name, colon, number = experiment.rpartition(":")
    if not (colon and number.isdecimal() and int(number)):
        return experiment, candidate
    if candidate not in (None, int(number)):
        raise UsageError(f"{experiment} and --candidate {candidate} name two candidates: drop one.")
    return name, int(number)


def _show(project: Project, done: Done, before: KernelLog, json: bool) -> None:
    """Prints the decision and the current best; renders the log again."""
    from kernelexp.logs import decisions
    from kernelexp.report.log import decisions as report
    from kernelexp.report.log import logbook, pending
    from kernelexp.services import deciding

    common.refresh_log(common.load(project.root, sources=False))
    decided, unreadable = decisions.read_all(project.root)
    common.warn(project.root, unreadable)
    last = done.decisions[-1]
    best = decisions.best(decided, last.kernel, last.arch)
    after = _log(project, last.experiment)
    accepted = last.word == "accepted"
    values = deciding.Made(
        decisions=done.decisions,
        best=best,
        stood=done.stood,
        slower=logbook.slower(before, after),
        waiting=pending.faster(after, pending.records_of(project.root)) if accepted else "",
    )
    output("decisions", values, report.made(project, values), json)
