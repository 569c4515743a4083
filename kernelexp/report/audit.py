"""An audit of one variant against another, as a document; what people have to say is blank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kernelexp.auditing import FLOOR, STALLS, TABLES, Audit, Side, smem_limit
from kernelexp.judge.expectations import command
from kernelexp.judge.ranking import Group
from kernelexp.model import spell_point
from kernelexp.report import decisions, differences, figures, logbook
from kernelexp.report.document import Block, Cell, Heading, Items, Span, paragraph, table
from kernelexp.report.log import KernelLog

BLANK = "TO WRITE"
"""What marks a blank; `grep` finds those that are left."""


def to_values(found: Audit, date: str) -> dict[str, Any]:
    """Plain values, for JSON."""
    return {
        "date": date,
        "kernel": found.kernel,
        "arch": found.arch,
        "experiment": found.name,
        "before": _side_values(found.before),
        "after": _side_values(found.after),
        "time_ratio": found.ratio,
        "interleaved": found.interleaved,
        "peers": found.peers,
        "smem_budget": dict(_budget(found.after)),
        "groups": differences.group_values((*found.tables, *found.findings)),
    }


def _side_values(side: Side) -> dict[str, Any]:
    return {
        "label": side.label,
        "axes": side.variant.axes,
        "measured": side.arm.measured,
        "published": side.arm.published,
        "resources": side.arm.build.resources if side.arm.build else None,
        "sources": side.subject.about,
        "changed_since": side.changed,
    }


def render(found: Audit, log: KernelLog | None, date: str) -> Iterator[Block]:
    """For a terminal or as markdown."""
    yield Heading(f"Performance audit — {date}")
    yield paragraph(f"Kernel: {found.kernel}@{found.arch} ({found.after.label})")
    yield paragraph(f"Compared with: {found.before.label}")
    yield paragraph(f"Problem: {found.problem}.")
    for side in (found.before, found.after):
        if side.subject.about:
            yield paragraph(f"{side.label}: {'; '.join(side.subject.about)}", style="dim")
        if side.changed:
            changed = ", ".join(side.changed)
            yield paragraph(f"{side.label}: taken before this changed: {changed}.", style="warn")
    for warning in found.warnings:
        yield paragraph(f"warning: {warning}", style="warn")
    yield from _summary(found)
    yield from _history(log)
    yield from _change(found)
    yield from _smem(found)
    yield from _build(found)
    yield from _counters(found)
    yield from _findings(found)
    yield Heading("Conclusions", 2)
    yield _blank("why the variant is faster or slower, with the figures above that show it")
    yield _blank("what limits it now, and what to try next")


def _blank(what: str) -> Block:
    return paragraph(Span(f"[{BLANK}: {what}]", "warn"))


def _missing(found: Audit, kind: str) -> Block:
    """Which command supplies what a section has no evidence for."""
    asked = found.name or f"{found.kernel}@{found.arch}:..."
    if kind == "profiled":
        sides = [side for side in (found.before, found.after) if side.arm.profiled is None]
        whose = " and ".join(side.label for side in sides)
        words = f"no profile of {whose}" if sides else "the profiles have none of these counters"
        return paragraph(
            f"No evidence: {words}. {_how(command('profiled', found.after.arm, asked))}"
        )
    return paragraph(
        f"No evidence: nothing was timed. {_how(command('measured', found.after.arm, asked))}"
    )


def _how(words: str) -> str:
    return f"`{words.split(',')[0]}`{words.partition(',')[1]}{words.partition(',')[2]} supplies it."


def _summary(found: Audit) -> Iterator[Block]:
    yield Heading("Performance summary", 2)
    sides = (("This variant", found.after), ("Compared with", found.before))
    rows: list[tuple[Cell, ...]] = [
        (f"{name}: {side.label}", *_rates(side), _whose(side)) for name, side in sides
    ]
    for peer in found.peers:
        time = figures.time_ms(peer.time_us / 1000)
        rows.append((peer.name, time, figures.tflops(peer.flops, peer.time_us), "same run"))
    yield table(("Kernel", "Time (ms)", "TFLOPS", "Notes"), rows, numbers=(1, 2))
    if found.ratio is not None:
        how = "interleaved in one run" if found.interleaved else "from separate runs"
        how = "as published" if found.after.arm.published else how
        faster = "faster" if found.ratio < 1 else "slower"
        yield paragraph(
            Span(f"{abs(100 * (found.ratio - 1)):.1f}% {faster}", "strong"),
            f" than {found.before.label} ({how}).",
        )
    else:
        yield _missing(found, "measured")


def _rates(side: Side) -> tuple[str, str]:
    return figures.time_of(side.arm), figures.tflops_of(side.arm)


def _whose(side: Side) -> str:
    if side.arm.measured:
        return f"measured, {side.arm.measured.device}"
    return "published" if side.arm.published else "not timed"


def _history(log: KernelLog | None) -> Iterator[Block]:
    if log and log.history:
        yield Heading("Optimization history", 2)
        yield logbook.history(log)


def _change(found: Audit) -> Iterator[Block]:
    """Problem and solution, as far as the experiment says them."""
    title = found.standings.experiment.title if found.standings else ""
    yield Heading(f"Change: {title}" if title else "Change", 2)
    departs = {
        axis: value
        for axis, value in found.after.variant.axes.items()
        if found.before.variant.axes.get(axis) != value
    }
    yield paragraph(f"Axes: {spell_point(departs)}.")
    yield Heading("Problem", 3)
    yield _blank("what was wrong before, with its figures")
    if found.standings:
        yield paragraph(f"Hypothesis ({found.name}): {found.standings.experiment.hypothesis}")
    yield Heading("Solution", 3)
    if found.standings and found.standings.experiment.changes:
        yield Items(tuple(found.standings.experiment.changes))
    else:
        yield _blank("what was changed")
    if found.standings and found.standings.experiment.why:
        yield paragraph(f"Why: {found.standings.experiment.why}")
    if found.standings:
        each = found.standings.candidates[found.number - 1]
        said = [decisions.sentence(one) for one in each.decisions]
        verdict = each.verdict.status.value if each.verdict else logbook.NOT_RUN
        yield paragraph(f"Verdict: {'; '.join((verdict, *said))}.")


def _budget(side: Side) -> Iterator[tuple[str, int]]:
    """Shared memory by its parts: what the source exports as smem_<part>_bytes, the total, the
    limit, and what is left of it."""
    if side.arm.build is None:
        return
    made = side.arm.build.resources
    parts = {
        name.removeprefix("smem_").removesuffix("_bytes"): count
        for name, count in side.arm.build.exports.items()
        if name.startswith("smem_") and name.endswith("_bytes")
    }
    yield from parts.items()
    rest = made.dynamic_smem_bytes - sum(parts.values())
    if rest:
        yield ("dynamic, other" if parts else "dynamic"), rest
    if made.static_smem_bytes:
        yield "static", made.static_smem_bytes
    total = made.dynamic_smem_bytes + made.static_smem_bytes
    limit = smem_limit(side.arm.arch)
    yield from (("total", total), ("limit of a CTA", limit), ("headroom", limit - total))


def _smem(found: Audit) -> Iterator[Block]:
    yield Heading("SMEM budget", 2)
    rows = []
    for name, count in _budget(found.after):
        strong = name in ("total", "headroom")
        cells = (name, f"{count:,}")
        rows.append(tuple(Span(each, "strong") if strong else each for each in cells))
    yield table(("Component", "Bytes"), rows, numbers=(1,))
    if not any(name.startswith("smem_") for name in _exports(found.after)):
        yield paragraph(
            "The parts are not known: export them in the source, as in "
            "KX_EXPORT(smem_stages_bytes, ...).",
            style="dim",
        )


def _exports(side: Side) -> Sequence[str]:
    return list(side.arm.build.exports) if side.arm.build else []


_BUILD = (
    ("Registers/thread", "launch__registers_per_thread"),
    ("Registers/thread (published)", "published_registers"),
    ("Spill stores, B", "spill_store_bytes"),
    ("Spill loads, B", "spill_load_bytes"),
    ("Stack, B", "stack_bytes"),
    ("SMEM (dynamic), B", "launch__shared_mem_per_block_dynamic"),
    ("SASS, B", "sass_bytes"),
)


def _build(found: Audit) -> Iterator[Block]:
    from kernelexp import metrics

    yield Heading("Build stats (ptxas)", 2)
    rows = []
    for label, name in _BUILD:
        before, after = (metrics.read(name, side.arm) for side in (found.before, found.after))
        if before is not None or after is not None:
            rows.append((label, figures.value(before), figures.value(after)))
    yield table(("Metric", "Before", "After"), rows, numbers=(1, 2))


_TITLES = {
    STALLS: "Warp stall breakdown",
    "memory throughput": "Memory throughput",
    "access efficiency": "Access efficiency",
}


def _counters(found: Audit) -> Iterator[Block]:
    for name in TABLES:
        yield Heading(_TITLES[name], 2)
        groups = [group for group in found.tables if group.name == name and group.findings]
        yield from map(_table, groups)
        if not groups:
            yield _missing(found, "profiled")


def _findings(found: Audit) -> Iterator[Block]:
    yield Heading(f"Other findings (over {100 * FLOOR:g}% relative change)", 2)
    yield from map(_table, found.findings)
    if not found.findings:
        yield _missing(found, "profiled")


def _table(group: Group) -> Block:
    return differences.table_of(group, names=False)
