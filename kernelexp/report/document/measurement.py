"""A measurement for people: how it was taken, other kernels in the same run, conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kernelexp.facts import metrics
from kernelexp.judge.statistics import heats
from kernelexp.model.measurement import Estimate, Measurement, PrintedSamples
from kernelexp.model.record import Record, final_reference, measured_evidence
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, paragraph, table


def render(record: Record, verbose: bool = False) -> Iterator[Block]:
    """Peers and placebo, then how the times were taken; with `verbose` every arm's times."""
    measurement, estimate = record.measurement, record.estimate
    if measurement is None or estimate is None:
        return
    rows = list(_rows(record, estimate, verbose))
    if rows:
        yield _times(rows, verbose, measurement.printed)
        if any(row[-1] for row in rows):
            yield paragraph(_DETECTS, style="dim")
    if measurement.printed and measurement.printed.also:
        yield _also(record, measurement.printed)
    yield paragraph(_method(measurement, estimate, record))
    if record.heats:
        yield from _cards(record)
    if measurement.departures:
        yield paragraph(_departures(measurement))
    if conditions := _conditions(estimate):
        yield paragraph(conditions)
    said = [one.verdict.sentence for one in record.candidates]
    for failure in measurement.failures:
        if not any(failure.words.rstrip(".") in sentence for sentence in said):
            yield paragraph(f"{failure.arm}: {failure.status}: {failure.words}")


_DETECTS = (
    "placebo: the baseline, timed against itself. detects: the least change that this run would "
    "have seen in that row."
)


def _times(rows: list[tuple[str, ...]], verbose: bool, printed: PrintedSamples | None) -> Block:
    """Tabulates what was timed, peers and placebo; a program's figure that is not a time is in the
    page above, and no program states its work."""
    header = ("timed" if verbose else "timed too", "ms", "TFLOPS", "vs. baseline", "detects")
    shown = None
    if printed:
        shown = (0, 1, 3, 4) if printed.is_time else (0, 3, 4)
    return table(header, rows, numbers=range(1, len(header)), shown=shown)


def _also(record: Record, printed: PrintedSamples) -> Block:
    """The medians of what programs printed besides what they are judged by, one row per arm."""
    units = (metrics.spell_printed(name, own.unit) for name, own in printed.also.items())
    header = ("printed too", *units)
    rows = (
        [name, *(figures.value(metrics.read(f"printed_{item}", arm)) for item in printed.also)]
        for name, arm in record.by_name.items()
    )
    return table(header, rows, numbers=range(1, len(header)))


def _rows(record: Record, estimate: Estimate, verbose: bool) -> Iterator[tuple[str, ...]]:
    reference = final_reference(record)
    leader = measured_evidence(record, reference) if reference else None
    for name in (times.arm for times in estimate.times):
        if name in record.names and not verbose:
            continue  # the table of arms has it
        own = measured_evidence(record, name) if name in record.names else None
        effect = own.effect if own else estimate.effect(name)
        times = estimate.shown(name, leader.time_us if leader else None)
        time_us = own.time_us if own else times.median_us if times else None
        of = f" of {reference}" if reference and not own else ""
        yield (
            f"{name}{of}",
            figures.time_ms(time_us and time_us / 1000),
            figures.tflops(record.flops, time_us or 0.0),
            figures.effect(effect) if effect else "",
            f"{100 * effect.detectable:.2f}%" if effect and effect.processes > 1 else "",
        )


def _method(measurement: Measurement, estimate: Estimate, record: Record) -> str:
    longest = max(estimate.effects, key=lambda effect: effect.pairs, default=None)
    pairs, dropped = (longest.pairs, longest.dropped) if longest else (0, 0)
    level = longest.level if longest else 0.0
    if measurement.printed:
        return (
            f"Run on {measurement.device.name}: {pairs:,} pairs in {len(measurement.workers)} "
            f"rounds of new processes, {dropped} dropped, {100 * level:.4g}% intervals over "
            f"rounds, {measurement.elapsed_s:.0f} s."
        )
    if longest is None:
        return f"Nothing was timed on {measurement.device.name}, in {measurement.elapsed_s:.0f} s."
    l2 = "L2 flushed, " if measurement.options.l2 == "cold" else ""
    return (
        f"{'Final on' if record.heats else 'Timed on'} {measurement.device.name}"
        f"{figures.conditions(record)}: {pairs:,} pairs in "
        f"{len(measurement.workers)} "
        f"processes, {dropped} dropped, "
        f"{100 * level:.4g}% intervals over processes, {l2}{measurement.elapsed_s:.0f} s."
    )


def _cards(record: Record) -> Iterator[Block]:
    """The baseline on each GPU: how far the GPUs differ, which no ratio between variants shows."""
    rows = []
    taken = [(heat.measurement, heat.estimate) for heat in record.heats]
    if record.measurement and record.estimate:
        taken.append((record.measurement, record.estimate))
    for number, (own, estimate) in enumerate(taken, 1):
        candidates = sum(arm.role == "candidate" for arm in own.arms)
        base = next((time_ for time_ in estimate.times if time_.arm == "baseline"), None)
        state = estimate.conditions
        rows.append(
            (
                "final" if own is record.measurement else f"heat {number}",
                own.device.name,
                own.device.uuid[:12],
                str(candidates),
                figures.time_ms(base.median_us / 1000) if base else figures.NONE,
                f"{state.sm_clock_mhz:,.0f}" if state else figures.NONE,
                f"{state.temperature_c:.0f}" if state else figures.NONE,
            )
        )
    header = ("", "GPU", "UUID", "variants", "baseline, ms", "SM, MHz", "C")
    yield table(header, rows, numbers=(3, 4, 5, 6), unwrapped=(0, 2))
    yield paragraph(
        f"Changes are relative to the baseline on the same GPU at the same time; {_whose(record)}, "
        "times this change.",
        style="dim",
    )


def _whose(record: Record) -> str:
    """Says which of the baseline's times all times are relative to."""
    if not (reference := final_reference(record)):
        return "each time in the table above is that of the baseline in the final"
    return (
        f"over {heats.SLOW:g} times as slow as the best, it was not in the final, where the others "
        f"were compared with {reference}. Each time in the table above is that of the baseline in "
        f"the heat of {reference}"
    )


def _departures(measurement: Measurement) -> str:
    """Counts the arms that left the race early, by the processes that timed them."""
    early = sorted(measurement.departures, key=lambda departure: departure.processes)
    slower = Counter(departure.processes for departure in early if departure.slower_than)
    decided = Counter(departure.processes for departure in early if not departure.slower_than)
    unit = "rounds" if measurement.printed else "processes"
    parts = []
    for counts, why in ((slower, "as slower than the best"), (decided, "as decided")):
        left = [f"{n} variant{'s' if n > 1 else ''} after {after}" for after, n in counts.items()]
        if left:
            parts.append(f"{', '.join(left)} {unit}, {why}")
    return f"Stopped early: {'; '.join(parts)}."


def _conditions(estimate: Estimate) -> str:
    state = estimate.conditions
    if state is None:
        return ""
    throttle = ", ".join(f"{name} {100 * share:.0f}%" for name, share in state.throttle.items())
    heat = f"{state.temperature_c:.0f} C{f'; {throttle}' if throttle else ''}."
    if not state.sm_clock_mhz:  # between the runs of programs
        return f"Between runs {heat}" if state.temperature_c else ""
    return (
        f"SM {state.sm_clock_mhz:,.0f} MHz ({state.sm_clock_low_mhz:,} to "
        f"{state.sm_clock_high_mhz:,}), memory {state.memory_clock_mhz:,.0f} MHz, "
        f"{state.power_w:.0f} W, {heat}"
    )
