"""The first screen of a large project: each kernel's best variant, and what is open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.dossier.tree import Tree
from kernelexp.project import Project
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Span, paragraph, table, text_of
from kernelexp.report.log import pending
from kernelexp.report.site.front import index
from kernelexp.report.site.front.outlook import Note
from kernelexp.report.site.front.overview import overview
from kernelexp.services.kernel_logs import KernelLog

LISTED = 12
"""Experiments that are listed with all kernels' axes; of more it would fill several screens."""
_NAMED = 12
"""Ids on a line."""


def render(project: Project, logs: Sequence[KernelLog]) -> Iterator[Block]:
    """A row per kernel, then a line for each question that a list of experiments is read with."""
    answers = overview(logs, lambda _: None, pending.records_of(project.root))
    named = {f"{log.kernel}@{log.arch}" for log in logs}
    rows = (
        (
            own.kernel,
            own.time or figures.NONE,
            ", ".join(filter(None, (own.point, own.best, own.whose))),
        )
        for own in answers.outlooks
    )
    yield table(("kernel", "best now", "of"), rows, unwrapped=(0,))
    for words, notes in (
        ("Regressed or wrong", answers.regressed),
        ("Awaiting a decision", answers.waiting),
        ("Decided in all but words", answers.settled),
        ("Inconclusive", answers.unclear),
        ("Not to be relied on (kernelexp report says why)", answers.doubtful),
        (
            "Measured with an unknown problem.py, so whether it has changed since is not known",
            answers.partial,
        ),
        ("Never timed", answers.unmeasured),
    ):
        if notes:
            yield paragraph(Span(f"{words}: ", "strong"), _named(notes))
    places = [(name, arch) for name, own in project.kernels.items() for arch in own.targets]
    if bare := [place for place in places if "@".join(place) not in named]:
        tree = Tree(project.root)
        known = [index.of_kernel(project, name, arch, tree) for name, arch in bare]
        words = ", ".join(f"{one.kernel} ({text_of(one.state)})" for one in known)
        yield paragraph(Span("No experiments: ", "strong"), words)
    yield paragraph(
        "kernelexp show KERNEL lists a kernel's axes and experiments, kernelexp show EXPERIMENT "
        "its records; kernelexp report renders all of it as web pages.",
        style="dim",
    )


def _named(notes: Sequence[Note]) -> str:
    ids = list(dict.fromkeys(note.id for note in notes))
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{', '.join(ids[:_NAMED])}{more}"
