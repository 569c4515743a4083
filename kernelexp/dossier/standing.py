"""Which record speaks for each candidate of an experiment as it is now, and whether it still may.

A record belongs to a variant, by its axes. What has changed since the record was made, in
experiments.yaml or in the files that were compiled, is said with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from kernelexp.dossier.tree import Tree, arm_changes
from kernelexp.judge import consistency, oversizes
from kernelexp.judge.expectations import Judged, judge
from kernelexp.judge.verdict import SILENT, WRONG
from kernelexp.logs import decisions, profiles, records
from kernelexp.logs.decisions import Decision
from kernelexp.logs.records import Unreadable
from kernelexp.model.arm import Arm, Status, Verdict
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import Experiment, Point, Variant, arm_names, spell, spell_point
from kernelexp.model.measurement import Effect
from kernelexp.model.record import Candidate, Profile, Record, is_of, own_axes, unusual
from kernelexp.project import Project

# Of the records that neither timed anything nor were published, how many are looked through.
_UNTIMED_MAX = 50


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one candidate of an experiment."""

    variant: Variant
    record: Record | None = None
    """The record that says most of it; None where no record is of this variant."""
    candidate: Candidate | None = None
    """The variant's part of that record."""
    changed: tuple[str, ...] = ()
    """What has changed since; empty where the record is of the experiment as it is now."""
    rewritten: tuple[str, ...] = ()
    """Sources whose text has changed since, where the machine code has not: the record speaks."""
    doubted: bool = False
    """Whether what has changed is the record itself, or its samples give something else."""
    decisions: tuple[Decision, ...] = ()
    """What people decided on this candidate, oldest first: the last one holds."""

    @property
    def decision(self) -> Decision | None:
        """The one that holds."""
        return self.decisions[-1] if self.decisions else None

    @property
    def verdict(self) -> Verdict | None:
        """The record's verdict on this candidate, over all sizes of its run, current or not; None
        where the record can't be relied on."""
        if self.candidate is None or self.doubted:
            return None
        return self.candidate.over_sizes or self.candidate.verdict

    @property
    def is_wrong(self) -> bool:
        """Whether the record's verdict, current or not, says that the candidate is wrong."""
        return self.verdict is not None and self.verdict.status in WRONG

    @property
    def arm(self) -> Arm | None:
        """The arm; where several sizes were timed, with the change over all and without a time."""
        if self.candidate is None:
            return None
        arm = self.candidate.arm
        if self.candidate.over_sizes is None or self.record is None or arm.measured is None:
            return arm
        name = self.record.names[1 + self.record.candidates.index(self.candidate)]
        return _over_sizes(arm, oversizes.weighted(self.record.sizes, name))

    @property
    def current(self) -> Arm | None:
        """The arm; None where something has changed since its record."""
        return None if self.changed else self.arm

    @property
    def effect(self) -> Effect | None:
        """The measured change of `current` against its baseline."""
        arm = self.current
        return arm.effect if arm else None

    @property
    def baseline(self) -> Arm | None:
        """The arm that the record compares with; without a time where several sizes were timed."""
        if self.record is None:
            return None
        return (
            _over_sizes(self.record.baseline, None) if self.record.sizes else self.record.baseline
        )


def _over_sizes(arm: Arm, effect: Effect | None) -> Arm:
    measured = arm.measured and msgspec.structs.replace(
        arm.measured, size="", time_us=None, low_us=None, high_us=None, flops=0, effect=effect
    )
    return msgspec.structs.replace(arm, measured=measured)


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of an experiment: one standing per candidate, in the order of its file."""

    experiment: Experiment
    candidates: tuple[Standing, ...]
    records: int
    """How many records there are of the experiment."""
    former: bool = False
    """Whether a record is of variants none of which the experiment still has."""
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def points(self) -> Iterator[tuple[Standing, Point]]:
        """Each candidate's standing with the axes that the experiment sets for it."""
        return zip(self.candidates, self.experiment.candidates, strict=True)

    @property
    def by_run(self) -> dict[str, Record]:
        """The records that speak for its candidates, by run."""
        return {one.record.run: one.record for one in self.candidates if one.record}


class StandingProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The latest profile of one variant of an experiment."""

    name: str
    """Of the variant in the experiment: baseline, candidate 1."""
    profile: Profile
    changed: tuple[str, ...] = ()
    """What has changed since; empty where it is of the variant as it is now."""


def of_experiment(project: Project, name: str, tree: Tree) -> Standings:
    """The standing of each candidate of experiment `name`."""
    experiment = project.experiment(name)
    baseline, variants = project.variants(experiment)
    best, unreadable, former = _best(project, name, baseline, variants, tree)
    latest = records.latest_untimed(project.root, name)
    if latest and not latest.overrides:
        for index, variant in enumerate(variants):
            standing = _stand(baseline, variant, latest, tree)
            if standing and index in best and _overrules(standing, best[index]):
                best[index] = standing
    decided, undecipherable = tree.decided
    return Standings(
        experiment=experiment,
        candidates=tuple(
            msgspec.structs.replace(
                best.get(index, Standing(variant=variant)),
                decisions=decisions.on(decided, name, variant),
            )
            for index, variant in enumerate(variants)
        ),
        records=records.count(project.root, name),
        former=former,
        unreadable=(*unreadable, *undecipherable, *tree.code.unreadable),
    )


def _best(
    project: Project, name: str, baseline: Variant, variants: Sequence[Variant], tree: Tree
) -> tuple[dict[int, Standing], list[Unreadable], bool]:
    """Returns the most informative standing of each candidate, by its place; the files that are no
    records; and whether a record has only candidates of a former version of the experiment.

    Reads no more than it needs: there may be thousands of records.
    """
    waiting = dict(enumerate(variants))
    best: dict[int, Standing] = {}
    doubted: list[tuple[int, Standing]] = []
    changed_files: dict[int, dict[str, str]] = {}
    unreadable: list[Unreadable] = []
    untimed, former = 0, False
    for record in records.by_weight(project.root, name):
        if isinstance(record, Unreadable):
            unreadable.append(record)
            continue
        if _is_of_something_else(record, project.experiment(name), name in project.history):
            continue
        former = former or not any(_part(record, variant) for variant in variants)
        for index, variant in list(waiting.items()):
            standing = _stand(baseline, variant, record, tree)
            if standing is None:
                continue
            standing = _at_most_as_current(standing, changed_files.setdefault(index, {}))
            if standing.doubted:
                doubted.append((index, standing))
            if index not in best or _rank(standing) > _rank(best[index]):
                best[index] = standing
            if _is_last_word(standing):
                del waiting[index]
        untimed += _is_untimed(record)
        if not waiting or untimed >= _UNTIMED_MAX:
            break
    unreadable += [
        _unreliable(project.root, standing)
        for index, standing in doubted
        if best[index] is not standing
    ]
    return best, unreadable, former


def _at_most_as_current(standing: Standing, changed: dict[str, str]) -> Standing:
    """Returns the standing as it is, or changed by files that a later record of the variant lists
    and this one does not: early records have neither their problem.py nor all headers.

    changed: the files that later records found changed, by path; this one's are added.
    """
    record, arm = standing.record, standing.arm
    assert record
    assert arm
    files = {**record.host_files, **record.baseline.files, **arm.files}
    unknown = tuple(words for path, words in changed.items() if path not in files)
    if record.provenance == "run" and unknown and not standing.changed:
        standing = msgspec.structs.replace(standing, changed=unknown)
    names = {words.partition(" (is ")[0]: words for words in standing.changed}
    changed.update((path, words) for path, words in names.items() if path in files)
    return standing


def _unreliable(root: Path, doubted: Standing) -> Unreadable:
    """Reports that this record is doubted, so that another one stands for the variant."""
    assert doubted.record
    assert doubted.arm
    point = spell_point(own_axes(doubted.record.baseline, doubted.arm))
    why = f"can't be relied on for {point}: {', '.join(doubted.changed)}"
    return Unreadable(path=records.place(root, doubted.record), why=why)


def _is_of_something_else(record: Record, experiment: Experiment, is_step: bool) -> bool:
    """Whether --set changed its candidates; --size what was timed, of an experiment that names a
    size; or --size or --l2 a step, which other steps are compared with."""
    other_size = experiment.size and record.measurement and record.size != experiment.size
    as_a_step = is_step and not experiment.timed_sizes and unusual(record)
    weights = experiment.weights or [1.0] * len(experiment.timed_sizes)
    several = dict(zip(experiment.timed_sizes, weights, strict=False)) if experiment.sizes else {}
    other_sizes = (
        several and record.measurement and several != {s.size: s.weight for s in record.sizes}
    )
    return bool(record.overrides or other_size or as_a_step or other_sizes)


def of_profiles(
    project: Project,
    name: str,
    tree: Tree,
    latest: Callable[[Variant], Profile | None] | None = None,
) -> tuple[StandingProfile, ...]:
    """The latest profile of each variant of experiment `name` that has one, the baseline first;
    `latest` finds that of a variant without reading its file again."""
    baseline, candidates = project.variants(project.experiment(name))
    result = []
    for called, variant in zip(arm_names(len(candidates)), (baseline, *candidates), strict=True):
        if latest:
            profile = latest(variant)
        else:
            profile = profiles.latest(project.root, variant.kernel, variant.arch, variant.axes)
        if profile is not None:
            changed = tuple(profile_changes(variant, profile, tree))
            result.append(StandingProfile(name=called, profile=profile, changed=changed))
    return tuple(result)


def _rank(standing: Standing) -> int:
    """Ranks how much a record says of a variant; of two that say as much, the later one counts."""
    record, verdict = standing.record, standing.verdict
    if record is None or verdict is None:
        return -1
    decides = verdict.status not in SILENT
    current = not standing.changed
    if current and decides:
        return 5 if record.measurement else 4 if record.provenance == "published" else 3
    if current and verdict.status is Status.INCONCLUSIVE and record.measurement:
        return 3  # a figure of what is there now, with its interval
    if decides and not _is_untimed(record):
        return 2  # of what was there before
    return 1 if current else 0


def _overrules(later: Standing, best: Standing) -> bool:
    """Whether what is there now was found wrong since it was measured.

    The emulator may have learnt to see it, or problem.py, which early records do not have, has
    changed.
    """
    if later.changed or later.record is None or best.record is None or later.verdict is None:
        return False
    newer = best.record.measurement is not None and later.record.run > best.record.run
    return newer and later.verdict.status in (*WRONG, Status.INVALID)


def _is_last_word(standing: Standing) -> bool:
    """Whether no record that is read later, in the order of by_weight(), can say more."""
    if standing.record is None or standing.changed:
        return False
    return _is_untimed(standing.record) or _rank(standing) >= 4


def _is_untimed(record: Record) -> bool:
    return record.provenance == "run" and record.measurement is None


def _stand(baseline: Variant, variant: Variant, record: Record, tree: Tree) -> Standing | None:
    candidate = _part(record, variant)
    if candidate is None:
        return None
    changed = tuple(changes(baseline, variant, record, candidate.arm, tree))
    rewritten: tuple[str, ...] = ()
    if not changed and record.provenance == "run":
        text = {**record.host_files, **record.baseline.files}
        rewritten = tuple(arm_changes(variant, candidate.arm, text, tree))
    doubts = () if changed else tree.doubts(record, candidate)
    return Standing(
        variant=variant,
        record=record,
        candidate=candidate,
        changed=changed or doubts,
        rewritten=rewritten,
        doubted=bool(doubts),
    )


def _part(record: Record, variant: Variant) -> Candidate | None:
    """The candidate of a record that is this variant."""
    return next(
        (candidate for candidate in record.candidates if is_of(variant.axes, candidate.arm)), None
    )


def changes(
    baseline: Variant, variant: Variant, record: Record, arm: Arm, tree: Tree
) -> Iterator[str]:
    """Yields what has changed since `record` was made, a few words each."""
    for what, before, after in (
        ("kernel", record.kernel, variant.kernel),
        ("architecture", record.arch, variant.arch),
    ):
        if before != after:
            yield f"{what} {after} (was {before})"
    was, now = record.baseline.axes, baseline.axes
    for axis, value in was.items():
        if axis not in now or not is_of(now, Arm(axes={axis: value})):
            yield f"baseline {axis}={_spell(now, axis)} (was {spell(value)})"
    if record.provenance == "published":
        return
    for name, digest in record.environment.items():
        if tree.variable(name) != digest:
            yield f"the environment variable {name}"
    files = record.host_files
    if not tree.code.is_same(baseline, record.baseline, record.compiler):
        files = {**files, **record.baseline.files}
    yield from arm_changes(variant, arm, files, tree, record.compiler)


def of_sweep(project: Project, record: Record, tree: Tree) -> tuple[str, ...]:
    """Returns what has changed since a sweep ran, for any of its arms."""
    changed: dict[str, None] = {}
    if record.edited:
        return (consistency.EDITED,)
    for arm in record.arms:
        try:
            variant = project.variant(record.kernel, record.arch, arm.axes)
        except UsageError as error:
            return (str(error).removesuffix("."),)
        own = arm_changes(variant, arm, record.host_files, tree, record.compiler)
        changed.update(dict.fromkeys(own))
    return tuple(changed)


def profile_changes(variant: Variant, profile: Profile, tree: Tree) -> Iterator[str]:
    """Yields what has changed since a variant was profiled; an imported profile lists no files."""
    if profile.provenance != "published":
        yield from arm_changes(variant, profile.arm, {}, tree, profile.compiler)


def _spell(axes: Mapping[str, bool | int | str], axis: str) -> str:
    return spell(axes[axis]) if axis in axes else "nothing"


Rewriting: TypeAlias = Literal["", "reworded", "edited"]
"""What became of a hypothesis after it was measured: reworded has the same figures."""
_FIGURE = re.compile(r"\d[\d,.]*")


def before_change(standing: Standing) -> str:
    """Says why a standing's figures are not shown as current."""
    record = standing.record
    if standing.doubted and not (record and record.edited):
        return f"what the record says is not what its samples give: {', '.join(standing.changed)}"
    timed = record is not None and (record.measurement or record.provenance == "published")
    return since("measured" if timed else "run", standing.changed)


def since(taken: str, changed: Sequence[str]) -> str:
    """Says that figures were taken before this changed, or that their record was edited."""
    if consistency.EDITED in changed:
        return consistency.EDITED
    return f"{taken} before this changed: {', '.join(changed)}"


def judged_expectations(name: str, standings: Standings) -> dict[str, tuple[Judged, ...]]:
    """Judges the current expectations of experiment `name` by the records of its candidates."""
    nothing = Arm(arch=standings.experiment.arch)
    judged = {}
    for place, standing, expected in zip(
        arm_names(len(standings.candidates))[1:],
        standings.candidates,
        standings.experiment.expectations,
        strict=True,
    ):
        record = None if standing.doubted else standing.record
        arm = standing.arm if record and standing.arm else nothing
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
