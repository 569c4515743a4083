"""Explanation of two arms' difference, as far as evidence goes: differences, limits, what would
decide the rest.

No cause is stated. A difference that goes with the time may have made it, one that goes against it
did not by itself; which evidence would tell is said with the command that supplies it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kernelexp.facts import counters, metrics
from kernelexp.facts.derived import READY
from kernelexp.judge.causes import CausedDifference
from kernelexp.judge.expectations import command
from kernelexp.judge.limits import bottleneck, bounds
from kernelexp.judge.limits.bounds import Use
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.changed import PART, ChangedFigure, is_code
from kernelexp.judge.limits.floors import Resource
from kernelexp.model.arm import Arm

# Beginnings of the names of figures, after ptx__ where they were counted on PTX, what they say
# something of, and the figures of a profile that would tell whether it takes time.
_DECIDING: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("memory_l1_wavefronts_shared", "l1tex__data_bank_conflicts", "sass__inst_executed_shared"),
        "shared-memory wavefronts",
        "l1tex__data_pipe_lsu_wavefronts, stalls short_scoreboard and mio_throttle",
    ),
    (
        ("l1tex__t_", "memory_l2_", "memory_l1_tag", "sass__inst_executed_global", "l1tex__m_"),
        "traffic to global memory",
        "lts__throughput, gpu__dram_throughput, stall long_scoreboard",
    ),
    (
        ("inst_executed_barrier", "inst_executed_mbarrier", "smsp__inst_executed_op_bar"),
        "waiting at barriers",
        "stalls barrier, long_scoreboard and sleeping, by source line",
    ),
    (
        ("launch__registers", "ctas_per_sm", "warps_per_sm", "launch__shared_mem", "launch__block"),
        "warps in flight",
        "sm__warps_active, smsp__warps_eligible",
    ),
    (
        ("smsp__sass_inst_executed_op_tmem", "sass_instructions_tmem"),
        "tensor-memory reads",
        "sm__mem_tensor_cycles_active, stall long_scoreboard",
    ),
    (
        ("spill_", "stack_bytes"),
        "spills",
        "derived__local_spilling_requests_pct",
    ),
    (
        ("inst_executed", "sass_instructions", "smsp__inst_executed"),
        "instructions to issue",
        "sm__inst_issued, stalls not_selected and math_pipe_throttle",
    ),
)


_STATED: dict[str, str] = {
    "device memory": " (by the bytes that must move)",
    "tensor cores": " (by the FLOPs that are useful)",
}
"""What the work is by where nobody counted it: problem.py states it, the same for both arms."""
_WORTH = 1.0
"""Percent of the time from which what a difference explains is asked for."""
_RIVAL = 1.5
_PARTS = ("L1", "L1 data pipe", "shared memory", "L1 tag stage")
"""Of each other: that they are as busy says nothing more."""
_MORE = 0.01
"""Share of the work from which a candidate is said to have more or less of it."""
_MUCH = 0.1
"""Change of the nearest limit's work from which a time that went the other way is mentioned."""
_FELL = 2.0
"""Points by which a limit is used less from which it is not what made a candidate slower."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question that the evidence leaves open, and what would answer it."""

    question: str
    evidence: str
    """Which figures would decide."""
    command: str


def slowdown(before: Arm, after: Arm) -> float | None:
    """Relative change of time: measured, else published; None where neither was."""
    if after.measured and after.measured.effect:
        return after.measured.effect.ratio - 1
    was, now = metrics.read("published_time_ms", before), metrics.read("published_time_ms", after)
    if isinstance(was, int | float) and isinstance(now, int | float) and was:
        return now / was - 1
    was, now = metrics.read("published_tflops", before), metrics.read("published_tflops", after)
    if isinstance(was, int | float) and isinstance(now, int | float) and now:
        return was / now - 1
    return None


def moved(
    before: Sequence[Use],
    after: Sequence[Use],
    allowed: tuple[float, float] = (1.0, 1.0),
    alone: str = "",
) -> str:
    """Says which limit each side is nearest to; `allowed` is the share of any limit that the grid
    of each can use, `alone` what the profile of one arm is nearer to."""
    one, other = bounds.nearest(tuple(before)), bounds.nearest(tuple(after))
    if one is None or other is None:
        return "Which limit is nearest is not known."
    was, now = one.percent or 0.0, other.percent or 0.0
    least = "at least " * (one.kind not in ("profiled", "emulated"))
    least = "about " if one.rough or other.rough else least
    if alone:
        first = f"{bottleneck.spell(one)} ({least}{was:.1f}% of the peak"
        if one.resource == other.resource:
            return f"Of what is known of both, they are nearest to {first}, then {now:.1f}%)."
        return (
            f"Of what is known of both, the baseline is nearest to {first}), the candidate to "
            f"{bottleneck.spell(other)} ({now:.1f}%)."
        )
    if max(was / allowed[0], now / allowed[1]) < bounds.NEAR:
        if not (bottleneck.is_counted(before) and bottleneck.is_counted(after)):
            return "Which limit is nearest is not known: an arm's instructions were not counted."
        if one.resource == other.resource:
            words = f"they use is {bottleneck.spell(one)}, {was:.1f}% and {now:.1f}% of the peak"
        else:
            words = f"the baseline uses is {was:.1f}% of {bottleneck.spell(one)}, the candidate "
            words += f"{now:.1f}% of {bottleneck.spell(other)}"
        return f"Neither arm is near a limit: the most that {words}."
    if one.resource == other.resource:
        return (
            f"Both arms are {_bound(min(was, now))} {bottleneck.spell(one)}: {least}{was:.1f}% of "
            f"the peak, then {now:.1f}%{_of_allowed(now, allowed[1])}{_rival(before, one)}."
        )
    if now < bounds.percent_of(before, other.resource):
        return (
            f"The baseline is {_bound(was)} {bottleneck.spell(one)} ({was:.1f}% of the peak); the "
            f"candidate uses it for {bounds.percent_of(after, one.resource):.1f}%, and no unit for "
            f"more than {now:.1f}% ({bottleneck.spell(other)})."
        )
    return (
        f"The limit moved: the baseline is {_bound(was)} {bottleneck.spell(one)} ({was:.1f}% of "
        f"the peak), the candidate is {_bound(now)} {bottleneck.spell(other)} ({now:.1f}%)."
    )


def _rival(known: Sequence[Use], near: Use) -> str:
    """Names another limit that the baseline is as near to, within what tells two times apart."""
    others = [use for use in known if use.resource != near.resource and use.resource not in _PARTS]
    other = bounds.nearest(others)
    if other is None or (near.percent or 0.0) - (other.percent or 0.0) > _RIVAL:
        return ""
    return f" (the baseline's {other.resource}: {other.percent:.1f}%)"


def _of_allowed(percent: float, allowed: float) -> str:
    return f", {percent / allowed:.0f}% of what the grid allows" if allowed < 1.0 else ""


def _bound(percent: float) -> str:
    return "bound by" if percent >= bottleneck.BOUND else "nearest to"


def work(
    before: Sequence[Use],
    after: Sequence[Use],
    slower: float | None,
    waits: Sequence[ChangedFigure],
    known: Resource | None = None,
) -> str:
    """Says how the work for the limit that both arms are nearest to has changed, as use times time;
    where it has not and the candidate is slower, the candidate waits. Empty where nothing can be
    said, or where the limit is `known`, which was covered before."""
    one, other = bounds.nearest(tuple(before)), bounds.nearest(tuple(after))
    if one is None or other is None or one.resource != other.resource or not slower:
        return ""
    if one.resource == known:
        return ""
    was, now = one.percent or 0.0, other.percent or 0.0
    if max(was, now) < bounds.NEAR or not was:
        return ""
    if any(not bounds.is_of_time(use) or bounds.is_of_parts(use) for use in (one, other)):
        return ""
    more = now * (1 + slower) / was - 1
    if abs(more) >= _MORE:
        verb = "more" if more > 0 else "less"
        what = bottleneck.spell(other)
        return f"The candidate has {100 * abs(more):.1f}% {verb} work for {what} (use x time)."
    if slower < 0 or was - now < _FELL:
        return ""
    longer = [wait for wait in waits if (wait.points or 0.0) > 0 and wait.label not in READY]
    where = f", most for {longer[0].label} ({longer[0].points:+.1f} points)" if longer else ""
    where = f": its warps wait longer{where}" if other.kind == "profiled" else ""
    by = _STATED.get(other.resource, "") if other.kind == "measured" else ""
    return (
        f"The candidate gives {bottleneck.spell(other)} no more work{by} and leaves "
        f"{'them' if other.resource == 'tensor cores' else 'it'} idle for "
        f"longer{where}."
    )


def relieved(
    before: Sequence[Use], after: Sequence[Use], slower: float | None, allowed: float = 1.0
) -> str:
    """Says that the unit which the baseline is nearest to has much less work and the candidate is
    slower all the same, or much more and it is faster: the one thing that the experiment shows."""
    near = bounds.nearest(tuple(before))
    now = next((use for use in after if near and use.resource == near.resource), None)
    if near is None or now is None or not slower or not near.percent or now.percent is None:
        return ""
    if near.percent / allowed < bounds.NEAR:
        return ""
    counted = all(use.kind in ("emulated", "profiled") for use in (near, now))
    if not counted or not all(bounds.is_of_time(use) for use in (near, now)):
        return ""
    more = now.percent * (1 + slower) / near.percent - 1
    if bounds.is_of_parts(near) or more * slower > 0 or abs(more) < _MUCH:
        return ""
    verb, so = ("less", "slower") if more < 0 else ("more", "faster")
    return (
        f"The candidate has {100 * abs(more):.1f}% {verb} work for {bottleneck.spell(near)} and is "
        f"{so} all the same."
    )


def _open(differ: CausedDifference, slower: float | None) -> Iterator[ChangedFigure]:
    """The first difference that may explain the time: of a time that is known, a part of it."""
    leaders = [cause.leader for cause in differ.causes if not cause.noise]
    for figure in leaders:
        if is_code(figure.metric):  # more SASS in the code is not more that is executed
            continue
        is_part = abs(figure.explains or 0.0) >= max(_WORTH, 100 * PART * abs(slower or 0.0))
        if is_part and (slower is None or figure.way == "with the time"):
            yield figure
            return


def _is_about(metric: str, beginnings: tuple[str, ...]) -> bool:
    return metric.removeprefix(counters.PTX).startswith(beginnings)


def questions(
    before: Case, after: Case, experiment: str, differ: CausedDifference
) -> Iterator[Question]:
    """Yields open questions; none where both arms are measured and profiled, or one can't run."""
    arms = (before.arm, after.arm)
    card = after.chip.name if after.chip else ""

    def ask(kind: metrics.Kind, question: str, evidence: str) -> Question:
        wanted = command(kind, after.arm, experiment, card)
        return Question(question=question, evidence=evidence, command=wanted)

    if any(arm.refused for arm in arms):
        return
    if not all(arm.measured for arm in arms):
        question = "how much time the candidate takes against the baseline"
        yield ask("measured", question, "interleaved timing")
    if not all(arm.emulated for arm in arms):
        question = "whether both arms are right, and what they execute"
        yield ask("emulated", question, "emulated counters")
    if all(arm.profiled for arm in arms):
        return
    for figure in _open(differ, slowdown(*arms)):
        for beginnings, subject, figures in _DECIDING:
            if _is_about(figure.metric, beginnings):
                question = f"how much of the time goes to {subject}"
                yield ask("profiled", question, f"profiled {figures}")
                break
    if not after.arm.profiled:
        question = "which limit either arm is nearest to, and where its warps wait"
        yield ask("profiled", question, "profiled throughputs, stalls by source line")
