"""A variant's use of each limit of its chip: from its profile, else computed.

A computed use is the least time that a resource needs for a launch (floors.py), as a share of the
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import msgspec

from kernelexp.facts import derived
from kernelexp.facts.metrics import Kind
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.floors import OF_CHIP, Floor, Resource, floors, tensor_type

RESOURCES: tuple[Resource, ...] = get_args(Resource)
MAIN: tuple[Resource, ...] = (
    "tensor cores",
    "L1 data pipe",
    "shared memory",
    "L2",
    "device memory",
    "issue slots",
)
"""What every page says something of, if only why it is not known."""
NEAR = 60.0
"""Percent of a limit above which ncu speaks of a bottleneck; below it everywhere: latency."""

UNUSED = "no tensor instructions"
"""Why a kernel's use of the tensor cores has no figure, where it has none to know."""
_PERCENT = "avg.pct_of_peak_sustained_elapsed"
_SUM = "sum.pct_of_peak_sustained_elapsed"
_PROFILED: dict[Resource, tuple[str, ...]] = {
    "tensor cores": (
        f"sm__pipe_tensor_cycles_active.{_PERCENT}",
        f"sm__pipe_tc_cycles_active.{_PERCENT}",
    ),
    "L1": (f"l1tex__throughput.{_PERCENT}", "l1_throughput_percent"),
    "L1 data pipe": (f"l1tex__data_pipe_lsu_wavefronts.{_PERCENT}",),
    "shared memory": (f"l1tex__data_pipe_lsu_wavefronts_mem_shared.{_SUM}",),
    "LSU": (f"l1tex__lsuin_requests.{_PERCENT}", f"sm__inst_executed_pipe_lsu.{_PERCENT}"),
    "L1 to L2": (f"l1tex__m_l1tex2xbar_req_cycles_active.{_PERCENT}",),
    "FMA pipe": (f"sm__pipe_fma_cycles_active.{_PERCENT}",),
    "ALU pipe": (f"sm__pipe_alu_cycles_active.{_PERCENT}",),
    "XU pipe": (f"sm__inst_executed_pipe_xu.{_PERCENT}",),
    "L2": (f"lts__throughput.{_PERCENT}", f"lts__t_sectors.{_PERCENT}"),
    "device memory": (
        f"gpu__dram_throughput.{_PERCENT}",
        f"dram__throughput.{_PERCENT}",
        f"dram__cycles_active.{_PERCENT}",
    ),
    "issue slots": (
        f"sm__inst_issued.{_PERCENT}",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
        "issue_slots_busy_percent",
        "smsp__warps_issue_stalled_selected.avg.pct_of_peak_sustained_active",
    ),
}
_OPERANDS = "l1tex__data_pipe_tc_wavefronts_mem_shared"
"""What tcgen05's MMAs read."""
_TAGS = ("memory_l1_tag_requests_global", "l1tex__cycles_elapsed")
_ELAPSED = ("sm__cycles_elapsed.avg", "l1tex__cycles_elapsed.avg", "smsp__cycles_elapsed.avg")


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """The use of one limit."""

    resource: Resource
    percent: float | None = None
    floor_ms: float | None = None
    """The least time that it needs; None where the limit or the work is not known."""
    time_ms: float | None = None
    """Of which it is the share; None where it is one of the cycles under the profiler."""
    rough: bool = False
    """Whether the work is about so much: of a count that two small sizes do not solve."""
    kind: Kind | None = None
    """`emulated` where the work was counted so, else that of the time."""
    reckoned: str = ""
    """ncu's metric, or the formula with its inputs; where there is no figure, why."""
    source: str = ""
    """Of the limit."""


def uses(case: Case) -> tuple[Use, ...]:
    """One for each resource, in their order: as ncu reports it, else reckoned."""
    return tuple(_profiled(case, use.resource) or use for use in _reckoned(case))


def _reckoned(case: Case) -> tuple[Use, ...]:
    least = {floor.resource: floor for floor in floors(case)}
    return tuple(_use(case, resource, least.get(resource)) for resource in RESOURCES)


def uses_of_both(one: Case, other: Case) -> tuple[tuple[Use, ...], tuple[Use, ...]]:
    """Returns the uses of two cases, of like kinds: profiled only where both have the share."""
    pairs = zip(uses(one), uses(other), _reckoned(one), _reckoned(other), strict=True)
    chosen = [
        (first, second) if first.kind == second.kind else (plain, plain_too)
        for first, second, plain, plain_too in pairs
    ]
    return tuple(pair[0] for pair in chosen), tuple(pair[1] for pair in chosen)


def is_of_time(use: Use) -> bool:
    """Whether it is a share of the time that the verdict is on."""
    return use.time_ms is not None


def is_of_parts(use: Use) -> bool:
    """Whether it is the largest of several parts' shares, whose product with the time is no work:
    ncu's throughput of L1 and of L2."""
    return use.kind == "profiled" and "__throughput" in use.reckoned


def percent_of(known: Sequence[Use], resource: Resource) -> float:
    """Returns the percentage used of one resource; 0 where it is not known."""
    return next((use.percent or 0.0 for use in known if use.resource == resource), 0.0)


def nearest(known: Sequence[Use]) -> Use | None:
    """The use that is nearest to its limit; None where none is known.

    Where the whole of L1 and a part of it are used alike, it is the part.
    """
    shares = [use for use in known if use.percent is not None]
    return max(
        shares,
        key=lambda use: (round(use.percent or 0.0, 1), use.resource != "L1"),
        default=None,
    )


def _profiled(case: Case, resource: Resource) -> Use | None:
    """The share as ncu reports it; None where it did not, or on another card than was timed."""
    if case.profiled_elsewhere:
        return None
    if resource == "shared memory" and case.counter(_OPERANDS):
        return None  # ncu's share is of the LSU's wavefronts, without those
    if resource == "L1 tag stage":
        return _profiled_tags(case)
    for name in _PROFILED[resource]:
        value = case.figure(name)
        if value is None and derived.is_derived(name) and case.arm.profiled:
            value = dict(derived.derive(case.arm.profiled.figures)).get(name)
        if value is not None:
            return _as_timed(
                case,
                Use(
                    resource=resource,
                    percent=value,
                    kind="profiled",
                    reckoned=name,
                    source="ncu's peak of this chip",
                ),
            )
    return None


def _as_timed(case: Case, use: Use) -> Use:
    """A share of the time that was measured: ncu's is of a launch of its own, at another clock.

    What the SM clocks was busy for as many cycles in either launch; L2 and device memory, whose
    clocks are not the SM's, for as long.
    """
    time, kind = case.time()
    if not time or kind != "measured" or use.percent is None:
        return use
    if use.resource in OF_CHIP:
        taken = case.figure("gpu__time_duration")
        factor, words = (taken or 0.0) / (1e9 * time), f"{(taken or 0.0) / 1e6:.4g} ms under ncu"
        of = f"{1e3 * time:.4g} ms"
    else:
        taken = case.figure(*_ELAPSED)
        factor = (taken or 0.0) / (time * case.clock_hz) if case.clock_hz else 0.0
        words, of = (
            f"{taken or 0.0:,.0f} cycles under ncu",
            f"({1e3 * time:.4g} ms x {case.clock()[1]})",
        )
    if not factor:
        return use
    return msgspec.structs.replace(
        use,
        percent=min(100.0, use.percent * factor),
        time_ms=1e3 * time,
        reckoned=f"{use.reckoned}, {use.percent:.1f}%, x {words} / {of}",
    )


def _profiled_tags(case: Case) -> Use | None:
    """ncu has no share of the tag stage: what it counted, by the cycles of all L1s."""
    count, cycles = map(case.figure, _TAGS)
    if not count or not cycles:
        return None
    use = Use(
        resource="L1 tag stage",
        percent=100 * count / cycles,
        kind="profiled",
        reckoned=" / ".join(_TAGS),
        source="a line per clock and SM",
    )
    return _as_timed(case, use)


def _use(case: Case, resource: Resource, floor: Floor | None) -> Use:
    if floor is None:
        return Use(resource=resource, reckoned=_unknown(case, resource))
    time, kind = case.time()
    return Use(
        resource=resource,
        percent=100 * floor.seconds / time if time else None,
        floor_ms=1e3 * floor.seconds,
        rough=floor.rough,
        kind="emulated" if floor.emulated else kind if time else None,
        time_ms=1e3 * time if time else None,
        reckoned=floor.reckoned,
        source=floor.source,
    )


def _unknown(case: Case, resource: Resource) -> str:
    if case.chip is None:
        return "the chip's limits are not known"
    if resource == "tensor cores":
        if not tensor_type(case):
            return UNUSED
        return "the problem does not state its FLOPs" if not case.flops else "no such peak known"
    if resource in ("shared memory", "L1 data pipe") and case.counters and case.is_merged:
        return "counted on PTX, and SASS accesses shared memory in other widths"
    if resource == "L2":
        return "no source gives its peak"
    if resource == "device memory":
        return "the problem does not state its bytes"
    return "not counted"
