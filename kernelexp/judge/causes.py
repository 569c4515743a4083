"""Differences between two arms, by cause, with the time that each change explains.

A count is ranked by the time that its part of the chip needs for the difference, a stall by points
of the warps' time. Differences of one cause are one entry, the one that can explain most first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from kernelexp.facts import counters
from kernelexp.judge import ranking
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.changed import ON_AN_SM, PIPE, WAITS, Cause, ChangedFigure
from kernelexp.judge.limits.changes import ChangedPair
from kernelexp.judge.ranking import Difference, numbers

EXPLAINS = 0.1
"""Percent of the time below which a change explains nothing."""
# What it is called, and which figures are of it, by the beginnings of their names.
_CAUSES: tuple[tuple[str, str], ...] = (
    (WAITS, r"(sass__)?inst_executed_mbarrier_wait"),
    ("mbarriers", r"(sass__)?inst_executed_mbarrier"),
    ("branches", r"(sass__)?inst_executed_branch|smsp__inst_executed_op_branch"
     r"|sm__inst_executed_pipe_cbu"),
    ("barriers", r"(sass__)?inst_executed_(warp_)?barrier|smsp__inst_executed_op_bar"),
    ("spills", r"spill_|stack_bytes|local_|\w+_local_(loads|stores)|derived__local_"
     r"|smsp__inst_executed_op_local|sass__inst_executed_register_spilling"),
    ("operands of MMAs", r"l1tex__data_pipe_tc_wavefronts"),
    ("shared memory", r"memory_l1_wavefronts_shared|l1tex__data_|derived__memory_l1_wavefronts"
     r"|sass__inst_executed_shared|smsp__(sass_)?inst_executed_op_shared_(ld|st)"
     r"|smsp__inst_executed_op_ldsm|smsp__sass_l1tex_data"),
    ("tensor memory", r"smsp__sass_inst_executed_op_tmem|sm__mem_tensor|sass_instructions_tmem"
     r"|sm__inst_executed_pipe_tmem"),
    ("device memory", r"dram__|fbpa__"),
    ("global memory", r"l1tex__(t|m|average_t)_|memory_l2_|memory_l1_tag|lts__|excessive_l2"
     r"|sass__inst_executed_global|derived__memory_l2|smsp__inst_executed_op_(tma|ldgsts)"
     r"|smsp__sass_inst_executed_op_global"),
    ("instruction cache", r"gcc__|sm__icc|idc__|smsp__imc"),
    ("clusters", r"launch__cluster|ctas_per_cluster"),
    ("resources", r"launch__|ctas_per_|warps_per_sm|occupancy_limit|sm__maximum_warps"),
    ("instructions", r"(smsp__|sm__|sass__)?(thread_)?inst_executed|sass_instructions|sass_bytes"
     r"|smsp__sass_inst_executed|sm__inst_executed_pipe"),
)  # fmt: skip
_NAMED = tuple((name, re.compile(pattern)) for name, pattern in _CAUSES)
# The same accesses under another name, figures of time, and shares that the limits have.
_MINOR = (
    "ptx__thread_inst_executed", "smsp__thread_inst_executed",
    "change_", "time_ms", "published_t", "tflops", "emulated_",
    "sass_instructions_none", "l1_throughput_percent", "issue_slots_busy_percent",
    "gpu__compute_memory", "launch__occupancy_limit", "launch__waves",
)  # fmt: skip
_OFF = re.compile(r"smsp__inst_executed_op_(shared|local)_(ld|st)(\.sum)?")
"""With those that no lane executes, as ptxas puts three before the end of a group of copies."""
_SHARE = re.compile(r"pct_of_peak|__throughput|per_second|per_cycle|_cycles_")
_REQUESTS = 1e5
"""Of the instruction cache: 700 an SM, of which an experiment of 0.8 ms felt nothing."""
_INSTRUCTIONS = "instructions"
_COINCIDENCE = 1000
"""A count below which two that are alike may be of different things."""
# What a cause is told by where several of its figures explain as much.
_BEFORE = (
    ON_AN_SM,
    ("ctas_per_sm",),
    ("sass_instructions", "smsp__inst_executed", "launch__registers_per_thread"),
)


OF_TIME = "the baseline's time"
"""What changes are percents of, where it was timed."""


class CausedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """All that differs between two arms."""

    causes: tuple[Cause, ...]
    """What can explain most of the time first, then what goes against it, noise last."""
    waits: tuple[ChangedFigure, ...]
    """Where warps wait, by points, the largest change first."""
    of: str
    """What the percentages of `explains` are of."""
    small: int
    """Figures that differ and explain nothing."""
    alike: int = 0
    """Counts that are about so large in both arms."""
    polled: int = 0
    """Instructions that more polls of mbarriers execute, or below 0 fewer: `explains` leaves them
    out of the instructions."""
    busy: float = 1.0
    """Share of the SMs by whose rate `explains` is, where the grid leaves others idle."""
    uneven: int = 0
    """Counts that the small sizes solve for one arm only, and that are not compared."""


def differing(before: Case, after: Case, slower: float | None) -> CausedDifference:
    """Returns the differences in all evidence that both arms have, by cause; `slower` is the
    relative change of time."""
    pair = ChangedPair(before, after, slower)
    differences = [
        finding.difference
        for finding in ranking.collapse(pair.differences())
        if not _is_minor(finding.difference.metric.name, finding.difference.metric.label)
    ]
    by_cause: dict[str, list[ChangedFigure]] = {}
    few = 0
    for difference in differences:
        name = _cause_of(difference)
        if name == "branches" and pair.branches_are_polls:
            name = WAITS
        figure = pair.changed(difference)
        if pair.is_few(figure):
            few += 1
            continue
        by_cause.setdefault(name, []).append(figure)
    for name, reckoned in (
        ("tensor cores", pair.mmas()),
        ("multicast", pair.reads_of_l2()),
        ("resources", sms := pair.sms()),
        ("resources", warps := pair.warps()),
    ):
        if reckoned:
            by_cause.setdefault(name, []).append(reckoned)
    if sms or warps or pair.is_specialised:
        by_cause["resources"] = list(_without_ways(by_cause.get("resources", [])))
    _drop_pipes_of(by_cause)
    by_cause.update(_opposed(by_cause[_INSTRUCTIONS], pair))
    causes = [
        Cause(name=name, figures=_once(item), noise=noise)
        for name, item in by_cause.items()
        if item
        for noise in (pair.noise(name, item),)
    ]
    shown_causes = [cause for cause in causes if _is_shown(cause)]
    shown = [pair.bounded(cause) for cause in shown_causes]
    shown.sort(
        key=lambda cause: (
            bool(cause.noise),
            cause.leader.way == "against it",  # an arm is not slower for having less to do
            not pair.is_of_the_limit(cause.name),
            pair.is_slight(cause.leader),
            not cause.leader.way,
            _rank(cause.leader)[0],
            _rank(cause.leader)[1] > 1,  # of what no rate says how much, warps or CTAs first
            _rank(cause.leader)[2],
        )
    )
    small = few + sum(len(cause.figures) for cause in causes if cause not in shown_causes)
    of = OF_TIME if before.time_s else "the least that the baseline needs"
    return CausedDifference(
        causes=tuple(shown),
        waits=tuple(pair.waits()),
        of=of,
        small=small,
        alike=pair.alike,
        polled=pair.polled,
        busy=pair.busy,
        uneven=len(pair.uneven),
    )


def _without_ways(figures: Sequence[ChangedFigure]) -> Iterator[ChangedFigure]:
    """Resources have no way of their own where the warps that an SM has are told, of which those
    that resources would allow are no second figure, or where some warps only load."""
    has_warps = any(item.metric in ON_AN_SM for item in figures)
    for item in figures:
        if item.metric in ON_AN_SM:
            yield item
        elif not (has_warps and item.metric.startswith("warps_per_sm")):
            yield msgspec.structs.replace(item, way="")


def _opposed(
    instructions: list[ChangedFigure], pair: ChangedPair
) -> dict[str, list[ChangedFigure]]:
    """Pipes that explain at least half as much as the others do, with the other sign: causes of
    their own, such as exponentials computed by FMAs. They are taken out of `instructions`."""
    leader = min(instructions, key=_rank, default=None)
    most = leader.explains if leader else None
    if not leader or not most or pair.is_slight(leader):
        return {}
    apart = [
        figure
        for figure in instructions
        if PIPE.fullmatch(figure.metric.removesuffix(".sum"))
        and (figure.explains or 0) / most <= -0.5
    ]
    for figure in apart:
        instructions.remove(figure)
    return {figure.label: [figure] for figure in apart}


def _is_minor(name: str, label: str) -> bool:
    if name.startswith(_MINOR) or _SHARE.search(name) or _OFF.fullmatch(name) or "stall" in name:
        return True
    return "__" in label


def _cause_of(difference: Difference) -> str:
    name = difference.metric.name.removeprefix(counters.PTX)
    return next((cause for cause, pattern in _NAMED if pattern.match(name)), counters.OTHER)


def _rank(figure: ChangedFigure) -> tuple[float, int, float, int]:
    """Ranks by what it can explain, then by the relative change; a total goes before its parts, and
    warps before the resources that limit them. Among like changes, what is executed goes before
    what is in the code."""
    name = figure.metric.removesuffix(".sum")
    part = next((place for place, names in enumerate(_BEFORE) if name in names), len(_BEFORE))
    return -abs(figure.explains or 0.0), part, -abs(figure.change or 0.0), _source(figure)


def _source(figure: ChangedFigure) -> int:
    """Counted accesses first, then the pipe that executed them, then the code."""
    return 2 if figure.kind == "built" else int(figure.metric.startswith(counters.PIPE))


def _once(figures: Sequence[ChangedFigure]) -> tuple[ChangedFigure, ...]:
    """Keeps the order, each label once: what was profiled goes before the same that was counted."""
    by_label: dict[str, ChangedFigure] = {}
    for item in sorted(figures, key=_rank):
        known = by_label.setdefault(item.label, item)
        if item.kind == "profiled" and known.kind != "profiled":
            by_label[item.label] = item
    left = sorted(by_label.values(), key=_rank)
    return tuple(item for item in left if _first_of_same(item, left) is item)


def _first_of_same(figure: ChangedFigure, others: Sequence[ChangedFigure]) -> ChangedFigure:
    """Returns the first of the figures that count the same, such as accesses and their pipe."""
    both = numbers(figure.before, figure.after)
    if figure.kind == "built" or both is None or max(both) < _COINCIDENCE:
        return figure
    alike = [
        item
        for item in others
        if item.kind != "built" and (item.before, item.after) == (figure.before, figure.after)
    ]
    return min(alike, key=lambda item: (_source(item), "gmma" not in item.metric))


def _drop_pipes_of(by_cause: dict[str, list[ChangedFigure]]) -> None:
    """Takes out of the instructions the pipes whose count changed as that of another cause did:
    barriers and adu, loads and lsu."""
    grown = {
        _growth(figure)
        for name, every in by_cause.items()
        for figure in every
        if name != _INSTRUCTIONS and figure.kind != "built"
    } - {None}
    by_cause[_INSTRUCTIONS] = [
        figure
        for figure in by_cause.get(_INSTRUCTIONS, [])
        if not figure.metric.startswith(counters.PIPE) or _growth(figure) not in grown
    ]


def _is_shown(cause: Cause) -> bool:
    """Whether it can explain some of the time, or nobody knows and it changed by 5%."""
    if cause.name == counters.OTHER:
        return False
    if any(abs(item.explains or 0.0) >= EXPLAINS for item in cause.figures):
        return True
    if cause.name == "instruction cache" and not any(map(_is_felt, cause.figures)):
        return False
    unknown = [item for item in cause.figures if item.explains is None]
    return any(item.change is None or abs(item.change) >= ranking.FLOOR for item in unknown)


def _is_felt(figure: ChangedFigure) -> bool:
    """Whether requests of instructions changed by as many as are a few per thousand cycles."""
    growth = _growth(figure)
    return growth is None or abs(growth) >= _REQUESTS


def _growth(figure: ChangedFigure) -> float | None:
    both = numbers(figure.before, figure.after)
    return both[1] - both[0] if both else None
