"""ncu's own rules as opportunities, without those that are known to be false for a launch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from kernelexp.judge.limits import bounds
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.opportunity import (
    Opportunity,
    RuleResult,
    Suppressed,
    contention,
    excess_of_wavefronts,
    hidden,
    place,
)
from kernelexp.model.arm import Advice, ProfiledInstruction
from kernelexp.model.text import shorten

_SAID_MAX = 220
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
# Columns of ncu's source page.
_EXCESS_SHARED = "L1 Wavefronts Shared Excessive"
_EXCESS_GLOBAL = "L2 Theoretical Sectors Global Excessive"
# What the rules about waiting warps say of is every warp alike.
_OF_ALL_WARPS = ("CPIStall", "IssueSlotUtilization")
# What they say may be of warps that nothing waits for.
_OF_SOME_WARPS = frozenset(
    """ThreadDivergence SharedMemoryConflicts UncoalescedSharedAccess UncoalescedGlobalAccess
    MemoryCacheAccessPattern""".split()
)
_BUSY = ("HighPipeUtilization", "SOLBottleneck", "SOLFPRoofline")
# More CTAs or warps per SM.
_MORE_WARPS = ("TheoreticalOccupancy", "AchievedOccupancy", "LaunchConfiguration")
# Rules of ncu's by the one of ours that speaks of the same cause.
_CAUSES = {
    "SharedMemoryConflicts": ("SharedMemoryConflicts", "UncoalescedSharedAccess"),
    "UncoalescedGlobalAccess": ("UncoalescedGlobalAccess", "MemoryCacheAccessPattern"),
    "TheoreticalOccupancy": ("TheoreticalOccupancy", "AchievedOccupancy"),
    "ThreadDivergence": ("ThreadDivergence",),
    "SmallGrid": ("LaunchConfiguration", "AchievedOccupancy", "TheoreticalOccupancy"),
    "LaunchConfiguration": ("LaunchConfiguration",),
}
_GLOBAL = ("UncoalescedGlobalAccess", "MemoryCacheAccessPattern")
_SHARED = ("SharedMemoryConflicts", "UncoalescedSharedAccess")


def take(case: Case) -> Iterator[RuleResult]:
    """Yields ncu's advice, without its plain information (INF) and what it says of itself."""
    for advice in case.arm.profiled.advice if case.arm.profiled else ():
        if advice.kind == "INF" or "optional metric" in advice.sentence:
            continue
        if why := _false(case, advice):
            yield Suppressed(rule=advice.rule, why=why, speedup_percent=advice.speedup_percent)
        else:
            yield _opportunity(case, advice)


def fold(own: list[Opportunity], ncu: Opportunity) -> bool:
    """Names ncu's rule with the opportunity of the same cause; False where there is none."""
    for place_of, opportunity in enumerate(own):
        if ncu.kind == "profiled" and ncu.rule in _CAUSES.get(opportunity.rule, ()):
            estimate = ncu.figures.get("ncu's estimate, percent")
            words = ncu.rule if estimate is None else f"{ncu.rule} {estimate:.4g}%"
            line = opportunity.line or ncu.line
            also = tuple(dict.fromkeys((*opportunity.also, words)))
            own[place_of] = msgspec.structs.replace(opportunity, also=also, line=line)
            return True
    return False


def is_answered(suppressed: Iterable[Suppressed], ncu: Opportunity) -> bool:
    """Whether our rule of the same cause has found the advice to be false."""
    return any(ncu.rule in _CAUSES.get(item.rule, ()) for item in suppressed)


def one_cta_by_design(case: Case) -> str:
    """Says why one CTA per SM is not a fault of this kernel; empty where nothing says so."""
    build = case.arm.build
    if build is None or build.occupancy.ctas_per_sm != 1:
        return ""
    if case.is_specialised:
        return (
            "one CTA fills an SM by design: its warps have roles, and asynchronous copies and MMAs "
            "need few of them"
        )
    if case.is_persistent:
        return "one CTA per SM by design: the kernel is persistent"
    return ""


def _false(case: Case, advice: Advice) -> str:
    """Says why a warning is false for this launch; empty where it is not known to be."""
    if advice.rule in _OF_ALL_WARPS and case.is_specialised:
        return (
            "shares of all warps alike say nothing of a kernel whose warps have roles: most of "
            "them wait by design (kernelexp inspect --lines shows stalls by source line)"
        )
    if advice.rule in _OF_ALL_WARPS:
        return "waiting warps are what other causes do; no cause of their own"
    if advice.rule in _MORE_WARPS and (why := one_cta_by_design(case)):
        return why
    if advice.rule == "MemoryL2Compression" and "only 0.00%" in advice.sentence:
        return (
            "only memory that was allocated as compressible can be compressed, which that of a "
            "measurement is not; it is no property of the kernel"
        )
    if advice.rule in (*_BUSY, "FPInstructions"):
        return _false_of_pipes(case, advice)
    if advice.rule in _GLOBAL:
        return _false_global(case, advice)
    if advice.rule in _SHARED:
        excess, kind = excess_of_wavefronts(case)
        words, op = ("stores", "st") if "store" in advice.sentence else ("loads", "ld")
        conflicts = case.figure(_CONFLICTS + op)
        return contention(case, words, conflicts, kind) if excess == 0 and conflicts else ""
    return ""


def _false_of_pipes(case: Case, advice: Advice) -> str:
    if advice.rule in _BUSY:
        return "how busy pipes are is no advice; the limits below have it"
    known = {use.resource: use.percent for use in bounds.uses(case) if use.percent is not None}
    busiest = max((known.get(item, 0.0) for item in ("FMA pipe", "issue slots")), default=0.0)
    if not known or busiest >= bounds.NEAR:
        return ""
    return f"the FMA pipe and the issue slots are busy for {busiest:.1f}% at most, and hold nothing"


def _false_global(case: Case, advice: Advice) -> str:
    if case.figure("derived__memory_l2_theoretical_sectors_global_excessive") == 0:
        return (
            "no sector is beyond what the addresses need: accesses of several widths only lower "
            "the average of sectors per request"
        )
    stores = _excess_of_stores(case)
    if "store" in advice.sentence and "load" not in advice.sentence and stores == 0:
        return (
            "no store asks for a sector that it does not fill: stores of several widths (64 and "
            "128 bits) only lower the average of sectors per request"
        )
    return ""


def _excess_of_stores(case: Case) -> float | None:
    """Sectors that global stores ask for beyond their bytes, by the source page; None without."""
    stores = [item for item in _instructions(case) if re.match(r"(@\S+ )?STG", item.sass)]
    return sum(store.figures.get(_EXCESS_GLOBAL, 0.0) for store in stores) if stores else None


def _instructions(case: Case) -> tuple[ProfiledInstruction, ...]:
    return case.arm.profiled.instructions if case.arm.profiled else ()


def _opportunity(case: Case, advice: Advice) -> Opportunity:
    local = advice.scope == "local"
    estimate = advice.speedup_percent
    words = "ncu's rule makes no estimate"
    figures = {} if estimate is None else {"ncu's estimate, percent": estimate}
    if estimate is not None:
        words = f"ncu's estimate, {advice.scope or 'scope not known'}"
        words += f": {estimate:.4g}% of the part that the rule is about" if local else ""
    near = bounds.nearest(bounds.uses(case))
    if estimate is not None and near and near.percent is not None and near.percent >= bounds.NEAR:
        rest = 100 - near.percent
        if estimate > rest and not local:
            words += f" of {estimate:.4g}%, bounded by {near.resource}, which is at "
            words += f"{near.percent:.1f}%"
            estimate = rest
    return Opportunity(
        rule=advice.rule,
        issue=_first_words(advice.sentence),
        percent=None if local else estimate,
        kind="profiled",
        reckoning=words,
        figures=figures,
        line=_line(case, advice.rule),
        hidden=hidden(case) if advice.rule in _OF_SOME_WARPS else "",
    )


def _first_words(sentence: str) -> str:
    """The first sentences of what a rule says, without addresses of pages."""
    plain = re.sub(r"\s*\(https?://\S*\)", "", " ".join(sentence.split()))
    words = ""
    for part in re.split(r"(?<=[.!?])\s*(?=[A-Z])", plain):
        if words and len(words) + len(part) >= _SAID_MAX:
            break
        words = f"{words} {part}".strip()
    return shorten(words, 2 * _SAID_MAX)


def _line(case: Case, rule: str) -> str:
    """The line with most of the excess, by the source page, else as emulated."""
    if rule not in (*_SHARED, *_GLOBAL):
        return ""
    column = _EXCESS_SHARED if rule in _SHARED else _EXCESS_GLOBAL
    costs: dict[str, float] = {}
    for instruction in _instructions(case):
        if instruction.line and instruction.figures.get(column):
            where = f"{instruction.file}:{instruction.line}"
            costs[where] = costs.get(where, 0.0) + instruction.figures[column]
    if costs:
        return max(costs, key=lambda where: costs[where])
    stem = (
        "memory_l1_wavefronts_shared" if rule in _SHARED else "memory_l2_theoretical_sectors_global"
    )
    return place(case.dearest(stem, f"{stem}_ideal"))
