"""kernelexp accept, reject and replace: people's decisions beside the verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.completion import complete, experiment_names
from kernelexp.cli.console import output
from kernelexp.cli.options import HERE, JsonOption, ProjectOption

if TYPE_CHECKING:
    from kernelexp.project import Project
    from kernelexp.services.deciding import Done

ExperimentArgument = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT",
        autocompletion=complete(experiment_names),
        help="Id of an experiment or of a step of the history.",
    ),
]
CandidateOption = Annotated[
    int | None,
    typer.Option("--candidate", metavar="N", min=1, help="Which of several candidates."),
]
CommitOption = Annotated[
    str, typer.Option("--commit", metavar="REV", help="The commit that the decision is about.")
]
NoteOption = Annotated[
    str, typer.Option("--note", metavar="TEXT", help="A short note for the log's table.")
]
WhyOption = Annotated[
    str, typer.Option("--why", metavar="TEXT", help="Why the result is what it is.")
]


@app.command()
def accept(
    experiment: ExperimentArgument,
    candidate: CandidateOption = None,
    commit: CommitOption = "",
    note: NoteOption = "",
    why: WhyOption = "",
    json: JsonOption = False,
    project: ProjectOption = HERE,
) -> None:
    """Accept a candidate: it becomes its kernel's current best.

    Experiments without a baseline in YAML start from it. A later decision on the same candidate
    undoes this one. The machine's verdict stays as it is.

    For example:
        kernelexp accept F8 --commit abf04a5 --note 'simpler code'
    """
    from kernelexp.services import deciding

    loaded = common.load(project, sources=False)
    asked = deciding.DecisionRequest(commit=commit, note=note, why=why)
    _show(loaded, deciding.accept(loaded, experiment, candidate, asked), json)


@app.command()
def reject(
    experiment: ExperimentArgument,
    candidate: CandidateOption = None,
    commit: CommitOption = "",
    note: NoteOption = "",
    why: WhyOption = "",
    json: JsonOption = False,
    project: ProjectOption = HERE,
) -> None:
    """Reject a candidate, or all of an experiment.

    One that was accepted is no longer its kernel's current best: the one accepted before it is.

    For example:
        kernelexp reject F9 --note 'needs 1,024 TMEM columns'
    """
    from kernelexp.services import deciding

    loaded = common.load(project, sources=False)
    asked = deciding.DecisionRequest(commit=commit, note=note, why=why)
    _show(loaded, deciding.reject(loaded, experiment, candidate, asked), json)


@app.command()
def replace(
    experiment: ExperimentArgument,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="EXPERIMENT",
            autocompletion=complete(experiment_names),
            help="What takes its place; accepted by this, if it is not yet.",
        ),
    ],
    candidate: CandidateOption = None,
    commit: CommitOption = "",
    note: NoteOption = "",
    why: WhyOption = "",
    json: JsonOption = False,
    project: ProjectOption = HERE,
) -> None:
    """Replace an experiment's variant, once accepted, by another experiment's.

    For example:
        kernelexp replace F5 --by 892766c --why 'L1 holds the combined tensor'
    """
    from kernelexp.services import deciding

    loaded = common.load(project, sources=False)
    asked = deciding.DecisionRequest(commit=commit, note=note, why=why)
    _show(loaded, deciding.replace(loaded, experiment, by, candidate, asked), json)


def _show(project: Project, done: Done, json: bool) -> None:
    """What was decided and what is the best now; the log is rendered again."""
    from kernelexp.logs import decisions
    from kernelexp.report.log import decisions as report

    common.refresh_log(common.load(project.root, sources=False))
    decided, unreadable = decisions.read_all(project.root)
    common.warn(project.root, unreadable)
    last = done.decisions[-1]
    best = decisions.best(decided, last.kernel, last.arch)
    values = report.Made(decisions=done.decisions, best=best, stood=done.stood)
    output("decisions", values, report.made(project, values), json)
