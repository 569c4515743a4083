"""All that is known of variants, in one place each: built and emulated now, else as recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from kernelexp.dossier import emulations, prepare, speaking, standing
from kernelexp.dossier.session import Session
from kernelexp.dossier.speaking import Recorded
from kernelexp.dossier.standing import Standing
from kernelexp.evidence.measure.measured import SIZE
from kernelexp.facts import chips
from kernelexp.facts.arch import ARCHITECTURES
from kernelexp.judge import verdict
from kernelexp.judge.case import Case
from kernelexp.logs import profiles
from kernelexp.model.arm import Arm
from kernelexp.model.errors import BuildError, KernelFault
from kernelexp.model.record import Profile, Record
from kernelexp.model.variant import Variant
from kernelexp.project import Project
from kernelexp.project.problem import consult
from warpsim.launch import main_launch


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """One variant."""

    case: Case
    changed: tuple[str, ...] = ()
    """What has changed since it was measured."""
    profile: Profile | None = None
    """The latest of the variant."""
    profile_changed: tuple[str, ...] = ()
    """What has changed since it was profiled."""


def variant(project: Project, wanted: Variant, session: Session) -> Examined:
    """One variant by itself, with the measurement that speaks for it in any experiment.

    BuildError where it is impossible or does not build, KernelFault where it is wrong.
    """
    found = speaking.of_variant(project, wanted)
    (examined,) = _examine(project, [wanted], {0: found} if found else {}, session)
    if refused := examined.case.arm.refused:
        kind = KernelFault if refused.status in verdict.WRONG else BuildError
        raise kind(f"{examined.case.label} is {refused.status}: {refused.sentence}")
    return examined


def experiment(
    project: Project, name: str, number: int, session: Session
) -> tuple[Examined, Examined, Standing]:
    """Baseline and candidate `number`, counted from 1, with the record that speaks for them."""
    standings = standing.of_experiment(project, name, standing.Tree(project.root))
    baseline, candidates = project.variants(standings.experiment)
    spoken = standings.candidates[number - 1]
    found = {}
    if spoken.record and spoken.arm:
        sides = (spoken.record.baseline, spoken.arm)
        found = {
            place: Recorded(record=spoken.record, arm=arm, changed=spoken.changed)
            for place, arm in enumerate(sides)
        }
    one, other = _examine(project, [baseline, candidates[number - 1]], found, session)
    return one, other, spoken


def _examine(
    project: Project,
    variants: Sequence[Variant],
    found: Mapping[int, Recorded],
    session: Session,
) -> list[Examined]:
    """Raises the fault that keeps a variant from being built or emulated."""
    prepare.refuse_programs(variants, "an explanation or an opportunity")
    prepared = prepare.built(project, variants, session)
    if session.emulate:
        prepared = prepare.emulated(project, prepared, session)
    arms = [prepared.arm(each) for each in variants]
    return [
        _one(project, each, arm, found.get(place), session)
        for place, (each, arm) in enumerate(zip(variants, arms, strict=True))
    ]


def _one(
    project: Project, wanted: Variant, arm: Arm, found: Recorded | None, session: Session
) -> Examined:
    profile = profiles.latest(project.root, wanted.kernel, wanted.arch, wanted.axes)
    tree = standing.Tree(project.root)
    since = tuple(standing.profile_changes(wanted, profile, tree)) if profile else ()
    arm = msgspec.structs.replace(
        arm,
        measured=found.arm.measured if found else None,
        published=found.arm.published if found else None,
        profiled=profile.arm.profiled if profile else None,
    )
    device = found.record.device if found and arm.measured else ""
    device = (arm.profiled.device if arm.profiled else "") or device
    card = ARCHITECTURES[wanted.arch].card
    case = Case(
        label=project.label(wanted),
        arm=arm,
        chip=chips.find(device) or (None if device else chips.find(card)),
    )
    if arm.build and not arm.refused:
        case = _with_launch(project, case, session)
    if found and arm.measured:
        case = _with_conditions(case, found.record)
    return Examined(
        case=case,
        changed=found.changed if found else (),
        profile=profile,
        profile_changed=since,
    )


def _with_launch(project: Project, case: Case, session: Session) -> Case:
    """The grid, the work and the counters of the full problem."""
    sizes = consult.consult(project.root, case.arm.kernel, timeout_s=session.limits.problem_s).sizes
    if SIZE not in sizes:
        return case
    said = emulations.launches(project, case.arm, list(sizes), session.limits)
    full = (
        emulations.count_full(project, case.arm, said, session.limits) if session.emulate else None
    )
    work = said.work.get(SIZE)
    (facts,) = said.points
    return msgspec.structs.replace(
        case,
        flops=work.flops if work else 0,
        bytes=work.bytes if work else 0,
        ctas=math.prod(main_launch(facts.launches[SIZE]).grid),
        tiles=facts.tiles.get(SIZE, 0),
        counters=full.counters if full else {},
        scaled=full.how if full else "",
    )


def _with_conditions(case: Case, record: Record) -> Case:
    state = record.estimate.conditions if record.estimate else None
    if state is None:
        return case
    limit = record.measurement.device.power_limit_w if record.measurement else 0.0
    of_limit = f" of {limit:.0f} W" if limit else ""
    throttled = ", ".join(f"{name} {100 * share:.0f}%" for name, share in state.throttle.items())
    return msgspec.structs.replace(
        case,
        clock_hz=1e6 * state.sm_clock_mhz,
        power=f"{state.power_w:.0f} W{of_limit}, SM clock {state.sm_clock_mhz:.0f} MHz "
        f"({state.sm_clock_low_mhz} to {state.sm_clock_high_mhz})"
        + (f", throttled by {throttled} of the time" if throttled else ", never throttled"),
    )
