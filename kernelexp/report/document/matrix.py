"""The figures of many arms in 80 columns: a row per arm, a column per figure that differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelexp.facts import metrics
from kernelexp.facts.counters import PTX
from kernelexp.model.arm import Arm
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Span, table, text_of

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


def render(arms: Mapping[str, Arm]) -> Iterator[Block]:
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
