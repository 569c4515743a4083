"""Possible gains of a variant: a ranked table, then how each estimate was computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.dossier.dossiers import Dossier
from kernelexp.facts import widths
from kernelexp.judge import consistency
from kernelexp.judge.limits.accounting import Account
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.opportunity import Opportunity
from kernelexp.model.arm import AccessWidths
from kernelexp.model.text import one_line
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Heading, Span, grouped, paragraph, table
from kernelexp.report.variants import bounds
from kernelexp.services.explaining import Offered
from warpsim.launch import plain_name

_TAKEN = {"run": "profiled", "imported": "profiled elsewhere", "published": "profiled by others"}


_LIMITS = 3
_LEAST = 0.1
"""Percent below which an estimate is as good as none."""


def render(dossier: Dossier, offered: Offered, verbose: bool = False) -> Iterator[Block]:
    """Largest estimate first, and the nearest limits; with `verbose` all of them, where shares are
    from, why rules of ncu's are left out, and what profile and emulation count."""
    opportunities = offered.opportunities
    yield Heading(f"{offered.variant}: opportunities")
    yield paragraph(offered.conclusion)
    yield paragraph(_evidence(dossier), style="dim")
    words = widths.summarize(dossier.case.arm.emulated)
    if words and not dossier.case.arm.counted:
        yield paragraph(f"Emulated: {words}.", style="warn")
    for taken, changed in (("Measured", dossier.changed), ("Profiled", dossier.profile_changed)):
        if changed:
            yield paragraph(f"{taken} before these changed: {', '.join(changed)}.", style="warn")
    arm = dossier.case.arm
    if arm.build and arm.profiled and (doubt := consistency.other_build(arm.build, arm.profiled)):
        yield paragraph(f"The profile is of another build: {doubt}.", style="warn")
    if opportunities:
        rows = (
            (f"{number}.", _estimate(item), item.issue, item.kind)
            for number, item in enumerate(opportunities, 1)
        )
        yield table(("", "about", "issue", "kind"), rows, numbers=(0, 1), unwrapped=(3,))
    else:
        yield paragraph("No rule found anything.")
    for number, opportunity in enumerate(opportunities, 1):
        yield _details(number, opportunity, dossier)
    yield from _hidden(opportunities)
    suppressed = offered.suppressed if verbose else ()
    if suppressed:
        yield paragraph(Span("Rules that do not apply to this launch:", "strong"))
    for warning in suppressed:
        estimate = warning.speedup_percent
        result = f" (ncu: {estimate:.4g}%)" if estimate is not None else ""
        yield paragraph(f"{warning.rule}{result}: {warning.why}.", indent=2)
    yield from bounds.render({"": offered.uses}, verbose, most=_LIMITS)
    if verbose:
        yield from _accounts(dossier.case, offered.accounts)
    if any(item.percent is not None for item in opportunities):
        yield paragraph(
            "About: the share of the time that would be saved, until the next limit holds the "
            "kernel; <=: at most. The estimates do not add up.",
            style="dim",
        )


def _accounts(case: Case, accounts: Sequence[Account]) -> Iterator[Block]:
    """Whether the profile counts what the work needs, and what a tile has of it."""
    if not accounts:
        return
    rows = [
        (
            item.label,
            figures.value(item.profiled),
            figures.value(item.emulated),
            ""
            if item.profiled == item.emulated
            else figures.percent(item.profiled / item.emulated),
            "" if item.per_tile is None else figures.value(item.per_tile),
        )
        for item in accounts
    ]
    yield table(("count", "profiled", "emulated", "", "per tile"), rows, numbers=(1, 2, 3, 4))
    yield paragraph(f"Per tile: of {case.tiles:,} tiles, on {case.ctas:,} CTAs.", style="dim")


def _evidence(dossier: Dossier) -> str:
    case = dossier.case
    parts = ["built"] if case.arm.build else []
    if case.counters:
        isa = "SASS" if case.counts_sass else "PTX"
        how = f"for {case.of_size} {case.scaled}"
        if case.ratios_of:
            why = case.ratios_why or "tiles() in problem.py would scale the counts"
            how = f"at size '{case.ratios_of}' ({why})"
        parts.append(f"emulated, counted on {isa}, {how}")
    if case.arm.measured:
        parts.append(f"measured, {figures.timed(case.arm)} on {case.arm.measured.device}")
    elif case.arm.published:
        parts.append(f"published, {figures.time_of(case.arm)} ms")
    if case.arm.profiled and dossier.profile:
        device = one_line(case.arm.profiled.device) or "a device that is not named"
        words = f"{_TAKEN[dossier.profile.provenance]} on {device} ({dossier.profile.run}"
        words += ", elsewhere than timed: only its counts are used" * case.profiled_elsewhere
        parts.append(f"{words})")
    build = case.arm.build
    of = ""
    if build and build.others:
        of = f" Grid, registers and shared memory are those of {plain_name(one_line(build.entry))}"
        of += f", one of {1 + len(build.others)} kernels that it launches."
    return f"Evidence: {'; '.join(parts) or 'none'}.{of}"


def _estimate(opportunity: Opportunity) -> str:
    if opportunity.percent is None:
        return "—"
    if opportunity.percent < _LEAST:
        return f"< {_LEAST}%"
    return f"{'<= ' if opportunity.at_most else ''}{opportunity.percent:.1f}%"


def _other_widths(dossier: Dossier, opportunity: Opportunity) -> list[AccessWidths]:
    """Returns differing access widths of the line that an emulated opportunity names."""
    file, _, line = opportunity.line.rpartition(":")
    if opportunity.kind != "emulated" or not file or dossier.case.counts_sass:
        return []
    return widths.of_line(dossier.case.arm.emulated, file, int(line))


def _details(number: int, opportunity: Opportunity, dossier: Dossier) -> Block:
    parts = [opportunity.reckoning] if opportunity.reckoning else []
    if opportunity.line:
        part = f"{opportunity.part:.0%}" if opportunity.part else "the largest part"
        parts.append(f"{part} of it at {opportunity.line}")
    if opportunity.also:
        parts.append(f"ncu on the same cause: {', '.join(opportunity.also)}")
    parts += map(widths.spell, _other_widths(dossier, opportunity))
    return paragraph(Span(f"{number}. {opportunity.rule}: ", "strong"), "; ".join(parts) + ".")


def _hidden(opportunities: Sequence[Opportunity]) -> Iterator[Block]:
    """Says why costs may not show in the time, each reason once."""
    reasons = grouped(
        (opportunity.hidden, str(number))
        for number, opportunity in enumerate(opportunities, 1)
        if opportunity.hidden
    )
    for reason, numbers in reasons.items():
        yield paragraph(f"The cost of {' and '.join(numbers)} may be hidden: {reason}.")
