"""Worth of a figure's change between two variants, by the rate of the unit that works.

A count is ranked by the time that its part of the chip needs for the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from kernelexp.facts import counters
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.facts.derived import stalls
from kernelexp.judge.limits import bottleneck, bounds, floors, opportunity
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.changed import (
    EXECUTED,
    ON_AN_SM,
    PIPE,
    SMS,
    STATIC,
    WAITS,
    WARPS,
    Cause,
    ChangedFigure,
    Way,
    is_code,
    is_kept,
    kinds,
    label,
    of_all,
    own_units,
    units,
)
from kernelexp.judge.limits.floors import tensor_type
from kernelexp.judge.limits.opportunity import excess_of_wavefronts
from kernelexp.judge.ranking import Difference, between, numbers

POINTS = 0.1
"""Points of the warps' time below which a stall has not changed."""
_POLLS = "how often a wait looks again depends on timing too: it explains nothing"
_ARBITRATION = "noise: arbitration, as no wavefront is beyond what the addresses need"
_AS_MANY = "no effect of its own: as many {} on an SM"
_AS_MANY_EXECUTED = "as many are executed"
_BY_GRID = "no effect of its own: the grid gives an SM as many CTAs and warps"
_BRANCHES_PER_POLL = 2
# Cycles of an SM that one takes; of a pipe by its architecture.
_CYCLES: tuple[tuple[str, float], ...] = (
    (r"memory_l1_wavefronts_shared|derived__memory_l1_wavefronts_shared_excessive", 1.0),
    (r"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_\w+", 1.0),
    (r"l1tex__data_pipe_(lsu|tc)_wavefronts(_mem_shared(_op_\w+)?)?", 1.0),
    (r"memory_l1_tag_requests_global", 1.0),
    (r"sass__inst_executed_(shared|global|local)_(loads|stores)", 1.0),
    (r"l1tex__t_sectors_pipe_lsu_mem_global_op_(ld|st)|memory_l2_theoretical_sectors_global", 0.25),
    (r"l1tex__m_\w+_sectors_mem_global_op_tma_ld", 0.25),
    (r"l1tex__m_\w+_sectors_mem_global_op_tma_st", 1.0),  # ncu: 44,556,288 in 29.5% of the cycles
    (r"(smsp__|sm__)?inst_executed", 0.25),
)  # fmt: skip
_COSTS = tuple((re.compile(pattern), cycles) for pattern, cycles in _CYCLES)
_BYTES = re.compile(r"dram__bytes(_read|_write)?")
SLIGHT = 0.1
"""Of the change of time, the share below which what explains no more goes last."""
_IN_PROPORTION = 0.02
_TENSOR = f"{counters.PIPE}tensor"
_AS_MANY_FLOPS = 0.002
_FEW = 1e-4
"""Of the instructions, the share below which a count without a rate is no difference."""
_ABOUT = 0.1
"""Relative change below which counts that are about so large are not said to differ."""
_AS_NCU = {"sass__inst_executed_branch": "smsp__inst_executed_op_branch"}
"""What a profile calls a count of another name."""
# Figures by which another layout, or other accesses, are told from arbitration.
_OF_ADDRESSES = ("memory_l1_wavefronts_shared", "derived__", "sass__inst_executed_shared")
_CONFLICTS, _WAVEFRONTS = "l1tex__data_bank_conflicts", "memory_l1_wavefronts_shared"
_TMA_READS = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld"
_MULTICAST = f"{_TMA_READS}_dest_multicast"
_OF_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
_OF_SECTORS = (*floors.SECTORS, "memory_l2_theoretical_sectors_global")


class ChangedPair:
    """Two cases, and how a change of a figure is judged."""

    def __init__(self, before: Case, after: Case, slower: float | None) -> None:
        self._before, self._after, self._slower = before, after, slower
        self._cases = (before, after)
        self._is_full = all(case.counters and not case.ratios_of for case in self._cases)
        both = before.unsolved & after.unsolved
        self._rough = {name for name in both if before.least.get(name) and after.least.get(name)}
        """Of neither arm solved: what a tile adds is compared."""
        self.alike = 0
        """Of counts that are about so large, those that differ by less than is told apart."""
        self.uneven = (before.unsolved | after.unsolved) - self._rough
        """A count that was solved says nothing beside one that was not."""
        # The least of an untimed launch is by all SMs too.
        self.busy = bottleneck.allowed(before) if before.time_s else 1.0
        self._time = before.time_s or max(
            (floor.seconds for floor in floors.floors(before)), default=0.0
        )

    def differences(self) -> Iterator[Difference]:
        """Emulated counts are those of the full problem where these are known."""
        one, other = self._before.arm, self._after.arm
        known = {**self._before.counters, **self._after.counters}
        # What is equal at the small size may differ in the full problem: loads of a table.
        every = between(one, other, *kinds(one, other), same=True)
        profiled = {
            difference.metric.name.removesuffix(".sum")
            for difference in every
            if difference.metric.kind == "profiled"
        }
        for difference in every:
            name = difference.metric.name
            plain = name.removeprefix(counters.PTX)
            if difference.metric.kind == "emulated" and _AS_NCU.get(plain, plain) in profiled:
                continue  # ncu's count is of the launch itself
            if difference.metric.kind == "emulated" and self._is_full and name in known:
                if name in self.uneven:
                    continue
                was, now = (self._count(case, name) for case in self._cases)
                is_like = name in self._rough and 0 < abs(now - was) < _ABOUT * was
                self.alike += is_like
                if was != now and not is_like:
                    yield Difference(metric=difference.metric, before=was, after=now)
            elif self._is_full and name.startswith(STATIC) and name != f"{STATIC}tmem":
                continue  # what is executed is known
            elif difference.before != difference.after and is_kept(difference):
                yield difference

    def _count(self, case: Case, name: str) -> int:
        return case.least[name] if name in self._rough else case.counters.get(name, 0)

    def _spelled(self, case: Case, name: str) -> int:
        """A count that has no name of ncu's: of SASS, else of PTX."""
        sass = f"sass__{name}"
        return self._count(case, sass if sass in case.counters else f"{counters.PTX}{name}")

    def changed(self, difference: Difference) -> ChangedFigure:
        explains = self._explains(difference)
        other_shape = difference.metric.name.startswith(_TENSOR) and self._has_as_many_flops
        return ChangedFigure(
            metric=difference.metric.name,
            label="MMAs, for as many FLOPs" if other_shape else self._label(difference),
            kind=difference.metric.kind,
            before=difference.before,
            after=difference.after,
            change=difference.change,
            explains=explains,
            way="" if other_shape else self._way(difference, explains),
        )

    def _label(self, difference: Difference) -> str:
        about = ", about" if difference.metric.name in self._rough else ""
        is_tensor = difference.metric.name.startswith(_TENSOR)
        words = self._of_tensor_pipe() if is_tensor else label(difference)
        return f"{words}{about}"

    def _of_tensor_pipe(self) -> str:
        """Names what the tensor pipe executes: packed halves too, which are no MMAs."""
        opcodes = {
            name
            for case in self._cases
            for name in (case.arm.build.opcodes if case.arm.build else ())
        }
        is_packed = any(name.startswith("HFMA2") for name in opcodes)
        if any(map(tensor_type, self._cases)):
            return "MMAs and HFMA2.MMA" if is_packed else "MMAs"
        return "HFMA2.MMA" if is_packed else "tensor pipe, instructions"

    @property
    def _reads_as_much_tmem(self) -> bool:
        executed = [
            [count for key, count in case.counters.items() if "op_tmem" in key]
            for case in self._cases
        ]
        return bool(executed[0]) and executed[0] == executed[1]

    @property
    def _has_as_many_flops(self) -> bool:
        """Whether MMAs of another shape do the same work."""
        kind = floors.tensor_type(self._before)
        was, now = (floors.mma_flops(case, kind) for case in self._cases)
        return bool(was and now) and abs(now / was - 1) < _AS_MANY_FLOPS

    def is_few(self, figure: ChangedFigure) -> bool:
        """Whether it is so few instructions, without a rate, that nothing depends on them."""
        if figure.kind == "built" or figure.explains is not None or not self._is_full:
            return False
        both = numbers(figure.before, figure.after)
        if both is None or "inst_executed" not in figure.metric:
            return False
        return max(both) < _FEW * self._after.counter(EXECUTED)

    def mmas(self) -> ChangedFigure | None:
        """The FLOPs of the MMAs that are executed, with those beyond the problem's edges."""
        chip, kind = self._before.chip, floors.tensor_type(self._before)
        if not (self._is_full and chip and kind in chip.tensor and self._time):
            return None
        was, now = (floors.mma_flops(case, kind) for case in self._cases)
        if not (was and now) or was == now:
            return None
        peak = chip.flops_per_clock(kind) * chip.sms.value * self._before.clock()[0]
        explains = 100 * (now - was) / self.busy / peak / self._time
        label = "GFLOP of executed MMAs"
        figure = self._reckoned("executed_mma_gflop", label, was / 1e9, now / 1e9, now > was)
        return msgspec.structs.replace(figure, kind="emulated", explains=explains)

    def sms(self) -> ChangedFigure | None:
        """Returns the number of SMs that have a CTA, where the grids differ in it."""
        one, other = map(bottleneck.grid, self._cases)
        if one is None or other is None:
            return None
        was, now = (min(share.ctas, share.sms) for share in (one, other))
        if was == now:
            return None
        return self._reckoned(SMS, f"SMs with work, of {one.sms}", was, now, now < was)

    def warps(self) -> ChangedFigure | None:
        """Returns the warps that an SM has at once, as the grid gives and the resources allow."""
        was, now = map(_warps, self._cases)
        if not (was and now) or was == now or self.sms():
            return None  # the same warps on more SMs are fewer on each
        if self.is_specialised:
            return None  # those that load among them: another CTA has some of its own
        return self._reckoned(WARPS, "warps on an SM, at most", was, now, now < was)

    @property
    def is_specialised(self) -> bool:
        return all(case.is_specialised for case in self._cases)

    def reads_of_l2(self) -> ChangedFigure | None:
        """Returns what TMA reads from L2, a multicast once for all CTAs that receive it."""
        was, now = map(_reads_of_l2, self._cases)
        is_multicast = any(case.counter(_MULTICAST) for case in self._cases)
        if not (self._is_full and is_multicast) or was == now:
            return None
        label = "sectors that TMA asks L2 for"
        figure = self._reckoned("tma_reads_of_l2", label, was, now, now > was)
        return msgspec.structs.replace(figure, kind="emulated")

    def _reckoned(
        self, metric: str, label: str, was: float, now: float, is_worse: bool
    ) -> ChangedFigure:
        """A figure that no evidence has: of what was built, unless another kind is put in."""
        return ChangedFigure(
            metric=metric,
            label=label,
            kind="built",
            before=was,
            after=now,
            change=now / was - 1 if was else None,
            way=self._goes(is_worse),
        )

    def is_of_the_limit(self, cause: str) -> bool:
        """Whether it is work for what the baseline is nearest to."""
        near = bounds.nearest(bounds.uses(self._before)) if cause == "tensor cores" else None
        return near is not None and near.resource == "tensor cores"

    def is_slight(self, figure: ChangedFigure) -> bool:
        """Whether it explains something, and next to nothing of the change of time."""
        if figure.explains is None or not self._slower:
            return False
        return abs(figure.explains) < SLIGHT * 100 * abs(self._slower)

    @property
    def _waits_are_code(self) -> bool:
        """Whether waits changed in proportion to the operations on mbarriers, which no timing
        changes: other tiles, and not other polls."""
        names = ("inst_executed_mbarrier", "inst_executed_mbarrier_wait")
        was, now = ([self._spelled(case, name) for name in names] for case in self._cases)
        if not all((*was, *now)) or was == now:
            return False
        return abs(now[1] / was[1] / (now[0] / was[0]) - 1) < _IN_PROPORTION

    @property
    def polled(self) -> int:
        """Instructions that more polls of mbarriers execute, with the branches that they bring:
        waits beyond those that go with the operations on mbarriers, which no timing changes."""
        if self._waits_are_code:
            return 0
        names = ("inst_executed_mbarrier", "inst_executed_mbarrier_wait", "inst_executed_branch")
        was, now = ([self._spelled(case, name) for name in names] for case in self._cases)
        times = now[0] / was[0] if was[0] and now[0] else 1.0
        waits = now[1] - was[1] * times
        if waits * (now[1] - was[1]) < 0:
            return 0  # fewer than go with the operations: nothing of the growth is polls
        brought = (now[2] - was[2]) * self.branches_are_polls
        most = _BRANCHES_PER_POLL * abs(waits)
        branches = max(-most, min(most, brought)) if brought * waits > 0 else 0.0
        return round(waits + branches)

    @property
    def branches_are_polls(self) -> bool:
        """Whether the branches that differ are no more than polls which differ bring along."""
        if self._waits_are_code:
            return False
        polls, branches = (
            abs(self._spelled(self._after, name) - self._spelled(self._before, name))
            for name in ("inst_executed_mbarrier_wait", "inst_executed_branch")
        )
        return branches <= _BRANCHES_PER_POLL * polls

    def waits(self) -> Iterator[ChangedFigure]:
        """Shares of the warps' time by reason, of which at least POINTS moved."""
        one, other = self._before.arm, self._after.arm
        if not (one.profiled and other.profiled):
            return
        shares = [stalls(arm) for arm in (one, other)]
        moved = {
            reason: shares[1].get(reason, 0.0) - shares[0].get(reason, 0.0)
            for reason in {**shares[0], **shares[1]}
        }
        for reason in sorted(moved, key=lambda item: -abs(moved[item])):
            if abs(moved[reason]) < POINTS:
                continue
            was, now = (share.get(reason, 0.0) for share in shares)
            yield ChangedFigure(
                metric=f"stall_{reason.replace(' ', '_')}_percent",
                label=reason,
                kind="profiled",
                before=was,
                after=now,
                change=(now - was) / was if was else None,
                points=moved[reason],
                way="",
            )

    def noise(self, cause: str, figures: Sequence[ChangedFigure]) -> str:
        waits = ("sass__inst_executed_mbarrier_wait", "ptx__inst_executed_mbarrier_wait")
        polls = any(case.counters.get(name) for case in self._cases for name in waits)
        if cause == WAITS and self._waits_are_code:
            return ""
        if cause == WAITS and (polls or any(case.is_specialised for case in self._cases)):
            return _POLLS
        if cause == "tensor memory" and self._reads_as_much_tmem:
            return _AS_MANY_EXECUTED
        if cause == "resources" and not any(item.metric in ON_AN_SM for item in figures):
            return _as_many(*self._cases)
        names = [item.metric.removeprefix(counters.PTX) for item in figures]
        if cause == "shared memory" and not any(name.startswith(_OF_ADDRESSES) for name in names):
            excess = [excess_of_wavefronts(case)[0] for case in self._cases]
            return "" if any(excess) else _ARBITRATION
        return ""

    def _explains(self, difference: Difference) -> float | None:
        kind, both = difference.metric.kind, numbers(difference.before, difference.after)
        if both is None or not self._time:
            return None
        if kind == "built" or (kind == "emulated" and not self._is_full):
            return None
        case = self._before
        name = difference.metric.name.removeprefix(counters.PTX).removesuffix(".sum")
        was, now = map(float, both)
        rough = self._rough | self.uneven
        if name in _OF_SECTORS and not rough.intersection(floors.SECTORS):
            # What TMA moves no longer, others may.
            every = [sum(map(item.counter, floors.SECTORS)) for item in self._cases]
            now = of_all(was, now, every[1] - every[0])
        if name.startswith(_OF_SHARED) and not self._rough & {name, _WAVEFRONTS}:
            every = [item.counter(_WAVEFRONTS) for item in self._cases]
            now = of_all(was, now, every[1] - every[0]) if any(every) else now
        if was == now:
            return None  # others moved more the other way: nothing of the time is its own
        if name.startswith(_CONFLICTS) and kind == "emulated":
            # Those that add no wavefronts cost nothing.
            more = self._after.counter(_WAVEFRONTS) - self._before.counter(_WAVEFRONTS)
            was = min(was, now + max(0, -more)) if now < was else was
            now = min(now, was + max(0, more)) if now > was else now
        if case.chip and _BYTES.fullmatch(name):
            return 100 * (now - was) / case.chip.dram.value / self._time
        if name == EXECUTED and kind == "emulated":
            now -= self.polled
        cycles = self._cycles(name)
        if cycles is None:
            return None
        return 100 * floors.shared_seconds(case, (now - was) * cycles / self.busy) / self._time

    def bounded(self, cause: Cause) -> Cause:
        """Bounds a cause's savings by what the next limit leaves of the time; without a time, its
        costs by what the longest need of a unit grows by."""
        figures = tuple(map(self._bounded, cause.figures))
        return msgspec.structs.replace(cause, figures=figures)

    def _bounded(self, figure: ChangedFigure) -> ChangedFigure:
        saved = -(figure.explains or 0.0)
        if saved < 0 and not self._before.time_s and self._time:
            own = own_units(figure.metric)
            needs = [item.seconds for item in floors.floors(self._after) if item.resource in own]
            longer = 100 * (max(needs, default=0.0) / self._time - 1)
            return msgspec.structs.replace(figure, explains=min(-saved, max(0.0, longer)))
        if saved <= 0:
            return figure
        most = opportunity.most(self._before, dict.fromkeys(units(figure.metric), saved))
        if not self._before.time_s and self._fall:
            most = min(most, self._fall)
        return msgspec.structs.replace(figure, explains=-min(saved, most))

    @property
    def _fall(self) -> float:
        """The percentage by which the longest need of a unit falls; 0 where it does not."""
        longest = max((floor.seconds for floor in floors.floors(self._after)), default=0.0)
        return max(0.0, 100 * (1 - longest / self._time)) if longest and self._time else 0.0

    def _cycles(self, name: str) -> float | None:
        if self._before.chip is None:
            return None
        if name.startswith("sass__inst_executed_shared") and self._before.counter(_WAVEFRONTS):
            return None  # their wavefronts are the work
        pipe = PIPE.fullmatch(name)
        arch = ARCHITECTURES.get(self._before.chip.arch)
        if pipe and arch:
            return 1 / arch.per_clock(pipe[1])
        return next((cycles for pattern, cycles in _COSTS if pattern.fullmatch(name)), None)

    def _way(self, difference: Difference, explains: float | None) -> Way:
        better, both = difference.metric.better, numbers(difference.before, difference.after)
        if both is None or is_code(difference.metric.name):
            return ""  # more code is not more that is executed
        if explains:
            return self._goes(explains > 0)
        if explains is not None:
            better = "less"
        if not better:
            return ""
        return self._goes((both[1] > both[0]) == (better == "less"))

    def _goes(self, is_worse: bool) -> Way:
        if not self._slower:
            return ""
        return "with the time" if is_worse == (self._slower > 0) else "against it"


def _as_many(before: Case, after: Case) -> str:
    """Says why resources have no effect of their own; empty where they may have one."""
    was, now = _warps(before), _warps(after)
    if not was or was != now:
        return ""
    same = _ctas(before) == _ctas(after)
    builds = before.arm.build, after.arm.build
    held = [build.occupancy.ctas_per_sm for build in builds if build]
    if same and held[1:] and held[0] != held[1]:
        return _BY_GRID
    return _AS_MANY.format("CTAs and warps" if same else "warps")


def _ctas(case: Case) -> int:
    """Returns the most CTAs that an SM has at once."""
    share = bottleneck.grid(case)
    if share:
        return min(share.per_sm, share.most)
    return case.arm.build.occupancy.ctas_per_sm if case.arm.build else 0


def _reads_of_l2(case: Case) -> int:
    """Sectors; CTAs of a cluster that receive the same ask for it once."""
    cluster = case.arm.build.resources.cluster if case.arm.build else 1
    multicast = case.counter(_MULTICAST)
    return case.counter(_TMA_READS) - multicast + multicast // max(1, cluster)


def _warps(case: Case) -> int:
    """Returns the warps that an SM has at once; 0 where that is not known."""
    build, share = case.arm.build, bottleneck.grid(case)
    if share:
        return share.warps_per_sm
    return build.occupancy.warps_per_sm if build else 0
