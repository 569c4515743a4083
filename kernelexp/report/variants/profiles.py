"""The page of `kernelexp profile`, and the lines about profiles on other pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kernelexp.dossier.standing import StandingProfile
from kernelexp.model.arm import ProfiledEvidence
from kernelexp.model.record import Profile
from kernelexp.model.text import one_line
from kernelexp.report.document.document import Block, Cell, Span, paragraph, table

if TYPE_CHECKING:
    from kernelexp.services.profiling import Profiling

_PEAK = "avg.pct_of_peak_sustained_elapsed"
# Name, metric, what ncu's base unit is divided by, unit.
_MAIN = (
    ("duration", "gpu__time_duration.sum", 1e3, "us"),
    ("SM clock", "gpc__cycles_elapsed.avg.per_second", 1e6, "MHz"),
    ("compute throughput", f"sm__throughput.{_PEAK}", 1, "%"),
    ("memory throughput", f"gpu__compute_memory_throughput.{_PEAK}", 1, "%"),
    ("DRAM throughput", "dram__bytes.sum.per_second", 1e9, "GB/s"),
    ("L1 hit rate", "l1tex__t_sector_hit_rate.pct", 1, "%"),
    ("L2 hit rate", "lts__t_sector_hit_rate.pct", 1, "%"),
    ("achieved occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", 1, "%"),
    ("eligible warps per scheduler", "smsp__warps_eligible.avg.per_cycle_active", 1, ""),
    ("cycles per issued instruction", "smsp__average_warp_latency_per_inst_issued.ratio", 1, ""),
    ("instructions", "smsp__inst_executed.sum", 1, ""),
    ("registers per thread", "launch__registers_per_thread", 1, ""),
)


def render(done: Sequence[Profiling]) -> Iterator[Block]:
    """The main figures side by side, the conditions of each profile, and what was lost."""
    named = {f"variant {number}": profiling for number, profiling in enumerate(done, 1)}
    for name, profiling in named.items():
        yield paragraph(Span(f"{name}: {profiling.label}", "strong"))
    kept = {name: (one.profile, one.path) for name, one in named.items() if one.profile}
    if kept:
        yield _figures({name: _evidence(profile) for name, (profile, _) in kept.items()})
    for name, (profile, path) in kept.items():
        yield paragraph(f"{name}: profiled, {conditions(profile)}. {path}", style="dim")
    for name, profiling in named.items():
        if refused := profiling.refused:
            yield paragraph(f"{name}: {refused.status} ({refused.reason}). {refused.sentence}")
        for sentence in profiling.lost:
            yield paragraph(f"{name}: {sentence}", style="warn")


def _evidence(kept: Profile) -> ProfiledEvidence:
    assert kept.arm.profiled is not None, "read_file() refuses others"
    return kept.arm.profiled


def _figures(columns: Mapping[str, ProfiledEvidence]) -> Block:
    rows: list[tuple[Cell, ...]] = []
    for name, metric, divisor, unit in _MAIN:
        values = [evidence.figures.get(metric) for evidence in columns.values()]
        if any(isinstance(value, float) for value in values):
            rows.append((name, *(_value(value, divisor, unit) for value in values)))
    return table(("profiled", *columns), rows, numbers=range(1, len(columns) + 1))


def _value(value: float | str | None, divisor: float, unit: str) -> str:
    if not isinstance(value, float):
        return value or ""
    scaled = value / divisor
    text = f"{scaled:,.0f}" if scaled.is_integer() or scaled >= 1e4 else f"{scaled:,.2f}"
    return f"{text} {unit}".rstrip() if unit != "%" else f"{text}%"


def conditions(kept: Profile) -> str:
    """Spells the conditions of a profile, in a few words with commas."""
    evidence = _evidence(kept)
    size = f"size {evidence.size}" if evidence.size else ""
    clocks = f"clock control {evidence.clock_control}" if evidence.clock_control else ""
    caches = f"cache control {evidence.cache_control}" if evidence.cache_control else ""
    origin = f"{kept.provenance} from {kept.short_source}" if kept.source else ""
    parts = (evidence.device, size, evidence.tool, clocks, caches, origin, kept.created)
    return one_line(", ".join(filter(None, parts)))


def mentioned(standing_profiles: Iterable[StandingProfile]) -> Iterator[Block]:
    """A line for each profile of an experiment's variants: its variant, its time, what has
    changed."""
    for one in standing_profiles:
        kept = one.profile
        time = _evidence(kept).figures.get("gpu__time_duration.sum")
        parts = [f"{time / 1e6:,.4f} ms under ncu"] if isinstance(time, float) else []
        parts.append(conditions(kept))
        yield paragraph(
            Span(kept.run, "strong"),
            f"  profile of {one.name}: {', '.join(parts)}",
            style="dim",
        )
        if one.changed:
            yield paragraph(f"taken before this changed: {', '.join(one.changed)}.", style="warn")
