"""The gap: a measured time against the peer's and against the chip's peak, term by term."""

from __future__ import annotations

import msgspec

from kernelexp.model.arm import ProfiledEvidence
from kernelexp.project import sections
from kernelexp.project.sections.evaluate import SectionReading, evaluate
from kernelexp.project.sections.given import Run

_DURATION = "gpu__time_duration.sum"


def gap(evidence: ProfiledEvidence, run: Run) -> SectionReading:
    """The terms that the evidence gives; each of the others says what it lacks.

    Without a measured time the profile's own duration is used, and its source says so.
    """
    duration = evidence.figures.get(_DURATION)
    if run.time_ms is None and isinstance(duration, int | float):
        clocks = evidence.clock_control or "clocks that are not known"
        run = msgspec.structs.replace(
            run, time_ms=duration / 1e6, time_source=f"profiled, clock control: {clocks}"
        )
    return evaluate(sections.builtin("gap"), evidence, run)
