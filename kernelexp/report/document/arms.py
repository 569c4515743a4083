"""Parts that pages share about arms: all figures, those that differ, the compiler's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from kernelexp.facts import metrics
from kernelexp.facts.counters import PTX
from kernelexp.facts.metrics import Kind
from kernelexp.model.arm import Arm
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
