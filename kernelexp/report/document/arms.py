"""Parts that several pages share about arms: all figures, the compiler's warnings and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from kernelexp.facts import metrics
from kernelexp.facts.metrics import Kind
from kernelexp.model.arm import Arm
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Listing, Span, grouped, paragraph, table
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
