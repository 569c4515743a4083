"""Output of `kernelexp evaluate`: the stages of a solution, its times, and what to change."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.report.document.document import Block, Heading, Span, Style, paragraph, status, table
from kernelexp.services.tasks.assessment import Assessment, CaseAnswer, CaseTime

_STYLES: dict[str, Style] = {"failed": "broken", "passed": "good", "skipped": "dim"}


def render(assessed: Assessment, verbose: bool = False) -> Iterator[Block]:
    """The stages, what to change, and what was not checked."""
    yield Heading(f"{assessed.solution} for {assessed.task} ({assessed.format})")
    stages = (
        (
            stage.name,
            Span(stage.outcome, _STYLES[stage.outcome]),
            f"{stage.seconds:.1f}" if stage.seconds >= 0.05 else "",
            stage.reason,
        )
        for stage in assessed.stages
    )
    yield table(("stage", "outcome", "seconds", "reason"), stages, numbers=(2,))
    if verbose and assessed.cases:
        yield table(("sizes", "weight", "right"), map(_row, assessed.cases), numbers=(1,))
    if verbose and assessed.kernels:
        yield table(
            ("kernel", "launches", "thread-instructions"),
            ((k.name, f"{k.launches:,}", f"{k.thread_instructions:,}") for k in assessed.kernels),
            numbers=(1, 2),
        )
    if assessed.times:
        yield table(
            ("sizes", "us", "reference", "nothing", "times as fast", "interval", "floor"),
            map(_times, assessed.times),
            numbers=(1, 2, 3, 4, 6),
        )
        yield paragraph(
            f"Microseconds of a call on {assessed.device}, host code included and what a call of "
            "nothing takes subtracted.",
            style="dim",
        )
    if assessed.modelled and not assessed.modelled.refused:
        call = assessed.modelled
        yield paragraph(
            f"Modelled, not measured: a call with {call.case} takes {call.time_us:.3g} us on an "
            f"{call.chip}, {len(call.kernels)} of its own launches without host code.",
            style="dim",
        )
    yield paragraph(status(assessed.status), f": {assessed.sentence}")
    for feedback in assessed.feedback:
        where = f"{feedback.file}:{feedback.line}: " if feedback.line else ""
        if feedback.sentence not in assessed.sentence:
            yield paragraph(Span(f"{feedback.name}: ", "warn"), f"{where}{feedback.sentence}")
    for sentence in assessed.not_checked:
        yield paragraph(f"Not checked: {sentence[0].lower()}{sentence[1:]}", style="dim")


def _times(time: CaseTime) -> tuple[str, ...]:
    return (
        time.name,
        f"{time.time_us:,.2f}",
        f"{time.reference_us:,.2f}",
        f"{time.overhead_us:,.2f}",
        f"{1 / time.ratio:.3f}",
        f"{1 / time.high:.3f} to {1 / max(time.low, 1e-9):.3f}",
        f"{time.floor_us:,.2f}" if time.floor_us else "",
    )


def _row(case: CaseAnswer) -> tuple[str, str, str]:
    smaller = ", ".join(f"{name} {own} -> {now}" for name, (own, now) in case.reduced.items())
    name = f"{case.name} ({smaller})" if smaller else case.name
    return name, f"{case.weight:g}", "yes" if case.right else "no"
