"""The service of accept, reject and replace: a person's word about an experiment's candidates."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kernelexp.dossier import standing
from kernelexp.dossier.standing import Standing, Standings
from kernelexp.dossier.tree import Tree
from kernelexp.logs import decisions
from kernelexp.logs.decisions import Decision, Word
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import spell_point
from kernelexp.model.text import quote
from kernelexp.project import Project, require_candidate, revisions
from kernelexp.system import disk


class DecisionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The words that somebody gives with a decision."""

    commit: str = ""
    """A revision of the project's repository, or a commit's name where that one has none of it."""
    note: str = ""
    why: str = ""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The decisions that hold now."""

    decisions: tuple[Decision, ...]
    stood: tuple[str, ...] = ()
    """Names of those that stood already, and are not written again."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """The decisions just made, and the best of the kernel now."""

    decisions: tuple[Decision, ...]
    best: Decision | None
    stood: tuple[str, ...] = ()
    """Names of those that stood already, and were not written again."""
    slower: str = ""
    """That the best takes longer than the one before, as a sentence; empty where it does not."""
    waiting: str = ""
    """That what waits for a decision took less time, as a sentence; empty where it did not."""


def accept(
    project: Project, name: str, candidate: int | None, decision_request: DecisionRequest
) -> Done:
    """Makes a candidate its kernel's current best."""
    standings = standing.of_experiment(project, name, Tree(project.root))
    if candidate is None and len(standings.candidates) > 1:
        raise UsageError(
            f"{name} has {len(standings.candidates)} candidates: say with --candidate which one is "
            f"accepted ({_numbered(standings)})."
        )
    chosen = _chosen(name, standings, candidate)
    with disk.FilesTogether() as files:
        return _decide(files, project, name, "accepted", chosen, decision_request)


def reject(
    project: Project, name: str, candidate: int | None, decision_request: DecisionRequest
) -> Done:
    """Rejects one candidate, or all of an experiment; one that was accepted is so no more."""
    standings = standing.of_experiment(project, name, Tree(project.root))
    chosen = _chosen(name, standings, candidate)
    with disk.FilesTogether() as files:
        return _decide(files, project, name, "rejected", chosen, decision_request)


def replace(
    project: Project, name: str, by: str, candidate: int | None, decision_request: DecisionRequest
) -> Done:
    """Puts experiment `by` in the place of `name`: what replaces is accepted, if it is not yet."""
    project.experiment(by)
    if by == name:
        raise UsageError(f"{name} can't be replaced by itself: name another experiment with --by.")
    tree = Tree(project.root)
    standings = standing.of_experiment(project, name, tree)
    successor = standing.of_experiment(project, by, tree)
    replaced = _chosen(name, standings, candidate)
    accepted = [item for item in successor.candidates if _is_accepted(item)]
    if not accepted and len(successor.candidates) > 1:
        raise UsageError(
            f"{by} has {len(successor.candidates)} candidates, none of them accepted: accept one "
            f"first (kernelexp decide accept {by} --candidate N)."
        )
    with disk.FilesTogether() as files:
        if accepted:
            return _decide(files, project, name, "replaced", replaced, decision_request, by)
        done = _decide(files, project, by, "accepted", successor.candidates, decision_request)
        plain = msgspec.structs.replace(decision_request, commit="")
        after = _decide(files, project, name, "replaced", replaced, plain, by)
    return Done(decisions=(*done.decisions, *after.decisions), stood=(*done.stood, *after.stood))


def _is_accepted(candidate: Standing) -> bool:
    return candidate.decision is not None and candidate.decision.word == "accepted"


def _numbered(standings: Standings) -> str:
    points = standings.experiment.candidates
    return "; ".join(f"{number}: {spell_point(item)}" for number, item in enumerate(points, 1))


def _chosen(name: str, standings: Standings, candidate: int | None) -> Sequence[Standing]:
    """All candidates, or the one of this number, counted from 1."""
    if candidate is None:
        return standings.candidates
    require_candidate(name, standings.experiment, candidate)
    return standings.candidates[candidate - 1 : candidate]


def _decide(
    files: disk.FilesTogether,
    project: Project,
    name: str,
    word: Word,
    candidates: Sequence[Standing],
    decision_request: DecisionRequest,
    by: str = "",
) -> Done:
    """Writes a decision on each of these candidates, but where it would only be said again."""
    baseline, _ = project.variants(project.experiment(name))
    who, commit = revisions.author(project.root), _commit(project, decision_request.commit)
    result, stood = [], []
    for candidate in candidates:
        moment = decisions.next_moment(project.root)
        decision = Decision(
            version=decisions.VERSION,
            name=decisions.new_name(moment),
            word=word,
            experiment=name,
            kernel=candidate.variant.kernel,
            arch=candidate.variant.arch,
            axes=candidate.variant.axes,
            baseline=baseline.axes,
            created=moment.isoformat(timespec="microseconds"),
            who=who,
            commit=commit,
            by=by,
            note=decision_request.note,
            why=decision_request.why,
            verdict=candidate.verdict.status.value
            if candidate.verdict and not candidate.changed
            else "",
            run=candidate.record.run if candidate.record and not candidate.changed else "",
        )
        if candidate.decision and _stands(project, candidate.decision, decision):
            stood.append(candidate.decision.name)
            result.append(candidate.decision)
            continue
        decisions.write(project.root, decision, files)
        result.append(decision)
    return Done(decisions=tuple(result), stood=tuple(stood))


_WORDS = ("commit", "note", "why")


def _stands(project: Project, last: Decision, decision: Decision) -> bool:
    """Whether the last decision on a candidate says all of this, of the same record."""
    alike = all(
        getattr(last, field) == getattr(decision, field)
        for field in ("word", "by", "baseline", "verdict", "run")
    )
    more = any(getattr(decision, field) not in ("", getattr(last, field)) for field in _WORDS)
    if not alike or more:
        return False
    if decision.word != "accepted":
        return True
    decided, _ = decisions.read_all(project.root)  # accepted again, it would be the best again
    return decisions.best(decided, last.kernel, last.arch) == last


def _commit(project: Project, text: str) -> str:
    """A full commit's name; one that only looks like it stays as it is: a kernel's sources may come
    from another repository. UsageError where it is neither."""
    if not text:
        return ""
    result = revisions.find(project.root, text)
    if result or revisions.is_commit_name(text):
        return result or text
    where = revisions.why_unreadable(project.root) or "git knows no such revision"
    raise UsageError(
        f"--commit {quote(text)}: {where}, and it is not a commit's name, as in --commit 1a2b3c4."
    )
