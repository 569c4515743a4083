"""Evidence to verdict: pure functions, each a rule."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set

import msgspec

from kernelexp.facts.chips import Arch
from kernelexp.judge.outputs import describe
from kernelexp.judge.statistics.stats import dropped_pairs, ratios
from kernelexp.model import errors
from kernelexp.model.arm import (
    Arm,
    BuildEvidence,
    EmulatedEvidence,
    EmulatedFinding,
    Status,
    Verdict,
)
from kernelexp.model.measurement import Effect, Measurement
from kernelexp.model.problem import Budget
from warpsim.launch import Launch, main_launch


def impossible(arch: Arch, reasons: Sequence[str], budget: Budget | None) -> Verdict | None:
    """IMPOSSIBLE where the kernel's rules or the architecture forbid a variant, else None."""
    limits = list(exceeded(arch, budget)) if budget else []
    if not reasons and not limits:
        return None
    code = "hardware_limit" if limits else "constraint"
    others = [reason for reason in reasons if not _is_said(reason, limits)]
    return Verdict(
        status=Status.IMPOSSIBLE, reason=code, sentence=" ".join([*limits, *map(_end, others)])
    )


def _is_said(reason: str, limits: Sequence[str]) -> bool:
    """Whether a static_assert names the same limit, as in "an SM has 512 columns"."""
    figures = re.findall(r"\d[\d,]+", reason)
    return any(f"{figure} is the most" in limit for figure in figures for limit in limits)


def exceeded(arch: Arch, budget: Budget) -> Iterator[str]:
    """A sentence for each limit of the architecture that a CTA's budget exceeds."""
    registers = budget.registers_per_thread * budget.threads
    result = (
        ("tmem_columns", "tensor memory", "columns",
         budget.tmem_columns, arch.tmem_columns, "an SM"),
        ("dynamic_smem_bytes", "shared memory", "bytes",
         budget.dynamic_smem_bytes, arch.smem_per_cta_bytes, "a CTA"),
        ("threads", "threads", "threads", budget.threads, arch.threads_per_cta, "a CTA"),
        ("cluster", "cluster", "CTAs", budget.cluster, arch.cluster_size, "a cluster"),
        ("registers_per_thread", "registers", "registers",
         registers, arch.registers_per_sm, "an SM"),
    )  # fmt: skip
    for field, what, unit, wants, limit, whose in result:
        if wants > limit:
            term = f" ({budget.terms[field]})" if field in budget.terms else ""
            yield (
                f"{what.capitalize()}: {wants:,} {unit} needed{term}, "
                f"{limit:,} is the most that {arch.name} has for {whose}."
            )
    if budget.registers_per_thread > arch.registers_per_thread:
        yield (
            f"Registers: {budget.registers_per_thread} needed per thread, "
            f"{arch.registers_per_thread} is the most that {arch.name} has for one."
        )


def _end(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."


def does_not_fit(arch: Arch, evidence: BuildEvidence) -> Verdict | None:
    """IMPOSSIBLE where the build turned out so that not one CTA fits an SM, or is launched with
    more threads than there may be; else None."""
    entries = {"": (evidence.resources, evidence.occupancy)} | {
        f" of {name}": (other.resources, other.occupancy) for name, other in evidence.others.items()
    }
    for of, (used, occupancy) in entries.items():
        if refused := impossible(arch, (), Budget(threads=used.threads, dynamic_smem_bytes=0)):
            return refused
        if occupancy.ctas_per_sm == 0:
            limits = " and ".join(occupancy.limited_by)
            sentence = f"No CTA{of} fits on an SM of {arch.name}: limited by {limits}."
            return Verdict(status=Status.IMPOSSIBLE, reason="does_not_fit", sentence=sentence)
    return None


def build_failed() -> Verdict:
    return Verdict(
        status=Status.BUILD_FAILED,
        reason="compiler",
        sentence="The compiler rejected the source; its errors are shown and recorded.",
    )


def contradicts_budget(
    arm: Arm, where: str, budget: Budget | None, evidence: BuildEvidence
) -> Verdict | None:
    """BUILD_FAILED where the build exports another figure than its budget, which comes from `where`
    (for the sentence)."""
    for name in ("threads", "dynamic_smem_bytes", "cluster", "tmem_columns"):
        predicted = getattr(budget, name, None)
        computed = evidence.exports.get(name, predicted)
        if predicted is not None and predicted != computed:
            return contradiction(
                f"variants/{arm.kernel}: {where} says {predicted:,} {name}, "
                f"{arm.source} exports {computed:,}: correct the one that is wrong."
            )
    return None


def contradicts_launches(
    arm: Arm, launches: Mapping[str, Sequence[Launch]], evidence: BuildEvidence
) -> Verdict | None:
    """BUILD_FAILED where the build exports another figure than its launches, by the name of their
    size, ask for."""
    for size, job in launches.items():
        for name, item, exported in _pairs(main_launch(job), evidence.exports):
            if item != exported:
                return contradiction(
                    f"variants/{arm.kernel}/problem.py: launch() asks for {item:,} {name} at "
                    f"size {size!r}, {arm.source} exports {exported:,}: correct the one that "
                    "is wrong."
                )
    return None


def _pairs(launch: Launch, exports: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Name, the launch's figure, the build's, of what the source exports."""
    for name, words, item in (
        ("threads", "threads", math.prod(launch.block)),
        ("dynamic_smem_bytes", "dynamic_smem_bytes", launch.dynamic_smem_bytes),
        ("cluster", "CTAs per cluster", math.prod(launch.cluster)),
    ):
        if name in exports:
            yield words, item, exports[name]


def contradiction(sentence: str) -> Verdict:
    return Verdict(status=Status.BUILD_FAILED, reason="contradiction", sentence=sentence)


def emulated(evidence: EmulatedEvidence, pedantic: bool = False) -> Verdict | None:
    """Returns the verdict against a variant from executing its PTX; None where nothing was found.

    pedantic: formal mistakes count too.
    """
    if findings := (*evidence.findings, *(evidence.warnings if pedantic else ())):
        first = next((x for x in findings if x.name == "hang"), findings[0])
        reason = f"emulated_{first.name.replace('-', '_')}"
        # A hang is proven: warps wait for what nobody will do. A limit of steps is but that.
        status = Status.TIMED_OUT if first.name == "step-limit" else Status.INCORRECT
        return _verdict(status, reason, _found(first, len(findings) - 1))
    if evidence.hang:
        sentence = "Emulated: the launch does not finish."
        return _verdict(Status.INCORRECT, "emulated_hang", sentence)
    if evidence.changed:
        names = ", ".join(evidence.changed)
        sentence = f"Emulated: the kernel changed its inputs: it wrote to {names}."
        return _verdict(Status.INCORRECT, "emulated_inputs", sentence)
    for array in evidence.arrays:
        if array.wrong:
            sentence = f"Emulated: {describe(array)}."
            return _verdict(Status.INCORRECT, "emulated_reference", sentence)
    if evidence.differing:
        names = ", ".join(evidence.differing)
        sentence = f"Emulated: {names} depends on the order of warps or on when copies land."
        return _verdict(Status.INCORRECT, "emulated_schedule", sentence)
    return None


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A deviation of the SASS: a fault of ptxas or of the emulator, unless it is a rounding."""

    is_wrong: bool
    """More than other bits within the tolerance: a wrong result, a hang, a faulty access."""
    sentence: str


def disagreement(arm: Arm) -> Disagreement | None:
    """Returns the disagreement of PTX and SASS; None where both did the same, where either was not
    executed, or where the PTX is wrong itself."""
    ptx, sass = arm.emulated, arm.emulated_sass
    if not (ptx and sass and ptx.is_right and sass.arrays):
        return None
    if refused := emulated(sass):
        sentence = (
            f"its SASS is {refused.status}, although its PTX is right: {refused.sentence} Either "
            "ptxas or the emulator is at fault; nothing is counted on SASS"
        )
        return Disagreement(is_wrong=True, sentence=sentence)
    # What the order of atomics decides may be decided otherwise.
    others = [
        name
        for name, digest in ptx.outputs.items()
        if name not in ptx.varying and sass.outputs.get(name) != digest
    ]
    if not others or ptx.seed != sass.seed:
        return None
    sentence = (
        f"its SASS writes other bits to {', '.join(others)} than its PTX, within the tolerance, as "
        "where ptxas fuses operations, or where atomics meet in another order"
    )
    return Disagreement(is_wrong=False, sentence=sentence)


def _found(finding: EmulatedFinding, others: int) -> str:
    """The sentence about the finding that decides."""
    at = f", at {finding.where}" if finding.where else ""
    more = f" ({others} more)" if others else ""
    return f"Emulated: {finding.sentence.rstrip('.')}{at}{more}."


def without_baseline(refused: Verdict) -> Verdict:
    """INVALID: there is nothing to compare a candidate with."""
    sentence = f"The baseline is {refused.status}: {refused.sentence}"
    return _verdict(Status.INVALID, "baseline_failed", sentence)


def pending() -> Verdict:
    """Returns a placeholder verdict until the evidence is judged."""
    return Verdict(status=Status.UNMEASURED, reason="pending", sentence="Not judged yet.")


def unmeasured(arch: Arch, why: str, *, emulated: bool) -> Verdict:
    """UNMEASURED; `why` says what this machine has instead of the GPU that is needed."""
    sentence = (
        f"{'Built and emulated' if emulated else 'Built'}, not timed: timing {arch.name} requires "
        f"a GPU of compute capability {arch.capability} ({arch.cards}); {why}"
    )
    return Verdict(status=Status.UNMEASURED, reason="no_gpu", sentence=_end(sentence))


_VERBS = {"INCORRECT": "gave a wrong result", "CRASHED": "crashed", "TIMED_OUT": "did not finish"}

# How much the device may change under a measurement before it says nothing.
DROPPED_MAX = 0.5
# An interval this narrow against the margin that still reaches over its edge will not be decided by
# more samples: the effect lies on the edge.
NARROW = 0.1


def measured(measurement: Measurement, candidate: str, margin: float = 0.01) -> Verdict:
    """Judges one candidate by a measurement: time ratio to the baseline against 1 +- `margin`.

    Pure: the same measurement gives the same verdict anywhere, with another margin too.
    """
    refused = _failed(measurement, candidate)
    if refused is not None:
        return refused
    effects, placebo = ratios(measurement)
    effect = next((item for item in effects if item.arm == candidate), None)
    if effect is None and (dropped := dropped_pairs(measurement, candidate)):
        sentence = f"Clocks or throttling changed during all {dropped} pairs."
        return _verdict(Status.INVALID, "device_changed", sentence)
    if effect is None:
        return _verdict(Status.INCONCLUSIVE, "no_samples", "The budget ended before a sample.")
    verdict = decided(effect, placebo, margin)
    departure = measurement.departure(candidate)
    if departure and departure.slower_than and verdict.reason in ("too_wide", "on_the_edge"):
        sentence = (
            f"{spell_change(effect)}, {spell_interval(effect)}: timed in "
            f"{departure.processes} processes only, since {departure.slower_than} was faster."
        )
        return _verdict(Status.INCONCLUSIVE, "outrun", sentence)
    return verdict


def decided(effect: Effect, placebo: Effect | None, margin: float = 0.01) -> Verdict:
    """Judges the ratio of a candidate that ran and was right, if the placebo's allows it."""
    return _doubt(effect, placebo, margin) or _against_margin(effect, margin)


def enough(measurement: Measurement, margin: float = 0.01) -> bool:
    """Whether more processes would change no verdict: each candidate decided, or on an edge."""
    effects, placebo = ratios(measurement)
    for effect in effects:
        undecided = decided(effect, placebo, margin).status is Status.INCONCLUSIVE
        if undecided and not _is_narrow(effect, margin):
            return False
    return True


def is_settled(effect: Effect, margin: float) -> bool:
    """Whether this ratio reaches a verdict or lies on an edge, whatever the placebo's does."""
    if effect.processes < 2:
        return False
    decisive = _against_margin(effect, margin).status is not Status.INCONCLUSIVE
    return decisive or _is_narrow(effect, margin)


def _is_narrow(effect: Effect, margin: float) -> bool:
    return (effect.high - effect.low) / 2.0 <= NARROW * margin


def is_trusted(placebo: Effect | None, margin: float) -> bool:
    """Whether the baseline against itself leaves no doubt about the other ratios."""
    return _doubt_of_placebo(placebo, margin) is None


_REASONS = {"INCORRECT": "reference", "CRASHED": "driver", "TIMED_OUT": "time_limit"}
_REASONS_OF_PROGRAMS = {"INCORRECT": "output", "CRASHED": "ended", "TIMED_OUT": "time_limit"}


def _failed(measurement: Measurement, candidate: str) -> Verdict | None:
    """The verdict of an arm that gave no time, or of a measurement that gave none worth having."""
    base = measurement.position("baseline")
    second = measurement.position("placebo")
    # The placebo is the baseline's own cubin.
    baselines = [measurement.arms[item].name for item in (base, second) if item is not None]
    for failure in measurement.failures:
        if failure.arm in baselines:
            sentence = f"The baseline {_VERBS[failure.status]}: {failure.words}"
            return _verdict(Status.INVALID, "baseline_failed", _end(sentence))
        if not failure.arm:
            sentence = f"An unknown arm {_VERBS[failure.status]}: {failure.words}"
            return _verdict(Status.INVALID, "unknown_arm", _end(sentence))
    for failure in measurement.failures:
        if failure.arm == candidate:
            reasons = _REASONS_OF_PROGRAMS if measurement.printed else _REASONS
            status = Status(failure.status)
            return _verdict(status, reasons[failure.status], _end(failure.words))
    if measurement.invalid:
        return _verdict(Status.INVALID, "gpu_shared", _end(measurement.invalid))
    return None


def _doubt(effect: Effect, placebo: Effect | None, margin: float) -> Verdict | None:
    """The verdict where the samples can't be trusted or are too few to ask; None where they may."""
    taken = effect.pairs + effect.dropped
    if effect.dropped > DROPPED_MAX * taken:
        sentence = f"Clocks or throttling changed during {effect.dropped} of {taken} pairs."
        return _verdict(Status.INVALID, "device_changed", sentence)
    if effect.processes < 2:
        sentence = "Only one process was timed; the variation between processes is unknown."
        return _verdict(Status.INCONCLUSIVE, "one_process", sentence)
    return _doubt_of_placebo(placebo, margin)


def _doubt_of_placebo(placebo: Effect | None, margin: float) -> Verdict | None:
    if placebo is None:
        return None
    interval = spell_interval(placebo)
    if not placebo.low <= 1.0 <= placebo.high:
        sentence = f"The baseline differs from itself: {interval}."
        return _verdict(Status.INCONCLUSIVE, "placebo_differs", sentence)
    if placebo.low < 1.0 - margin or placebo.high > 1.0 + margin:
        sentence = f"The baseline against itself is uncertain beyond the margin: {interval}."
        return _verdict(Status.INCONCLUSIVE, "placebo_wide", sentence)
    return None


def _against_margin(effect: Effect, margin: float) -> Verdict:
    """The interval against 1 +- margin."""
    low, high = 1.0 - margin, 1.0 + margin
    measured_as = f"{spell_change(effect)}, {spell_interval(effect)}"
    edge = f"the margin of ±{100 * margin:g}%"
    if effect.high < low:
        reason = "better" if effect.unit else "faster"
        return _verdict(Status.IMPROVED, reason, f"{measured_as}: entirely outside {edge}.")
    if effect.low > high:
        reason = "worse" if effect.unit else "slower"
        return _verdict(Status.REJECTED, reason, f"{measured_as}: entirely outside {edge}.")
    if low <= effect.low and effect.high <= high:
        return _verdict(Status.NEUTRAL, "within_margin", f"{measured_as}: entirely within {edge}.")
    if _is_narrow(effect, margin):
        sentence = f"{measured_as}: it straddles {edge} narrowly; another --margin would decide."
        return _verdict(Status.INCONCLUSIVE, "on_the_edge", sentence)
    sentence = f"{measured_as}: it straddles {edge}; more processes would narrow it."
    return _verdict(Status.INCONCLUSIVE, "too_wide", sentence)


def side(ratio: float, margin: float) -> Status:
    """The verdict on a ratio that were known exactly."""
    if abs(ratio - 1.0) <= margin:
        return Status.NEUTRAL
    return Status.IMPROVED if ratio < 1.0 else Status.REJECTED


def _verdict(status: Status, reason: str, sentence: str) -> Verdict:
    return Verdict(status=status, reason=reason, sentence=sentence)


def spell_change(effect: Effect) -> str:
    """A ratio in words: 0.9876 of a time is "1.24% faster", of a figure "1.24% lower GB/s"."""
    ratio = effect.printed[0]
    if effect.unit:
        word = f"{'lower' if ratio < 1.0 else 'higher'} {effect.unit}"
    else:
        word = "faster" if ratio < 1.0 else "slower"
    return f"{100.0 * abs(ratio - 1.0):.2f}% {word}"


def spell_interval(effect: Effect) -> str:
    """An effect's interval as changes: "99.5% interval -1.31% to -1.17%"."""
    _, low, high = effect.printed
    ends = f"{100.0 * (low - 1.0):+.2f}% to {100.0 * (high - 1.0):+.2f}%"
    return f"{100 * effect.level:.4g}% interval {ends}"


_CODES = {
    Status.BUILD_FAILED: errors.BUILD,
    Status.INCORRECT: errors.WRONG_RESULT,
    Status.CRASHED: errors.WRONG_RESULT,
    Status.TIMED_OUT: errors.WRONG_RESULT,
    Status.INCONCLUSIVE: errors.INCONCLUSIVE,
    Status.INVALID: errors.INCONCLUSIVE,
}


def exit_code(statuses: Set[Status]) -> int:
    """The exit code of the worst of these."""
    return next((code for status, code in _CODES.items() if status in statuses), errors.OK)


DECIDED = (Status.IMPROVED, Status.REJECTED, Status.NEUTRAL)
"""Verdicts that an interval reached against the margin."""


TIMED = (*DECIDED, Status.INCONCLUSIVE)
"""Verdicts on a candidate whose time was judged."""


SILENT = (Status.UNMEASURED, Status.INCONCLUSIVE, Status.INVALID)
"""Verdicts that say nothing of time or correctness."""


WRONG = (Status.INCORRECT, Status.TIMED_OUT, Status.CRASHED)
"""Verdicts that a kernel is wrong."""
