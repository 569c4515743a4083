"""An opportunity: an issue of one variant, its figures, and about what it costs; the part of that
which relief saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from kernelexp.facts.metrics import Kind
from kernelexp.judge.limits import bottleneck, bounds
from kernelexp.judge.limits.bounds import NEAR
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.floors import OF_CHIP, Resource, floors
from kernelexp.model.arm import EmulatedLine

_ROLES = (
    "TMA and mbarriers feed the kernel: where its warps have roles, the cost counts only if those "
    "that it is of are what the rest waits for"
)


GLOBAL_ATOMICS = "GlobalAtomics"
"""The rule whose cost no limit covers."""


class Opportunity(msgspec.Struct, frozen=True, kw_only=True):
    """One issue with what it may cost."""

    rule: str
    issue: str
    cause: str = ""
    """What a conclusion names where this is the largest, such as `2.8-way bank conflicts`; empty
    where it only says what might help."""
    percent: float | None = None
    """About which share of the time would be saved, bounded by the next limit; None where the
    evidence gives no estimate."""
    kind: Kind
    """Of the evidence."""
    reckoning: str = ""
    """How the estimate was made; where there is none, what would supply it."""
    figures: dict[str, float] = {}
    """Its inputs by name: ncu's, or a plain word."""
    line: str = ""
    """The source line that causes most of it, file:line; empty where it is not known."""
    part: float = 0.0
    """How much of it that line causes, of 1; 0 where that is not known."""
    at_most: bool = False
    """Whether the estimate is a bound: what it costs depends on more than is known."""
    also: tuple[str, ...] = ()
    """Rules of ncu's that speak of the same cause, with their estimates."""
    hidden: str = ""
    """Why the cost may not show in the time; empty where nothing says so."""

    @property
    def is_of_accesses(self) -> bool:
        """Whether memory is accessed more often than it must be."""
        return self.rule not in ("ThreadDivergence", "InstructionIssue")


class Suppressed(msgspec.Struct, frozen=True, kw_only=True):
    """A warning that is known to be false for this launch."""

    rule: str
    why: str
    speedup_percent: float | None = None
    """What ncu estimated."""


RuleResult: TypeAlias = Opportunity | Suppressed


def place(line: EmulatedLine | None) -> str:
    """A line as file:line; empty where there is none."""
    return f"{line.file}:{line.line}" if line else ""


def hidden(case: Case) -> str:
    """Says why what one kind of warps spends may not be what the launch takes."""
    return _ROLES if case.is_specialised else ""


def excess_of_wavefronts(case: Case) -> tuple[float | None, Kind]:
    """Wavefronts of shared memory beyond what the addresses need: profiled, else on SASS, else on
    PTX where SASS has the same widths."""
    profiled = case.figure("derived__memory_l1_wavefronts_shared_excessive")
    if profiled is not None:
        return profiled, "profiled"
    name = "memory_l1_wavefronts_shared"
    if case.named(name) not in case.counters or case.is_merged:
        return None, "emulated"
    return float(case.counter(name) - case.counter(f"{name}_ideal")), "emulated"


def contention(case: Case, words: str, conflicts: float, kind: Kind) -> str:
    """Says why bank conflicts of shared `words` (loads, stores) are none of the layout's.

    `kind` is that of the wavefronts of which none is in excess.
    """
    name = "memory_l1_wavefronts_shared"
    counted = case.named(name) if kind == "emulated" else name
    return (
        f"{conflicts:,.0f} bank conflicts of shared {words}, but no wavefront is beyond what the "
        f"addresses need ({counted} equals its ideal, {kind}), so that another "
        "layout would save none"
    )


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
