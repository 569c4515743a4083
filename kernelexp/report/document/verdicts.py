"""A record judged again: its samples' figures, then each verdict next to the record's own."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.report.document import measurement
from kernelexp.report.document.document import Block, Span, paragraph, status
from kernelexp.services.run.again import Rejudged


def render(rejudged: Rejudged) -> Iterator[Block]:
    yield from measurement.render(rejudged.record, verbose=True)
    for candidate, now in zip(rejudged.record.candidates, rejudged.verdicts, strict=True):
        then = candidate.verdict.status
        yield paragraph(
            Span(f"Verdict at a margin of {100 * rejudged.margin:g}%: ", "strong"),
            status(now.status),
            f" ({now.reason}). {now.sentence}",
        )
        if then is not now.status:
            yield paragraph(f"The record's own: {then}.")
    for sentence in rejudged.remarks:
        yield paragraph(sentence, style="warn")
