"""Rules about warps and CTAs: how many an SM has, how the grid fills the chip, barriers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kernelexp.facts.counters import PTX
from kernelexp.judge.limits import advice, bottleneck, bounds, floors
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.opportunity import Opportunity, RuleResult, Suppressed, place

TAIL_FROM = 0.01
"""Share of the time from which an unfinished last wave is listed."""
BARRIERS_FROM = 0.5
"""Barriers per tile and warp; below it they are those of the beginning and the end."""
MANY_BARRIERS = 32.0
"""Barriers per CTA and warp from which they are listed of a kernel that is near no limit."""
_WARP = 32


def occupancy(case: Case) -> Iterator[RuleResult]:
    """Fewer warps per SM than it holds, and what limits them."""
    build = case.arm.build
    if build is None or build.occupancy.warps_per_sm >= build.occupancy.warps_limit:
        return
    held, used = build.occupancy, build.resources
    if why := _why_few_warps(case):
        yield Suppressed(rule="TheoreticalOccupancy", why=why)
        return
    share = held.warps_per_sm / held.warps_limit
    near = bounds.nearest(bounds.uses(case))
    percent, reckoning = None, "no estimate: what more warps would hide needs a measured time"
    if near and near.percent is not None:
        percent = max(min(100 * (1 - share), 100 - near.percent), 0.0)
        reckoning = (
            f"the smaller of 100% - {100 * share:.1f}% of the warps and 100% - {near.percent:.1f}% "
            f"use of {near.resource}, as ncu; more warps only help where they would hide latency"
        )
    smem = used.static_smem_bytes + used.dynamic_smem_bytes
    yield Opportunity(
        rule="TheoreticalOccupancy",
        issue=f"{held.warps_per_sm} of {held.warps_limit} warps per SM, limited by "
        f"{' and '.join(held.limited_by)}: "
        f"{used.registers} registers per thread, {smem:,} B of shared memory, "
        f"{used.threads} threads",
        percent=percent,
        kind="built",
        reckoning=reckoning,
        at_most=True,
        figures={"warps_per_sm": held.warps_per_sm, "ctas_per_sm": held.ctas_per_sm},
    )


def _why_few_warps(case: Case) -> str:
    """Says why more warps per SM are no advice for this launch; empty where they may be."""
    if why := advice.one_cta_by_design(case):
        return why
    share = bottleneck.grid(case)
    limit = share.per_sm if share else 0
    if share and share.most <= limit and not (share.most == limit and case.is_persistent):
        return (
            f"the grid limits the warps: {share.ctas:,} CTAs on {share.sms} SMs, which hold "
            f"{share.per_sm} each"
        )
    near = bounds.nearest(bounds.uses(case))
    if near and near.percent is not None and near.percent >= bottleneck.BOUND:
        return f"{near.resource} is busy for {near.percent:.1f}%: more warps would wait for it too"
    return ""


def grid(case: Case) -> Iterator[RuleResult]:
    """SMs without a CTA or with fewer than they hold, and SMs that are idle in the last wave."""
    share = bottleneck.grid(case)
    if share is None:
        return
    figures = {
        "launch__grid_size": float(share.ctas),
        "ctas_per_sm": float(share.per_sm),
        "SMs": float(share.sms),
    }
    if share.waves < 1 and (
        share.ctas < share.sms or _leaves_room(case, share) or _is_uneven(case, share)
    ):
        yield _small_grid(case, share, figures)
    elif share.waves > 1:
        whole = math.ceil(share.waves)
        idle, reckoning = 1 - share.waves / whole, f"({whole} - {share.waves:.2f}) / {whole} waves"
        if share.per_sm > 1 and not _waits(case):  # CTAs of an SM share the unit that is busy
            idle = 1 - share.busy
            mean = share.ctas / share.sms
            reckoning = f"of all CTAs an SM executes {share.most:,} at most, {mean:,.2f} on average"
        if idle >= TAIL_FROM and not _is_of_chip(case):
            yield Opportunity(
                rule="TailWave",
                issue=f"{share.waves:.2f} waves of {share.sms * share.per_sm:,} CTAs: the last one "
                "is not full",
                percent=100 * idle,
                kind="built",
                reckoning=f"{reckoning}, if all CTAs take the same time",
                figures=figures,
            )


def _is_of_chip(case: Case) -> bool:
    """Whether what needs longest is shared by all SMs, which fewer of them use as much."""
    longest = max(floors.floors(case), key=lambda floor: floor.seconds, default=None)
    near = bounds.nearest(bounds.uses(case))
    of = near.resource if near else longest.resource if longest else ""
    return of in floors.OF_CHIP


def _leaves_room(case: Case, share: bottleneck.GridShare) -> bool:
    return share.most < share.per_sm and not case.is_persistent


def _is_uneven(case: Case, share: bottleneck.GridShare) -> bool:
    """Whether some SMs have a CTA more than others, and that is a good part of their work."""
    even = share.most * share.sms
    return share.ctas < bottleneck.BUSY * even and not case.is_persistent


def _of_even(share: bottleneck.GridShare) -> str:
    """Says why a grid with work for each SM has no estimate."""
    words = "every SM has work: what more warps would hide needs a measurement"
    if not share.ctas % share.sms:
        return words
    lost = 100 * (1 - share.ctas / (share.most * share.sms))
    return f"{words}; as many CTAs on every SM would save {lost:.0f}% where they share a busy unit"


def _small_grid(case: Case, share: bottleneck.GridShare, figures: dict[str, float]) -> Opportunity:
    idle = max(0.0, 1 - share.ctas / share.sms)
    build = case.arm.build
    limit = build.occupancy.warps_limit if build else 0
    ctas = "1 CTA" if share.ctas == 1 else f"{share.ctas:,} CTAs"
    words = f"{ctas} for {share.sms} SMs: {share.waves:.2g} waves"
    if share.ctas < share.sms:
        words += f", {share.sms - share.ctas} SMs without work"
    more = share.ctas % share.sms
    if more and not idle:
        words += f", {share.most} CTAs on {more} SMs and {share.most - 1} on the others"
    warps = -(-build.resources.threads // _WARP) * share.ctas / share.sms if build else 0
    words += f", at most {share.warps_per_sm} of {limit} warps on an SM and {warps:.3g} on average"
    near = bounds.nearest(bounds.uses(case))
    percent: float | None = 100 * idle
    reckoning = f"1 - {share.ctas:,} CTAs / {share.sms} SMs"
    if not idle:
        percent, reckoning = None, _of_even(share)
    if near and near.percent is not None and near.percent < bounds.NEAR:
        percent = max(100 * idle, min(100 * (1 - share.waves), 100 - near.percent))
        reckoning = (
            f"the smaller of 1 - {share.waves:.2g} waves and 100% - {near.percent:.1f}% use of "
            f"{near.resource}, if the work can be split into more CTAs"
        )
    return Opportunity(
        rule="SmallGrid",
        issue=words,
        percent=percent,
        at_most=True,
        kind="built",
        reckoning=reckoning,
        figures=figures,
    )


def barriers(case: Case) -> Iterator[RuleResult]:
    """CTA barriers with no second CTA on the SM to fill the wait, or many where warps wait."""
    name = f"{'sass' if case.counts_sass else 'ptx'}__inst_executed_barrier"
    count, build = case.counters.get(name, 0), case.arm.build
    if not count or build is None or not case.tiles or advice.one_cta_by_design(case):
        return
    warps, per_sm = -(-build.resources.threads // _WARP), build.occupancy.ctas_per_sm
    per_tile = count / case.tiles / warps
    per_cta = count / case.ctas / warps if case.ctas else per_tile
    if not (per_sm < 2 and per_tile >= BARRIERS_FROM) and not (
        per_cta >= MANY_BARRIERS and _waits(case)
    ):
        return
    line = case.dearest(name.removeprefix(PTX))
    share = bottleneck.grid(case)  # a small grid gives an SM fewer than it holds
    per_sm = min(per_sm, share.most) if share else per_sm
    yield Opportunity(
        rule="LaunchConfiguration",
        issue=f"{per_tile:,.3g} CTA barriers per tile and warp, {per_cta:,.0f} per CTA, with "
        f"{per_sm} {'CTA' if per_sm == 1 else 'CTAs'} per SM: while warps wait, the SM has "
        f"{'no' if per_sm == 1 else 'few'} others",
        kind="emulated",
        reckoning="no estimate: kernelexp profile counts the stalls at barriers",
        figures={name: float(count), "tiles": float(case.tiles), "ctas": float(case.ctas)},
        line=place(line),
        part=case.part(line, name.removeprefix(PTX)),
    )


def _waits(case: Case) -> bool:
    """Whether no limit is near."""
    near = bounds.nearest(bounds.uses(case))
    return near is not None and near.percent is not None and near.percent < bounds.NEAR
