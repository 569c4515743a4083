"""The services of `show` without a name and of an experiment: contents of a project, and where its
experiments stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from kernelexp.dossier.standing import (
    Rewriting,
    StandingProfile,
    Standings,
    judged_expectations,
    rewritten,
)
from kernelexp.judge.expectations import Judged
from kernelexp.logs import decisions
from kernelexp.logs.decisions import Decision
from kernelexp.model.arm import Verdict
from kernelexp.model.experiment import AxisValue, Experiment, Kernel
from kernelexp.model.record import Provenance, Record
from kernelexp.project import Project


class ListedCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """The record that speaks for a candidate, and what has changed since."""

    axes: dict[str, AxisValue]
    run: str | None
    provenance: Provenance | None
    verdict: Verdict | None
    changed_since: tuple[str, ...]
    same_code_since: tuple[str, ...] | UnsetType = UNSET
    """Sources whose text has changed since, where the machine code has not; left out where there
    are none."""
    decisions: tuple[Decision, ...]
    """People's, oldest first."""


class ListedStanding(msgspec.Struct, frozen=True, kw_only=True):
    """The standing of an experiment."""

    records: int
    """How many there are of it."""
    candidates: tuple[ListedCandidate, ...]


class ListedExperiment(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment, and where it stands."""

    experiment: Experiment
    records: int
    candidates: tuple[ListedCandidate, ...]


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A project: its kernels with their axes, its experiments and steps by id."""

    root: str
    kernels: dict[str, Kernel]
    experiments: dict[str, ListedExperiment]
    history: tuple[str, ...]
    best: dict[str, Decision]
    """The decision that made a variant the current best, by KERNEL@ARCH."""


class ShownProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The latest profile of one variant of an experiment."""

    name: str
    """Of the variant in the experiment: baseline, candidate 1."""
    run: str
    changed_since: tuple[str, ...]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment with its records and profiles."""

    id: str
    experiment: Experiment
    standing: ListedStanding
    expectations: dict[str, tuple[Judged, ...]]
    hypothesis_since: Rewriting
    """What became of the hypothesis after it was measured."""
    records: tuple[Record, ...]
    profiles: tuple[ShownProfile, ...]


def contents(
    project: Project, standings: Mapping[str, Standings], decided: Sequence[Decision]
) -> Listed:
    """Lists kernels, experiments by where they stand, and what was accepted last."""
    return Listed(
        root=str(project.root),
        kernels=project.kernels,
        experiments={
            name: ListedExperiment(
                experiment=project.experiments[name],
                records=item.records,
                candidates=_candidates(item),
            )
            for name, item in standings.items()
        },
        history=project.history,
        best={
            f"{name}@{arch}": best
            for name, kernel in project.kernels.items()
            for arch in kernel.targets
            if (best := decisions.best(decided, name, arch))
        },
    )


def experiment(
    name: str,
    standings: Standings,
    records: Sequence[Record],
    profiles: Sequence[StandingProfile],
) -> Shown:
    """An experiment with where it stands, its records and profiles."""
    return Shown(
        id=name,
        experiment=standings.experiment,
        standing=ListedStanding(records=standings.records, candidates=_candidates(standings)),
        expectations=judged_expectations(name, standings),
        hypothesis_since=rewritten(standings),
        records=tuple(records),
        profiles=tuple(
            ShownProfile(name=profile.name, run=profile.profile.run, changed_since=profile.changed)
            for profile in profiles
        ),
    )


def _candidates(standings: Standings) -> tuple[ListedCandidate, ...]:
    return tuple(
        ListedCandidate(
            axes=candidate.variant.axes,
            run=candidate.record.run if candidate.record else None,
            provenance=candidate.record.provenance if candidate.record else None,
            verdict=candidate.verdict,
            changed_since=candidate.changed,
            same_code_since=candidate.rewritten or UNSET,
            decisions=tuple(candidate.decisions),
        )
        for candidate in standings.candidates
    )
