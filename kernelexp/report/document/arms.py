"""Arms for people: figures, those that differ, the compiler's words; how they were timed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kernelexp.facts import metrics
from kernelexp.facts.counters import PTX
from kernelexp.facts.metrics import Kind
from kernelexp.judge.statistics import racing
from kernelexp.model.arm import Arm
from kernelexp.model.measurement import Estimate, Measurement, PrintedSamples
from kernelexp.model.record import Record, final_reference, measured_evidence
from kernelexp.report.document import figures
from kernelexp.report.document.document import (
    Block,
    Cell,
    Listing,
    Span,
    grouped,
    paragraph,
    table,
    text_of,
)
from warpsim.launch import plain_name

KINDS: tuple[Kind, ...] = ("built", "emulated")
_LOG_LINES_SHOWN = 20


_FUNCTION = re.compile(r"'(_Z\w+)'")


def warnings(arms: Mapping[str, Arm]) -> Iterator[Block]:
    """Yields the warnings of ptxas, each sentence once with its arms and count, functions by their
    names in the source; for kernels that no arm launches only the number of sentences."""
    whose: dict[str, list[str]] = {}
    idle = 0
    for name, arm in arms.items():
        code = arm.build or arm.program
        launched = {arm.build.entry, *arm.build.others} if arm.build else set()
        for warning in code.warnings if code else ():
            function = _FUNCTION.search(warning)
            if function and launched and function[1] not in launched:
                idle += 1
                continue
            words = _FUNCTION.sub(lambda match: f"'{plain_name(match[1])}'", warning)
            whose.setdefault(words, []).append(name)
    for words, names in whose.items():
        times = f" ({len(names)}x)" if len(names) > 1 else ""
        yield paragraph(f"{', '.join(dict.fromkeys(names))}: ptxas: {words}{times}", style="warn")
    if idle:
        what = f"{idle} warning{'s' * (idle > 1)}"
        yield paragraph(f"ptxas: {what} of functions that are not launched.", style="dim")


def compiler_errors(arms: Mapping[str, Arm]) -> Iterator[Block]:
    """Yields the compiler's errors for arms that do not build, the same words once."""
    by_log = grouped((arm.build_log, name) for name, arm in arms.items() if arm.build_log)
    for log, names in by_log.items():
        yield paragraph(Span(f"{', '.join(names)}: the compiler's errors:", "broken"))
        yield Listing(shorten(log))


def all_figures(
    arms: Mapping[str, Arm], kinds: Sequence[Kind] = KINDS, but: tuple[str, ...] = ()
) -> Iterator[Block]:
    """Every figure of these kinds of every arm; arms in groups that fit 80 columns.

    but: what the names of figures begin with that another table shows.
    """
    names = list(arms)
    for start in range(0, len(names), 3):
        group = {name: arms[name] for name in names[start : start + 3]}
        every = [metrics.figures(arm, *kinds) for arm in group.values()]
        known = {name: figure.metric for shown in every for name, figure in shown.items()}
        rows = [
            [_head(metric), *(figures.value(metric.read(arm), "") for arm in group.values())]
            for metric in known.values()
            if not metric.name.startswith(but)
        ]
        if rows:
            header = ("figure", *group)
            yield table(header, rows, numbers=range(1, len(header)))


def _head(metric: metrics.Metric) -> str:
    """ncu's name of what was counted, so that it can be looked up."""
    counted = metric.kind == "emulated" and metric.name not in metrics.METRICS
    return metric.name if counted else metric.label


def shorten(log: str) -> str:
    """The first lines of a compiler's output, and how many more there are."""
    lines = log.splitlines()
    rest = len(lines) - _LOG_LINES_SHOWN
    kept = lines[:_LOG_LINES_SHOWN]
    return "\n".join([*kept, f"... {rest} more lines with --json"] if rest > 0 else kept)


_HEADINGS: dict[str, str] = {
    "launch__registers_per_thread": "registers",
    "spill_store_bytes": "spill\nstores, B",
    "launch__shared_mem_per_block_static": "static\nsmem, B",
    "launch__shared_mem_per_block_dynamic": "dynamic\nsmem, B",
    "launch__block_size": "threads",
    "ctas_per_cluster": "cluster",
    "ctas_per_sm": "CTAs\nper SM",
    "warps_per_sm": "warps\nper SM",
    "sass_instructions": "SASS\ninstr.",
    "emulated_wrong_elements": "wrong\nelements",
    "smsp__inst_executed": "SASS instr.\nexecuted",
    "memory_l1_wavefronts_shared": "shared\nwavefronts",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld": "conflicts\nof loads",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st": "conflicts\nof stores",
    "memory_l1_tag_requests_global": "L1 tag\nrequests",
    "memory_l2_theoretical_sectors_global": "LSU\nsectors",
    "ptx__inst_executed": "PTX instr.\nexecuted",
    f"{PTX}memory_l1_wavefronts_shared": "shared\nwavefronts\n(PTX)",
    f"{PTX}l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld": "conflicts\nof loads\n(PTX)",
    f"{PTX}l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st": "conflicts\nof stores\n(PTX)",
    f"{PTX}memory_l1_tag_requests_global": "L1 tag\nrequests\n(PTX)",
    f"{PTX}memory_l2_theoretical_sectors_global": "LSU\nsectors\n(PTX)",
    f"{PTX}l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld": "sectors\nof TMA\n(PTX)",
    f"{PTX}l1tex__data_pipe_tc_wavefronts_mem_shared": "tensor\nwavefronts\n(PTX)",
}
"""The figures that tell variants apart at a glance, by name; --verbose has every other."""
_COUNTED = frozenset(
    name for name in _HEADINGS if any(word in name for word in ("inst_executed", "l1", "l2"))
)
"""Counters of SASS or of PTX."""
_WIDTH = 80
_GAP = 3
_LABEL = 28
"""The widest column of labels; longer ones are wrapped."""


def columns(arms: Sequence[Arm]) -> tuple[str, ...]:
    """The names of the figures in which any two of the arms differ, of those shown here.

    Of PTX where the SASS of some was not executed, else of SASS.
    """
    on_sass = all(arm.counted for arm in arms if arm.emulated)
    return tuple(
        name
        for name in _HEADINGS
        if name.startswith(PTX) != on_sass or name not in _COUNTED
        if len({*_values(arms, name)} - {None}) > 1
    )


def matrix(arms: Mapping[str, Arm]) -> Iterator[Block]:
    """The arms by label, first the one that the others are compared with: what differs from its
    figure is highlighted. As many tables as the columns need."""
    every = list(arms.values())
    rest = [_column(every, name) for name in columns(every)]
    label = min(_LABEL, max(map(len, arms)))
    while rest:
        count, width = 1, label + _width(rest[0])
        while count < len(rest) and width + _width(rest[count]) <= _WIDTH:
            width += _width(rest[count])
            count += 1
        (header, *rows), rest = list(zip(*rest[:count], strict=True)), rest[count:]
        yield table(
            ("", *map(text_of, header)),
            ((name, *row) for name, row in zip(arms, rows, strict=True)),
            numbers=range(1, count + 1),
        )


def _column(arms: Sequence[Arm], name: str) -> tuple[Cell, ...]:
    """The heading, then a cell for each arm."""
    first, *others = _values(arms, name)
    cells = (
        Span(figures.value(other), "" if other in (None, first) else "warn") for other in others
    )
    return (_HEADINGS[name], figures.value(first), *cells)


def _values(arms: Sequence[Arm], name: str) -> list[metrics.Value | None]:
    """A counter that an emulated arm lacks is 0."""
    every = [metrics.figures(arm, "built", "emulated") for arm in arms]
    metric = next((item[name].metric for item in every if name in item), None)
    return [metric.read(arm) if metric else None for arm in arms]


def _width(column: Sequence[Cell]) -> int:
    return _GAP + max(len(line) for cell in column for line in text_of(cell).split("\n"))


def measurement_lines(record: Record, verbose: bool = False) -> Iterator[Block]:
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
        f"over {racing.SLOW:g} times as slow as the best, it was not in the final, where the "
        f"others were compared with {reference}. Each time in the table above is that of the "
        f"baseline in the heat of {reference}"
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
