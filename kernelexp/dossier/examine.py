"""Variants with what bounds and rules look at: the launch of the full problem, its conditions."""

from __future__ import annotations

import math

import msgspec

from kernelexp.dossier import dossiers, extents, full_counts, prepare, speaking, standing
from kernelexp.dossier.dossiers import Dossier
from kernelexp.dossier.session import Session
from kernelexp.dossier.speaking import Recorded
from kernelexp.dossier.standing import Standing
from kernelexp.dossier.tree import Tree
from kernelexp.judge import executed, verdict
from kernelexp.judge.limits.case import Case
from kernelexp.model.errors import BuildError, KernelFault
from kernelexp.model.experiment import FULL, Variant
from kernelexp.model.record import Record
from kernelexp.project import Project
from kernelexp.project.problem import consult
from warpsim.launch import main_launch

_WHAT = "an explanation or an opportunity"
_FEWEST_FLOPS = 0.5
"""Of the useful FLOPs; those of a mask that the work ignores may be half."""


def variant(project: Project, wanted: Variant, session: Session) -> Dossier:
    """One variant by itself, with the measurement that speaks for it in any experiment.

    BuildError where it is impossible or does not build, KernelFault where it is wrong.
    """
    prepare.refuse_programs([wanted], _WHAT)
    recorded = [speaking.of_variant(project, wanted)]
    (dossier,) = dossiers.of_variants(project, [wanted], recorded, session)
    if refused := dossier.arm.refused:
        kind = KernelFault if refused.status in verdict.WRONG else BuildError
        raise kind(f"{dossier.label} is {refused.status}: {refused.sentence}")
    return _with_case(project, dossier, session)


def experiment(
    project: Project, name: str, number: int, session: Session
) -> tuple[Dossier, Dossier, Standing]:
    """Baseline and candidate `number`, counted from 1, with the record that speaks for them."""
    standings = standing.of_experiment(project, name, Tree(project.root))
    baseline, candidates = project.variants(standings.experiment)
    variants = [baseline, candidates[number - 1]]
    prepare.refuse_programs(variants, _WHAT)
    spoken = standings.candidates[number - 1]
    result: list[Recorded | None] = [None, None]
    if spoken.record and spoken.arm and not spoken.doubted:
        result = [
            Recorded(record=spoken.record, arm=arm, changed=spoken.changed)
            for arm in (spoken.record.baseline, spoken.arm)
        ]
    one, other = dossiers.of_variants(project, variants, result, session)
    one, other = (_with_case(project, side, session) for side in (one, other))
    return one, other, spoken


def _with_case(project: Project, dossier: Dossier, session: Session) -> Dossier:
    case = dossier.case
    if dossier.record and case.arm.measured and dossier.record.size:
        case = msgspec.structs.replace(case, size=dossier.record.size)
    profiled = case.arm.profiled
    if profiled and profiled.size and profiled.size != case.size:
        case = msgspec.structs.replace(case, profiled_elsewhere=True)
    if case.arm.build and not case.arm.refused:
        case = _with_launch(project, case, session)
    if dossier.record and case.arm.measured:
        case = _with_conditions(case, dossier.record)
    return msgspec.structs.replace(dossier, case=case)


def _with_launch(project: Project, case: Case, session: Session) -> Case:
    """The grid, the work and the counters of the problem of its size."""
    sizes = consult.consult(project.root, case.arm.kernel, timeout_s=session.limits.problem_s).sizes
    size = case.size if case.size in sizes else FULL
    if size not in sizes:
        return case
    case = msgspec.structs.replace(case, size=size, extents=sizes[size])
    launches = extents.launches(project, case.arm, list(sizes), session.limits)
    full = (
        full_counts.count_full(project, case.arm, launches, session, size)
        if session.emulate
        else None
    )
    work = launches.work.get(size)
    (facts,) = launches.points
    if full is None and session.emulate:
        case = _with_ratios(case)
        why = extents.unlike(launches, case.ratios_of, size) if case.ratios_of else ""
        case = msgspec.structs.replace(case, ratios_why=why)
    else:
        case = msgspec.structs.replace(
            case,
            counters=full.counters if full else {},
            scaled=full.how if full else "",
            larger=full.larger if full else None,
            unsolved=full.unsolved if full else frozenset(),
            least=full.least if full else {},
        )
    case = msgspec.structs.replace(
        case,
        flops=work.flops if work else 0,
        bytes=work.bytes if work else 0,
        ctas=math.prod(main_launch(facts.launch_of(size)).grid),
        tiles=facts.tiles.get(size, 0),
    )
    return _with_ratios(case) if misses_work(case) else case


def misses_work(case: Case) -> bool:
    """Whether the MMAs that were scaled to the full problem are too few for the FLOPs that it
    states: at the small sizes, tiles() counts what does next to nothing."""
    if case.arm.counted is None or executed.MMAS in case.unsolved:
        return False
    flops = executed.mean_flops(case.arm.counted) * case.counters.get(executed.MMAS, 0)
    return 0 < flops < _FEWEST_FLOPS * case.flops


def _with_ratios(case: Case) -> Case:
    """The counts of the emulated size, of which only ratios say something of the full problem."""
    taken = [
        emulated_evidence
        for emulated_evidence in (case.arm.counted, case.arm.emulated)
        if emulated_evidence and emulated_evidence.finished
    ]
    if not taken:
        return case
    return msgspec.structs.replace(
        case,
        counters={
            name: count
            for emulated_evidence in taken
            for name, count in emulated_evidence.counters.items()
        },
        ratios_of=taken[0].size,
        scaled="",
        unsolved=frozenset(),
        least={},
        larger=None,
    )


def _with_conditions(case: Case, record: Record) -> Case:
    state = record.estimate.conditions if record.estimate else None
    if state is None:
        return case
    limit = record.measurement.device.power_limit_w if record.measurement else 0.0
    of_limit = f" of {limit:.0f} W" if limit else ""
    throttled = ", ".join(f"{name} {100 * share:.0f}%" for name, share in state.throttle.items())
    capped = sum(share for name, share in state.throttle.items() if "power" in name)
    return msgspec.structs.replace(
        case,
        clock_hz=1e6 * state.sm_clock_mhz,
        power_capped=capped > 0.5,  # most of the time
        power=f"{state.power_w:.0f} W{of_limit}, SM clock {state.sm_clock_mhz:.0f} MHz "
        f"({state.sm_clock_low_mhz} to {state.sm_clock_high_mhz})"
        + (f", throttled by {throttled} of the time" if throttled else ", never throttled"),
    )
