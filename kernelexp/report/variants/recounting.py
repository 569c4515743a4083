"""Runs that were emulated again: a line each, and what could not be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.judge import agreement
from kernelexp.logs.recounts import Recount
from kernelexp.model.arm import Arm
from kernelexp.report.document.document import Block, paragraph
from kernelexp.services.recounting import Recounted


def render(results: Sequence[Recounted]) -> Iterator[Block]:
    if not results:
        yield paragraph("No run of these experiments is recorded here.")
    for recounted in results:
        name = f"{recounted.experiment} {recounted.run}"
        if recounted.recount is None:
            yield paragraph(f"{name}: not recounted. {recounted.why}", style="warn")
            continue
        done = (
            f"recounted ({recounted.path})"
            if recounted.is_new
            else "this emulator's counts are there"
        )
        yield paragraph(f"{name}: {done}. {_counted(recounted.recount)}")
        for arm, why in recounted.left_out.items():
            yield paragraph(f"{name}, {arm}: left out. {why}", style="warn")
        for arm, taken in recounted.recount.arms.items():
            both = Arm(emulated=taken.emulated, emulated_sass=taken.emulated_sass)
            if other := agreement.disagreement(both):
                yield paragraph(f"{name}, {arm}: {other.sentence}.", style="warn")


def _counted(recount: Recount) -> str:
    """Says on what the arms were counted, those with the same words together."""
    groups: dict[str, list[str]] = {}
    for name, arm in recount.arms.items():
        if why := arm.emulated.unsupported:
            words = f"not executed: {why}"
        elif arm.emulated_sass and not (why := arm.emulated_sass.unsupported):
            words = "PTX and SASS."
        else:
            words = f"PTX only: {why}"
        groups.setdefault(words, []).append(name)
    return " ".join(f"{', '.join(names)}: {words}" for words, names in groups.items())
