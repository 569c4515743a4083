"""All that is known of one variant, in one value: built now, kept, recorded and profiled.

Whatever shows a variant stands on this, so that every page has one time and one count for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kernelexp.dossier import prepare, speaking, standing
from kernelexp.dossier.session import Session
from kernelexp.dossier.speaking import Recorded
from kernelexp.dossier.tree import Tree
from kernelexp.evidence.emulate import emulated
from kernelexp.facts import chips
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.judge.limits.case import Case
from kernelexp.logs import profiles
from kernelexp.model.arm import Arm, PublishedResult, sound
from kernelexp.model.experiment import Variant
from kernelexp.model.record import Profile, Record
from kernelexp.project import Project


class Dossier(msgspec.Struct, frozen=True, kw_only=True):
    """One variant."""

    variant: Variant
    case: Case
    """Its arm with every kind of evidence that there is, and its chip."""
    compiler: str
    """The version of the nvcc that built it."""
    record: Record | None = None
    """That its time is from, measured or published."""
    changed: tuple[str, ...] = ()
    """What has changed since that record."""
    profile: Profile | None = None
    """The latest of the variant."""
    profile_changed: tuple[str, ...] = ()
    """What has changed since it was profiled."""

    @property
    def label(self) -> str:
        return self.case.label

    @property
    def arm(self) -> Arm:
        return self.case.arm

    @property
    def point(self) -> str:
        """Its axes alone, without the kernel."""
        return self.label.partition(": ")[2]

    @property
    def sources(self) -> tuple[str, ...]:
        """The runs or documents that its time and its counters are from."""
        record, profile = self.record, self.profile
        named = [record.source or record.run] if record else []
        named += [profile.short_source or profile.run] if profile else []
        return tuple(dict.fromkeys(named))

    @property
    def run(self) -> str:
        """The run that measured it; empty where none did."""
        return self.record.run if self.record and self.arm.measured else ""


def of_variants(
    project: Project,
    variants: Sequence[Variant],
    recorded: Sequence[Recorded | None],
    session: Session,
) -> list[Dossier]:
    """The variants, built from the cache or now, with the records that speak for them.

    Emulations are those that are kept, and taken now if the session emulates. Raises the fault
    that keeps a variant from being built or emulated.
    """
    arms = prepare.built(project, variants, session)
    if session.emulate:
        arms = prepare.emulated(project, arms, session)
    return [
        _of_arm(project, variant, sound(arm), item, session.tools.version)
        for variant, arm, item in zip(variants, arms, recorded, strict=True)
    ]


def of_variant(project: Project, variant: Variant, session: Session) -> Dossier:
    """One variant with the measurement that speaks for it in any experiment."""
    recorded = speaking.of_variant(project, variant)
    (dossier,) = of_variants(project, [variant], [recorded], session)
    return dossier


def of_pair(
    project: Project, before: Variant, after: Variant, session: Session
) -> tuple[Dossier, Dossier]:
    """Two variants, with the times of one run where one timed both."""
    spoken = speaking.of_pair(project, before, after)
    one, other = of_variants(project, [before, after], spoken, session)
    return one, other


def _published(recorded: Recorded | None, profile: Profile | None) -> PublishedResult | None:
    """Returns the published result of an arm, with what its published profile adds."""
    own = recorded.arm.published if recorded else None
    beside = profile.arm.published if profile and profile.provenance == "published" else None
    if own is None or beside is None:
        return own
    return msgspec.structs.replace(
        own, spill_bytes=beside.spill_bytes, stack_bytes=beside.stack_bytes
    )


def _of_arm(
    project: Project, variant: Variant, arm: Arm, recorded: Recorded | None, compiler: str
) -> Dossier:
    """An arm with what is kept, recorded and profiled of its variant."""
    tree = Tree(project.root)
    profile = profiles.latest(project.root, variant.kernel, variant.arch, variant.axes)
    if arm.build and not (arm.emulated or arm.emulated_sass):
        arm = emulated.with_kept(project.root, arm)
    arm = msgspec.structs.replace(
        arm,
        measured=recorded.arm.measured if recorded else None,
        published=_published(recorded, profile),
        profiled=profile.arm.profiled if profile else None,
    )
    since = standing.profile_changes(variant, profile, tree) if profile else ()
    timed_on = recorded.record.device if recorded and arm.measured else ""
    profiled_on = arm.profiled.device if arm.profiled else ""
    device = timed_on or profiled_on
    target = project.kernels[variant.kernel].targets.get(variant.arch)
    card = (target.device if target else "") or ARCHITECTURES[variant.arch].card
    return Dossier(
        variant=variant,
        case=Case(
            label=project.label(variant),
            arm=arm,
            chip=chips.find(device) or (None if device else chips.find(card)),
            axes={name: axis.about for name, axis in target.axes.items()} if target else {},
            profiled_elsewhere=bool(timed_on and profiled_on)
            and chips.find(timed_on) != chips.find(profiled_on),
        ),
        compiler=compiler,
        record=recorded.record if recorded else None,
        changed=recorded.changed if recorded else (),
        profile=profile,
        profile_changed=tuple(since),
    )
