"""The figures of an arm by name.

Pages, lists, gates, the log, CSV and JSON read figures from here. A figure that carries a name of
ncu's equals what ncu shows, be it profiled or counted in an emulation of SASS; every other one has
a name of its own, and what an emulation counts on PTX begins with ptx__.
"""

from __future__ import annotations

import itertools
import re

from kernelexp.facts import counters
from kernelexp.facts.metrics import table
from kernelexp.facts.metrics.table import (
    BY_PIPE,
    METRICS,
    PRINTED,
    Figure,
    Kind,
    Metric,
    Value,
    printed,
    spell_printed,
)
from kernelexp.model.arm import Arm
from kernelexp.model.errors import suggest
from kernelexp.model.text import quote

__all__ = [
    "BUILD_SUMMARY", "BY_PIPE", "CHANGES", "METRICS", "MODELLED", "Figure", "Kind", "Metric",
    "Value", "figures", "find", "kind_of", "printed", "read", "searchable", "spell_printed",
    "summarize", "unknown",
]  # fmt: skip

CHANGES = ("change_percent", "change_low_percent", "change_high_percent")
"""Figures of a candidate that compare it with its baseline already."""

# What ncu names has `__`, but for the counters of its source page.
_NCU = re.compile(r".*__|memory_|instexecuted|thread_instexecuted|local_|group:")


MODELLED = Metric(
    name="modelled",
    label="modelled cycles",
    kind="modelled",
    better="less",
    read=lambda arm: None,
)
"""What a search without a GPU may go by; no arm has it, as it is no evidence of one."""


def kind_of(name: str) -> Kind | None:
    """The kind of evidence that has a figure of this name; None where nothing could have it.

    A name of ncu's is that of a profile's figure, which an emulation of SASS may have counted too;
    an emulation's counters of PTX have their own.
    """
    if name in METRICS:
        return METRICS[name].kind
    if name.startswith(BY_PIPE):
        return "built"
    if name.startswith(counters.PTX):
        return "emulated"
    if name.startswith(PRINTED):
        return "measured"
    return "profiled" if _NCU.match(name) else None


def find(name: str) -> Metric | None:
    """The metric of a name, those of the families included; None for figures of a profile."""
    if name in METRICS:
        return METRICS[name]
    if name.startswith(BY_PIPE):
        return table.of_pipe(name.removeprefix(BY_PIPE))
    if name.startswith(PRINTED):
        return table.of_printed(name.removeprefix(PRINTED), "", "")
    return table.of_counter(name) if kind_of(name) == "emulated" else None


def searchable(name: str) -> Metric | None:
    """The metric that a search goes by: as find(), and what an emulation of SASS counts under
    ncu's name."""
    if name == MODELLED.name:
        return MODELLED
    return find(name) or (table.of_counter(name) if kind_of(name) == "profiled" else None)


def unknown(name: str) -> str:
    """A sentence where no figure has this name; else empty."""
    if name == MODELLED.name or kind_of(name):
        return ""
    return f"no figure is called {quote(name)}{suggest(name, METRICS)}, and ncu's names."


def read(name: str, arm: Arm, kind: Kind | None = None) -> Value | None:
    """One figure of an arm by its name, of a kind if one is given; None where the arm does not
    have it."""
    if name in METRICS:
        return METRICS[name].read(arm)
    every = table.of_evidence(arm)
    named = (
        figure for figure in every if figure[0].name == name and kind in (None, figure[0].kind)
    )
    return next((value for _, value in named), None)


def figures(arm: Arm, *kinds: Kind) -> dict[str, Figure]:
    """All figures of an arm by name, of the given kinds or of every kind, in the table's order."""
    figures_read: dict[str, Figure] = {}
    fixed = ((metric, metric.read(arm)) for metric in METRICS.values())
    for metric, value in itertools.chain(fixed, table.of_evidence(arm)):
        if value is not None and (not kinds or metric.kind in kinds):
            # What was built goes before what a profile has under the same name of ncu's.
            figures_read.setdefault(metric.name, Figure(metric=metric, value=value))
    return figures_read


BUILD_SUMMARY: dict[str, tuple[str, ...]] = {
    "registers": ("launch__registers_per_thread",),
    "spill_bytes": ("spill_store_bytes", "spill_load_bytes"),
    "stack_bytes": ("stack_bytes",),
    "smem_bytes": (
        "launch__shared_mem_per_block_static",
        "launch__shared_mem_per_block_dynamic",
    ),
    "sass_bytes": ("sass_bytes",),
}
"""What a build comes to in five figures, each the sum of some; less is better in all of them."""


def summarize(arm: Arm) -> dict[str, int]:
    """The figures of BUILD_SUMMARY; empty for an arm that is not built."""
    if not arm.is_built:
        return {}
    return {
        name: sum(value for part in parts if isinstance(value := read(part, arm), int))
        for name, parts in BUILD_SUMMARY.items()
    }
