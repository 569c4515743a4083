"""Savings of a launch if a part of the chip had less to do, bounded by the next limit.

A limit that is busy for so many points of the time less leaves the time to the next one. Where the
busiest limit is what holds the kernel, the next is taken to become as busy as that one is now.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelexp.judge.limits import bottleneck, bounds
from kernelexp.judge.limits.bounds import NEAR
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.floors import OF_CHIP, Resource, floors

_PARTS: tuple[Resource, ...] = ("L1 data pipe", "shared memory", "L1 tag stage", "LSU", "L1 to L2")


def _where_busy(case: Case, points: Mapping[Resource, float]) -> dict[Resource, float]:
    """Scales the use of the units of an SM to the time of the SMs that have CTAs, in percent."""
    busy = bottleneck.allowed(case)
    return {
        resource: value if resource in OF_CHIP else min(100.0, value / busy)
        for resource, value in points.items()
    }


def shares(case: Case) -> tuple[dict[Resource, float], str]:
    """Percent of the time that each resource is busy, and of which time: without one, of what the
    slowest resource needs."""
    known = {use.resource: use.percent for use in bounds.uses(case) if use.percent is not None}
    if known:
        return known, ""
    least = {floor.resource: floor.seconds for floor in floors(case)}
    longest = max(least.values(), default=0.0)
    if not longest:
        return {}, ""
    of_longest = {resource: 100 * seconds / longest for resource, seconds in least.items()}
    return of_longest, f"of the longest floor, {1e3 * longest:.4g} ms; not measured"


def points(case: Case, resource: Resource, seconds: float) -> float:
    """Converts seconds of a resource to percent of the time that shares() is of."""
    time = case.time_s or max((floor.seconds for floor in floors(case)), default=0.0)
    known, _ = shares(case)
    return min(100 * seconds / time, known.get(resource, 100.0)) if time else 0.0


def relief(case: Case, freed: Mapping[Resource, float]) -> tuple[float | None, str]:
    """About which percentage is saved if resources are busy for so many points less, and why."""
    known, of_what = shares(case)
    known = _where_busy(case, known)
    own = {
        resource: saved
        for resource, saved in _where_busy(case, freed).items()
        if resource in known and saved > 0
    }
    if not own:
        return None, _unknown(case, freed)
    top = max(known, key=lambda item: known[item])
    after = _after(known, own)
    following = max(after, key=lambda item: after[item])
    most = max(own, key=lambda item: own[item])
    gain = max(0.0, min(own[most], _bound(known[top], after[following], top in _touched(own))))
    words = f"{own[most]:.1f} points less than the {known[most]:.1f}% of {most}"
    words += f" ({of_what})" if of_what else ""
    words += " on the SMs that have CTAs" if bottleneck.allowed(case) < 1.0 else ""
    if top not in _touched(own) and known[top] >= NEAR:
        return gain, f"{words}, but {top} is nearer, {known[top]:.1f}%, and bounds it"
    if following == most:
        return gain, f"{words}; it is the nearest then, too, with {after[following]:.1f}%"
    return gain, (
        f"{words}; then {following} is next with {after[following]:.1f}%, "
        + (
            f"and 1 - {after[following]:.1f} / {known[top]:.1f} is {gain:.1f}%"
            if gain < own[most]
            else "which does not bound it"
        )
    )


def most(case: Case, freed: Mapping[Resource, float]) -> float:
    """Returns the most percent saved if resources are busy for so many points less, those of SMs
    that have CTAs: until the one that is then the busiest is busy all the time."""
    known = _where_busy(case, shares(case)[0])
    return 100 - max(_after(known, freed).values(), default=0.0)


def _bound(top: float, following: float, is_of_top: bool) -> float:
    return 100 * (1 - following / top) if is_of_top and top >= NEAR else 100 - following


def _touched(freed: Mapping[Resource, float]) -> set[Resource]:
    """The whole of L1 has less to do where a part of it has."""
    return {*freed, "L1"} if any(part in freed for part in _PARTS) else {*freed}


def _after(
    known: Mapping[Resource, float], freed: Mapping[Resource, float]
) -> dict[Resource, float]:
    after = {resource: share - freed.get(resource, 0.0) for resource, share in known.items()}
    parts = [saved for resource, saved in freed.items() if resource in _PARTS]
    if "L1" in after and parts:
        rest = max((after[part] for part in _PARTS if part in after), default=0.0)
        after["L1"] = max(known["L1"] - max(parts), rest)
    return after


def _unknown(case: Case, freed: Mapping[Resource, float]) -> str:
    if case.chip is None:
        return "no estimate: the chip's limits are not known"
    if case.ratios_of:
        why = case.ratios_why or "tiles() in problem.py would give the counts of the full problem"
        return f"no estimate: counted at size '{case.ratios_of}'; {why}"
    return f"no use of {' or '.join(freed)} is known: kernelexp profile counts it"
