"""Possible gains in one variant, a function per rule: the issue, its figures, an estimate.

A cause is listed once: ncu's own rules (advice.py) on the same cause are named with it. An estimate
is roughly the share of the time that would be saved, bounded by the next limit (opportunity.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.facts.counters import EXECUTED
from kernelexp.facts.metrics import Kind
from kernelexp.judge.limits import advice, bounds, floors
from kernelexp.judge.limits.accesses import (
    bank_conflicts,
    global_atomics,
    mixed_stores,
    shared_atomics,
    spills,
    uncoalesced,
)
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.filling import barriers, grid, occupancy
from kernelexp.judge.limits.floors import Resource
from kernelexp.judge.limits.opportunity import (
    Opportunity,
    RuleResult,
    Suppressed,
    place,
    relief,
    shares,
)
from kernelexp.model.arm import EmulatedLine

LANES_FROM = 24.0
"""Active threads per warp below which divergence is listed: ncu's own threshold."""
ISSUED_FROM = 1.25
"""Times that the bytes take which must move from which the issue slots' time is listed."""
_WARP = 32
_ISSUED: tuple[Resource, ...] = ("issue slots", "FMA pipe", "ALU pipe", "XU pipe", "LSU")
"""What full warps would need less of."""
_GEMM_FLOPS_PER_BYTE = 16.0
"""FLOPs per byte from which work without tensor instructions is listed."""

Rule: TypeAlias = Callable[[Case], Iterator[RuleResult]]


def _executed(case: Case) -> str:
    return EXECUTED["sass" if case.counts_sass else "ptx"]


def _lanes(case: Case) -> tuple[float | None, Kind]:
    """Active threads per warp instruction."""
    lanes = case.figure("smsp__thread_inst_executed_per_inst_executed.ratio")
    if lanes is not None:
        return lanes, "profiled"
    name = _executed(case)
    threads = case.counters.get(name.replace("inst", "thread_inst"), 0)
    return threads / case.counters[name] if threads and case.counters.get(
        name
    ) else None, "emulated"


def divergence(case: Case) -> Iterator[RuleResult]:
    """Instructions that few threads of a warp execute."""
    lanes, kind = _lanes(case)
    if lanes is None or lanes >= LANES_FROM:
        return
    if case.is_specialised:
        why = f"{lanes:.1f} of {_WARP} threads active: single threads issue copies and MMAs"
        yield Suppressed(rule="ThreadDivergence", why=f"{why}, and polls, by design")
        return
    known, idle = shares(case)[0], 1 - lanes / _WARP
    freed = {name: idle * known[name] for name in _ISSUED if name in known}
    percent, reckoning = relief(case, freed or {"issue slots": 0.0})
    yield Opportunity(
        rule="ThreadDivergence",
        issue=f"{lanes:.1f} of {_WARP} threads per warp are active on average",
        cause=f"divergence ({lanes:.1f} of {_WARP} threads active)",
        percent=percent,
        at_most=True,
        kind=kind,
        reckoning=reckoning,
        figures={"active threads per warp": lanes},
        line=place(_idlest(case)),
    )


def _idlest(case: Case) -> EmulatedLine | None:
    """The line at which most lanes are idle."""
    executed = _executed(case)

    def idle(line: EmulatedLine) -> int:
        threads = line.counters.get(executed.replace("inst", "thread_inst"), 0)
        return _WARP * line.counters.get(executed, 0) - threads

    best = max(case.lines, key=idle, default=None)
    return best if best and idle(best) > 0 else None


def instructions(case: Case) -> Iterator[RuleResult]:
    """Issue slots that are busy for longer than the useful work needs."""
    known, of_what = shares(case)
    least = {floor.resource: floor.seconds for floor in floors.floors(case)}
    issue, need = least.get("issue slots", 0.0), _useful(case, least)
    if not need or issue < ISSUED_FROM * need or known["issue slots"] < max(known.values()):
        return
    lanes = _lanes(case)[0]
    if (case.time_s and known["issue slots"] < bounds.NEAR) or (lanes and lanes < LANES_FROM):
        return  # latency, or divergence, which is its cause
    others = {name: share for name, share in known.items() if name != "issue slots"}
    following = max(others, key=lambda name: others[name])
    name = _executed(case)
    line, taken = case.dearest(name), case.taken
    if line and case.waits_at(line):
        line = None  # how often it looks again is no work
    share = line.counters[name] / taken.counters[name] if line and taken else 0.0
    yield Opportunity(
        rule="InstructionIssue",
        issue=f"the issue slots are busy {issue / need:.1f} times as long as the "
        + ("useful FLOPs and bytes need" if case.flops else "bytes need that must move")
        + (f"; {100 * share:.0f}% of the instructions are at {place(line)}" if share else ""),
        cause=f"instructions, which take {issue / need:.1f} times as long to issue as the useful "
        "work needs" + (f" ({100 * share:.0f}% at {_name(line)})" if line and share else ""),
        percent=100 * (1 - others[following] / known["issue slots"]),
        at_most=True,
        kind="emulated",
        reckoning=f"{known['issue slots']:.1f}% of the issue slots{f' ({of_what})' * bool(of_what)}"
        f"; {following} is next with {others[following]:.1f}%",
        figures={name: float(case.counters[name]), "issue_ms": 1e3 * issue, "need_ms": 1e3 * need},
    )


def _name(line: EmulatedLine) -> str:
    return place(line).rpartition("/")[2]


def _useful(case: Case, least: Mapping[Resource, float]) -> float:
    """Seconds that the bytes which must move and the useful FLOPs need: on the tensor cores, else
    on the FMA pipe; 0 where the problem states no bytes."""
    chip, clock = case.chip, case.clock()[0]
    memory = least.get("device memory", 0.0)
    arch = ARCHITECTURES.get(chip.arch) if chip else None
    if not (memory and chip and arch and clock):
        return 0.0
    fma = case.flops / (2 * _WARP * arch.per_clock("fma") * chip.sms.value * clock)
    return max(memory, least.get("tensor cores", fma))


def no_tensor_cores(case: Case) -> Iterator[RuleResult]:
    """The FLOPs of a matrix product without one tensor instruction."""
    if case.arm.build is None or floors.tensor_type(case) or not case.bytes:
        return
    intensity = case.flops / case.bytes
    if intensity >= _GEMM_FLOPS_PER_BYTE:
        yield Opportunity(
            rule="NoTensorInstructions",
            issue=f"{intensity:.0f} FLOPs per byte that must move, and no tensor instruction",
            kind="built",
            reckoning="no estimate: it depends on the type of operands that the problem allows",
            figures={"flops": float(case.flops), "bytes": float(case.bytes)},
        )


RULES: tuple[Rule, ...] = (
    bank_conflicts,
    shared_atomics,
    global_atomics,
    uncoalesced,
    mixed_stores,
    occupancy,
    grid,
    divergence,
    instructions,
    barriers,
    no_tensor_cores,
    spills,
)


def find(case: Case) -> tuple[list[Opportunity], list[Suppressed]]:
    """Largest estimate first, those without one after them; and what was suppressed."""
    rules = [entry for rule in RULES for entry in rule(case)]
    own = [entry for entry in rules if isinstance(entry, Opportunity)]
    suppressed = [entry for entry in rules if isinstance(entry, Suppressed)]
    for item in advice.take(case):
        if isinstance(item, Suppressed):
            suppressed.append(item)
        elif not advice.fold(own, item) and not advice.is_answered(suppressed, item):
            own.append(item)
    own.sort(key=lambda opportunity: 1.0 if opportunity.percent is None else -opportunity.percent)
    return own, _once(suppressed)


def _once(suppressed: list[Suppressed]) -> list[Suppressed]:
    """A reason once for all the rules that it is of."""
    by_why: dict[str, Suppressed] = {}
    for item in suppressed:
        first = by_why.get(item.why)
        if first is None:
            by_why[item.why] = item
        elif item.rule not in first.rule.split(", "):
            rule = f"{first.rule}, {item.rule}"
            by_why[item.why] = msgspec.structs.replace(first, rule=rule, speedup_percent=None)
    return [*by_why.values()]
