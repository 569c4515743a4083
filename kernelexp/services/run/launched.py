"""Executed counts of emulated arms in the timed launch, where their time is near the least that
these allow: the evidence for calling a time impossible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelexp.dossier import extents, full_counts
from kernelexp.dossier.session import Session
from kernelexp.facts import chips
from kernelexp.judge import executed, plausible
from kernelexp.model.arm import Arm, EmulatedEvidence
from kernelexp.model.problem import Work
from kernelexp.model.record import LaunchCounts, Record
from kernelexp.project import Project
from kernelexp.project.problem import consult

ALONE = 0.8
"""Of the least that the counts of one small size come to, the share that is a bound: random inputs
of another size may need fewer steps where these depend on the inputs."""


def count(project: Project, record: Record, session: Session) -> dict[str, LaunchCounts]:
    """Returns the counts by the names of arms, scaled roughly first and solved for the full
    problem only where a time is near: at 86% of a GEMM's peak that would be 10 s of emulation
    for nothing."""
    chip = chips.find(record.device)
    arms = {
        name: (arm, arm.counted)
        for name, arm in zip(record.names, record.arms, strict=True)
        if arm.measured and arm.measured.time_us and arm.counted
    }
    if record.measurement is None or chip is None or not arms:
        return {}
    clock_hz = plausible.highest_clock(record.measurement, chip)
    said = consult.consult(project.root, record.kernel, timeout_s=session.limits.problem_s)
    if record.size not in said.sizes:
        return {}
    result = {}
    for name, (arm, evidence) in arms.items():
        assert evidence
        assert arm.measured
        assert arm.measured.time_us
        factor = _factor(said.work, evidence.size, record.size)
        rough = _counts(evidence, {key: int(n * factor) for key, n in evidence.counters.items()})
        needed = max((seconds for seconds, _ in executed.least(rough, chip, clock_hz)), default=0.0)
        if factor and plausible.COUNTED * needed <= arm.measured.time_us / 1e6:
            continue
        if full := _solved(project, arm, [*said.sizes], session, record.size):
            result[name] = full
    return result


def _factor(work: Mapping[str, Work], size: str, timed: str) -> float:
    """About how many times the work of a small size the timed one is; 0 where not stated."""
    one, full = work.get(size), work.get(timed)
    if one is None or full is None:
        return 0.0
    pairs = ((full.flops, one.flops), (full.bytes, one.bytes))
    return max((large / small for large, small in pairs if small), default=0.0)


def _solved(
    project: Project, arm: Arm, sizes: Sequence[str], session: Session, timed: str
) -> LaunchCounts | None:
    """Solved from two sizes, else the least that one allows; None where neither can be had."""
    launches = extents.launches(project, arm, sizes, session.limits)
    full = full_counts.count_full(project, arm, launches, session, timed)
    if arm.counted is None:
        return None
    if full is None or not full.solved:
        factor = full_counts.least_factor(launches, arm.counted, timed)
        least = {name: int(ALONE * factor * n) for name, n in arm.counted.counters.items()}
        how = f"at least {ALONE * factor:,.4g} times the counts of size {arm.counted.size!r}"
        return _counts(arm.counted, least, how) if factor else None
    known = {name: full.counters[name] for name in executed.COUNTERS if name in full.solved}
    return _counts(arm.counted, known, full.how)


def _counts(evidence: EmulatedEvidence, counters: dict[str, int], how: str = "") -> LaunchCounts:
    return LaunchCounts(
        counters=counters,
        flops_of_mma=executed.flops_of_mma(evidence),
        polls=executed.polls(evidence),
        how=how,
    )
