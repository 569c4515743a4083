"""An opportunity: an issue of one variant, its figures, and about what it costs."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from kernelexp.facts.metrics import Kind
from kernelexp.judge.limits.case import Case
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
