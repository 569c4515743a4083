"""Each kernel's best variant, and its distance from peers and limits."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from kernelexp.dossier.standing import Standing
from kernelexp.facts import chips
from kernelexp.judge.limits import bounds
from kernelexp.judge.limits.case import Case
from kernelexp.judge.verdict import WRONG
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import Variant, spell_point
from kernelexp.model.record import Profile, Record, is_usual
from kernelexp.report.charts import changes as change_charts
from kernelexp.report.charts.chart import Plot
from kernelexp.report.document import figures
from kernelexp.report.document.document import Cell
from kernelexp.report.log import logbook, pending
from kernelexp.report.log.pending import PendingArm, RecordsOf, Waits
from kernelexp.report.runs import sizes
from kernelexp.report.runs.page import differing_axes
from kernelexp.report.site import answer
from kernelexp.report.variants.emulation import is_right
from kernelexp.services import auditing, kernel_logs
from kernelexp.services.kernel_logs import KernelLog

_KNOWN = 4
"""Candidates without a time that a kernel's card speaks of."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a list: an experiment and what there is to say of it."""

    id: str
    text: str
    states: tuple[Cell, ...] = ()
    date: str = ""


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel on one architecture: its best variant, and how far that is from its limits."""

    kernel: str
    """With its architecture."""
    title: str
    best: str
    """The experiment, step or sweep whose variant that is; empty where nothing is timed."""
    is_sweep: bool = False
    """Whether `best` is the run of a sweep."""
    point: str = ""
    """The values that tell the variant from the others of its record; empty for a step."""
    time: str
    whose: str
    """How the figure was come by."""
    by_size: tuple[tuple[str, str, str], ...] = ()
    """Size, time and variant of the best at each, where the latest run timed several."""
    peer: str
    limit: str
    spark: Spark | None
    evidence: str
    """Of how many candidates there is what, as a sentence."""
    known: tuple[Note, ...] = ()
    """Where nothing is timed, what is known of candidates all the same."""
    contested: tuple[str, ...] = ()
    """Other verdicts on the same variant, by the experiment that has them."""
    next_step: str = ""
    """The command that the first of them calls for; empty where something is timed."""


ProfileOf: TypeAlias = Callable[[Variant], Profile | None]
"""The latest profile of a variant, if there is one."""


class _Best(msgspec.Struct, frozen=True, kw_only=True):
    """The variant that counts as a kernel's best, of the experiment `id`."""

    id: str
    arm: Arm
    record: Record | None
    variant: Variant | None = None
    """None for a baseline."""
    whose: str


def outlook(
    log: KernelLog,
    profile_of: ProfileOf,
    records_of: RecordsOf,
    pending_of: Mapping[str, Sequence[PendingArm]],
) -> Outlook:
    """Of one kernel."""
    chosen = _chosen(log)
    several = None if chosen else _of_sizes(log)
    best = several or chosen or _fastest(log)
    profile = profile_of(best.variant) if best and best.variant else None
    single = None if several else best
    return Outlook(
        kernel=f"{log.kernel}@{log.arch}",
        title=log.title,
        best=best.id if best else "",
        is_sweep=best is not None and best.id in {record.run for record in log.sweeps},
        point=_point(single) if single and single.id not in log.history else "",
        time=_time(single.arm) if single else "",
        whose=best.whose if best else "",
        by_size=tuple(sizes.best_of(several.record)) if several and several.record else (),
        peer=_peer(single, profile) if single else "",
        limit=_limit(log, single, profile) if single else "",
        spark=spark(next(change_charts.of_history((log,)), None)),
        evidence=_evidence(log),
        contested=tuple(_contested(log, single, records_of)) if single else (),
        known=() if best else tuple(itertools.islice(_known(log), _KNOWN)),
        next_step="" if best else _next_step(log, pending_of),
    )


def _contested(log: KernelLog, best: _Best, records_of: RecordsOf) -> Iterator[str]:
    """Yields where cards disagree about what the best has: a sentence for each experiment's
    candidate."""
    has = best.arm.axes
    for name, entry in log.experiments.items():
        mine: dict[str, str] = {}
        for one, point in entry.points:
            if point and all(has.get(axis) == value for axis, value in point.items()):
                others = {k: v for k, v in one.variant.axes.items() if has.get(k) != v}
                mine[spell_point(point)] = f", with {spell_point(others)}" if others else ""
        cards = kernel_logs.by_card(entry, records_of(name)) if mine else {}
        for spelled, words in cards.items():
            if spelled in mine:
                yield f"{name}{mine[spelled]}: {spelled}: {words}."


def _known(log: KernelLog) -> Iterator[Note]:
    for name, entry in log.standings.items():
        for standing, point in entry.points:
            words = " ".join(answer.untimed(standing)) if standing.current else ""
            if words:
                states = (logbook.verdict(standing),) if standing.is_wrong else ()
                yield Note(id=name, text=f"{spell_point(point)}: {words}", states=states)


def _next_step(log: KernelLog, pending_of: Mapping[str, Sequence[PendingArm]]) -> str:
    """The sentence of what comes first: a wrong baseline, last what only puts a placebo away. What
    is to be timed is timed at once: counts of a small size don't say which of them is the best."""
    first: dict[str, Waits] = {}
    for name in log.standings:
        if own := pending_of.get(name):
            first[name] = min((one.waits for one in own), key=list(Waits).index)
    waiting = [name for name, waits in first.items() if waits is Waits.TIME]
    usual = [name for name, waits in first.items() if waits is not Waits.REJECTION]
    wrong = [name for name, waits in first.items() if waits is Waits.BASELINE]
    name = next(iter((*wrong, *usual, *first)), "")
    if name in waiting:
        return pending.timing(log.arch, waiting)
    baselines = pending.found_wrong(log.standings)
    own = pending_of.get(name)
    every = (
        pending.sentences(name, log.standings[name], own, baselines.get(name, "")) if own else ()
    )
    return next(iter(every), "")


def _point(best: _Best) -> str:
    differing = differing_axes(best.record) if best.record else ()
    own = {axis: value for axis, value in best.arm.axes.items() if axis in differing}
    return spell_point(own) if own else ""


def _chosen(log: KernelLog) -> _Best | None:
    """Returns what was accepted, else the fastest step of the history."""
    standing = log.best_standing
    arm = standing.current if standing else None
    if standing is None or arm is None or log.best is None:
        return None
    device = f"measured, {arm.measured.device}" if arm.measured else ""
    how = device or ("published" if arm.published else "built")
    accepted = ", accepted" if log.accepted else ""
    whose = f"{how}{accepted}{figures.standing_conditions(standing.record)}"
    return _Best(
        id=log.best, arm=arm, record=standing.record, variant=standing.variant, whose=whose
    )


def _fastest(log: KernelLog) -> _Best | None:
    """The variant with the lowest time of those that did the same work: the work that most of
    the kernel's variants did. Else the one with the highest rate that was published."""
    alike: dict[tuple[object, ...], list[tuple[float, _Best]]] = defaultdict(list)
    for best in _standing(log):
        measured, published = best.arm.measured, best.arm.published
        if measured and measured.time_us:
            work: tuple[object, ...] = ("the lowest time measured", measured.device, measured.size)
            alike[*work, measured.flops].append((measured.time_us, best))
        elif published and published.time_ms:
            alike["the lowest time published", ""].append((published.time_ms, best))
        elif published and published.tflops:
            alike["the highest rate published", ""].append((-published.tflops, best))
    if not alike:
        return None
    usual = max(alike, key=lambda item: (len(item) > 2, len(alike[item])))
    _, best = min(alike[usual], key=lambda item: item[0])
    size = best.arm.measured.size if best.arm.measured else ""
    at = "" if is_usual(size) else f"at size {size}"
    whose = ", ".join(filter(None, (*map(str, usual[:2]), at, best.whose)))
    return msgspec.structs.replace(best, whose=whose)


def _of_sizes(log: KernelLog) -> _Best | None:
    """The latest run of several sizes, which has a best at each."""
    found = [best for best in _standing(log) if best.record and best.record.sizes]
    latest = max(found, key=lambda best: best.record.run if best.record else "", default=None)
    if latest is None or latest.record is None:
        return None
    return msgspec.structs.replace(latest, whose=f"measured, {latest.record.device}")


def _standing(log: KernelLog) -> Iterator[_Best]:
    """The candidates that are right as they are now, and what they were compared with."""
    for name, entry in log.experiments.items():
        for candidate in entry.candidates:
            record, arm = candidate.record, candidate.arm
            if record is None or arm is None or candidate.changed:
                continue
            if not candidate.is_wrong:
                yield _Best(id=name, arm=arm, record=record, variant=candidate.variant, whose="")
            yield _Best(id=name, arm=record.baseline, record=record, whose="a baseline")
    for record in log.sweeps:
        if log.changes(record):
            continue
        verdicts = (None, *(candidate.verdict for candidate in record.candidates))
        for arm, verdict in zip(record.arms, verdicts, strict=True):
            if verdict is None or verdict.status not in WRONG:
                yield _Best(id=record.run, arm=arm, record=record, whose="a sweep")


def _time(arm: Arm) -> str:
    rate = figures.tflops_of(arm)
    time = figures.timed(arm) if figures.time_of(arm) != figures.NONE else ""
    return " / ".join(filter(None, (time, f"{rate} TFLOPS" if rate != figures.NONE else "")))


def _peer(best: _Best, profile: Profile | None) -> str:
    """Says how far the fastest peer is: one timed in the same run, else published with it."""
    arm = best.arm
    if arm.measured and arm.measured.time_us:
        time = arm.measured.time_us / 1000
        peers = [(peer.time_ms, peer.name) for peer in auditing.timed_peers(best.record)]
    else:
        time = (arm.published.time_ms or 0.0) if arm.published else 0.0
        theirs = profile.arm.published if profile else None
        known = theirs.peers if theirs else ()
        peers = [(peer.time_ms, f"{peer.name}, published") for peer in known]
    if not time or not peers:
        return ""
    fastest, name = min(peers)
    return f"{time / fastest:.2f}x the time of {name}"


def _limit(log: KernelLog, best: _Best, profile: Profile | None) -> str:
    """The share of the limit of the chip that it is nearest to."""
    measured, published = best.arm.measured, best.arm.published
    flops = measured.flops if measured else 0
    if published and published.tflops and published.time_ms:
        flops = int(published.tflops * published.time_ms * 1e9)
    arm = msgspec.structs.replace(best.arm, profiled=profile.arm.profiled if profile else None)
    device = measured.device if measured else log.device.partition(",")[0]
    size = best.record.bytes if best.record and measured and measured.size == "full" else 0
    case = Case(label="", arm=arm, chip=chips.find(device), flops=flops, bytes=size)
    use = bounds.nearest(bounds.uses(case))
    if use is None or use.percent is None:
        return ""
    result = profile is not None and profile.provenance == "published"
    kind = "published profile" if result and use.kind == "profiled" else use.kind
    return f"{use.percent:.0f}% of the limit of {use.resource} ({kind})"


def _evidence(log: KernelLog) -> str:
    """Counts the candidates that are measured, only emulated, only built."""
    every = (one for entry in log.standings.values() for one in entry.candidates)
    return ", ".join(f"{count} {word}" for word, count in Counter(map(evidence_of, every)).items())


def evidence_of(standing: Standing) -> str:
    """The strongest evidence for a candidate as it is now, in a word or two."""
    arm = standing.arm
    if arm is None:
        return "not run"
    if standing.changed:
        return logbook.CHANGED
    if arm.measured:
        return "measured"
    if arm.published:
        return "published"
    if pending.is_placebo(standing) and is_right(arm):
        return "placebo"
    if standing.is_wrong and standing.record and standing.record.device:
        return "wrong on a GPU"
    if arm.emulated or arm.emulated_sass:
        return "emulated (right)" if is_right(arm) else "emulated (wrong)"
    return "built" if arm.is_built else "not built"


WIDTH, HEIGHT = 120, 28
_ROOM = 4


class Spark(msgspec.Struct, frozen=True, kw_only=True):
    """The line's path inside WIDTH x HEIGHT, its last point, and the same in words."""

    path: str
    last: tuple[float, float]
    words: str


def spark(plot: Plot | None) -> Spark | None:
    """Draws the first series; None where one mark or none makes no line."""
    marks = plot.series[0].marks if plot else ()
    if plot is None or len(marks) < 2:
        return None
    low, high = min(mark.y for mark in marks), max(mark.y for mark in marks)
    step, slope = (WIDTH - 2 * _ROOM) / (len(marks) - 1), (HEIGHT - 2 * _ROOM) / (high - low or 1)
    places = [
        (round(_ROOM + number * step, 1), round(HEIGHT - _ROOM - (mark.y - low) * slope, 1))
        for number, mark in enumerate(marks)
    ]
    ends = [float(marks[at].y) for at in (0, -1)]
    first, last = map(figures.time_ms if plot.y.unit == "ms" else figures.value, ends)
    return Spark(
        path="M" + "L".join(f"{x} {y}" for x, y in places),
        last=places[-1],
        words=f"from {first} to {last} {plot.y.unit} in {len(marks)} steps",
    )
