"""An audit of one variant against another as a document; conclusions are left blank for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from kernelexp.dossier.dossiers import Dossier
from kernelexp.facts import metrics
from kernelexp.judge.expectations import command
from kernelexp.judge.limits import accounting
from kernelexp.judge.ranking import ComparedGroup
from kernelexp.model.experiment import as_argument, spell_point
from kernelexp.report.compared import differences
from kernelexp.report.document import figures
from kernelexp.report.document.document import (
    Block,
    Cell,
    Heading,
    Items,
    Span,
    Style,
    paragraph,
    table,
)
from kernelexp.report.log import decisions, logbook
from kernelexp.services.auditing import FLOOR, STALLS, TABLES, Audit, is_part
from kernelexp.services.kernel_logs import KernelLog

BLANK = "TO WRITE"
"""What marks a blank; `grep` finds those that are left."""


def render(audit: Audit, log: KernelLog | None) -> Iterator[Block]:
    """Renders an audit for a terminal or as markdown."""
    audited = audit.audited
    yield Heading(f"Performance audit — {audited.date}")
    yield paragraph(f"Kernel: {audited.kernel}@{audited.arch} ({audited.after.label})")
    yield paragraph(f"Compared with: {audited.before.label}")
    yield paragraph(f"Problem: {audit.problem}.")
    for side in (audited.before, audited.after):
        if side.sources:
            yield paragraph(f"{side.label}: {'; '.join(side.sources)}", style="dim")
        if changed := ", ".join(side.changed_since):
            yield paragraph(f"{side.label}: taken before this changed: {changed}.", style="warn")
    for warning in audit.warnings:
        yield paragraph(f"warning: {warning}", style="warn")
    yield from _summary(audit)
    yield from _history(log)
    yield from _change(audit)
    yield from _smem(audit)
    yield from _build(audit)
    yield from _counters(audit)
    yield from _findings(audit)
    yield Heading("Conclusions", 2)
    yield _blank("why the variant is faster or slower, with the figures above that show it")
    yield _blank("what limits it now, and what to try next")


def _blank(subject: str) -> Block:
    return paragraph(Span(f"[{BLANK}: {subject}]", "warn"))


def _no_counters(audit: Audit) -> Block:
    """Names the command that supplies the counters of the sides that have none."""
    sides = [side for side in (audit.before, audit.after) if side.arm.profiled is None]
    if not sides:
        return paragraph("No evidence: the profiles have none of these counters.")
    whose = " and ".join(side.point for side in sides)
    names = (
        [audit.audited.experiment]
        if audit.has_both
        else [as_argument(side.label) for side in sides]
    )
    how = command("profiled", audit.after.arm, " ".join(names))
    return paragraph(f"No evidence: no profile of {whose}. {_how(how)}")


def _no_time(audit: Audit) -> Block:
    """Says why there is no comparison of times, and what supplies it."""
    measured = [side.arm.measured is not None for side in (audit.before, audit.after)]
    why = "one time is measured, the other is not" if any(measured) else "nothing was timed"
    if audit.has_both:
        how = _how(command("measured", audit.after.arm, audit.audited.experiment))
    else:
        how = (
            "An experiment with both variants (`kernelexp new`) and `kernelexp run` of it supply "
            "it, on a machine with the GPU."
        )
    return paragraph(f"No evidence: {why}. {how}")


def _how(words: str) -> str:
    subject, _, where = words.partition(", ")
    return f"`{subject}`, {where}, supplies it."


def _summary(audit: Audit) -> Iterator[Block]:
    yield Heading("Performance summary", 2)
    rows: list[tuple[Cell, ...]] = [
        (
            f"{name}: {side.point}",
            figures.time_of(side.arm),
            figures.tflops_of(side.arm),
            _whose(side),
        )
        for name, side in (("This variant", audit.after), ("Compared with", audit.before))
    ]
    for peer in audit.audited.peers:
        rate = figures.NONE if peer.tflops is None else f"{peer.tflops:.0f}"
        rows.append((peer.name, figures.time_ms(peer.time_ms), rate, peer.notes))
    yield table(("Kernel", "Time (ms)", "TFLOPS", "Notes"), rows, numbers=(1, 2))
    if audit.audited.time_ratio is None:
        yield _no_time(audit)
        return
    yield paragraph(
        Span(_faster(audit.audited.time_ratio), "strong"),
        f" than {audit.before.point} ({audit.audited.time_ratio_how}).",
    )
    for name, ratio in _of_peers(audit):
        yield paragraph(Span(_faster(ratio), "strong"), f" than {name}.")


def _faster(ratio: float) -> str:
    return f"{abs(100 * (ratio - 1)):.1f}% {'faster' if ratio < 1 else 'slower'}"


def _of_peers(audit: Audit) -> Iterator[tuple[str, float]]:
    """The variant's time over that of each peer, both of one kind."""
    taken = audit.after.arm
    for peer in audit.audited.peers:
        is_published = peer.notes.startswith("published")
        if is_published and taken.published and taken.published.time_ms:
            yield peer.name, taken.published.time_ms / peer.time_ms
        elif not is_published and taken.measured and taken.measured.time_us:
            yield peer.name, taken.measured.time_us / 1000 / peer.time_ms


def _whose(side: Dossier) -> str:
    if side.arm.measured:
        return f"measured, {side.arm.measured.device}"
    return "published" if side.arm.published else "not timed"


def _history(log: KernelLog | None) -> Iterator[Block]:
    if log and log.history:
        yield Heading("Optimization history", 2)
        yield logbook.history(log)
        arms = (item.arm for step in log.history.values() for item in step.candidates)
        if any(arm and arm.measured for arm in arms):
            yield paragraph(
                "Each time is of the step's own run; a change compares two variants of one run.",
                style="dim",
            )


def _change(audit: Audit) -> Iterator[Block]:
    """Problem and solution, as far as the experiment says them."""
    title = audit.standings.experiment.title if audit.standings else ""
    yield Heading(f"Change: {title}" if title else "Change", 2)
    departs = {
        axis: value
        for axis, value in audit.after.variant.axes.items()
        if audit.before.variant.axes.get(axis) != value
    }
    yield paragraph(f"Axes: {spell_point(departs)}.")
    yield Heading("Problem", 3)
    yield _blank("what was wrong before, with its figures")
    written = audit.standings.experiment if audit.standings else None
    if written:
        yield paragraph(f"Hypothesis ({audit.audited.experiment}): {written.hypothesis}")
    yield Heading("Solution", 3)
    if written and written.changes:
        yield Items(tuple(written.changes))
    else:
        yield _blank("what was changed")
    if written and written.why:
        yield paragraph(f"Why: {written.why}")
    if audit.standings:
        standing = audit.standings.candidates[audit.number - 1]
        result = [decisions.sentence(one) for one in standing.decisions]
        verdict = standing.verdict.status.value if standing.verdict else logbook.NOT_RUN
        yield paragraph(f"Verdict: {'; '.join((verdict, *result))}.")


def _smem(audit: Audit) -> Iterator[Block]:
    yield Heading("SMEM budget", 2)
    yield paragraph("Of this project's own source, as it is built now.", style="dim")
    rows = []
    for name, count in audit.audited.smem_budget.items():
        style: Style = "strong" if name in ("total", "headroom") else ""
        rows.append((Span(name, style), Span(f"{count:,}", style)))
    yield table(("Component", "Bytes"), rows, numbers=(1,))
    build = audit.after.arm.build
    if build and build.resources.dynamic_smem_bytes and not any(map(is_part, build.exports)):
        yield paragraph(
            "The parts are not known: export them in the source, as in "
            "KX_EXPORT(smem_stages_bytes, ...).",
            style="dim",
        )


_BUILD = {
    "built": (
        ("Registers/thread", "launch__registers_per_thread"),
        ("Spill stores, B", "spill_store_bytes"),
        ("Spill loads, B", "spill_load_bytes"),
        ("Stack, B", "stack_bytes"),
        ("SMEM (dynamic), B", "launch__shared_mem_per_block_dynamic"),
        ("SASS, B", "sass_bytes"),
    ),
    "published": (
        ("Registers/thread", "registers"),
        ("Spills, B", "spill_bytes"),
        ("Stack, B", "stack_bytes"),
    ),
}


def _build(audit: Audit) -> Iterator[Block]:
    """Figures of our own build apart from published ones."""
    yield Heading("Build stats (ptxas)", 2)
    for kind, entries in _BUILD.items():
        rows = []
        for label, name in entries:
            before, after = (
                metrics.read(name, side.arm)
                if kind == "built"
                else getattr(side.arm.published, name, None)
                for side in (audit.before, audit.after)
            )
            if before is not None or after is not None:
                rows.append((label, figures.value(before), figures.value(after)))
        if rows:
            yield table((f"Metric ({kind})", "Before", "After"), rows, numbers=(1, 2))


_TITLES = {
    STALLS: "Warp stall breakdown",
    "memory throughput": "Memory throughput",
    "access efficiency": "Access efficiency",
}


def _counters(audit: Audit) -> Iterator[Block]:
    for name in TABLES:
        yield Heading(_TITLES[name], 2)
        yield from _tables(audit, [group for group in audit.audited.groups if group.group == name])
        if name == "access efficiency":
            yield from _accesses(audit)


_ACCESSES = (
    ("global {}: requests", "requests"),
    ("  sectors per request", "sectors_per_request"),
    ("  fill of the lines, %", "line_fill_percent"),
)


def _accesses(audit: Audit) -> Iterator[Block]:
    """Sectors per request and how full lines are, of loads and of stores, as emulated."""
    sides = (audit.before, audit.after)
    ops: tuple[Literal["loads", "stores"], ...] = ("loads", "stores")
    rows = [
        (label.format(op), *(_figure(one, name) for one in pair))
        for op in ops
        if any(pair := [accounting.of(side.arm, op) for side in sides])
        for label, name in _ACCESSES
    ]
    if rows:
        size = next((taken.size for side in sides if (taken := side.arm.executed)), "")
        header = (f"access efficiency (emulated, size {size})", "before", "after")
        yield table(header, rows, numbers=(1, 2))


def _figure(one: accounting.AccessEfficiency | None, name: str) -> str:
    value = getattr(one, name) if one else None
    return figures.value(round(value, 2) if isinstance(value, float) else value)


def _findings(audit: Audit) -> Iterator[Block]:
    yield Heading(f"Other findings (over {100 * FLOOR:g}% relative change)", 2)
    yield from _tables(audit, [g for g in audit.audited.groups if g.group not in TABLES])


def _tables(audit: Audit, groups: Sequence[ComparedGroup]) -> Iterator[Block]:
    """A table for each kind of evidence; where no hardware counted, what supplies that."""
    yield from (differences.table_of(group, names=False) for group in groups)
    if all(group.kind == "emulated" for group in groups):
        yield _no_counters(audit)
