"""People's decisions: in a word for a table, in a sentence for a page."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.logs.decisions import Decision
from kernelexp.model.arm import Status
from kernelexp.model.experiment import spell_point
from kernelexp.project import Project
from kernelexp.project.revisions import is_commit_name
from kernelexp.report.document.document import Block, Cell, Span, Style, paragraph
from kernelexp.services.deciding import Made

HEADER = "decision"
_STYLES: dict[str, Style] = {"accepted": "good", "rejected": "bad", "replaced": "dim"}


def word(decision: Decision | None) -> Cell:
    """`accepted`, `replaced by F13`; empty where nothing was decided."""
    if decision is None:
        return ""
    by = f" by {decision.by}" if decision.by else ""
    return Span(f"{decision.word}{by}", _STYLES[decision.word])


def sentence(decision: Decision) -> str:
    """A decision in full: `accepted on 2026-02-27 by A. Smith at abf04a5: simpler code`."""
    by = f" by {decision.by}" if decision.by else ""
    parts = [f"{decision.word}{by} on {decision.created[:10]}"]
    if decision.who:
        parts.append(f"({decision.who})" if by else f"by {decision.who}")
    if decision.commit:
        parts.append(f"at {short(decision.commit)}")
    note = f": {decision.note}" if decision.note else ""
    return " ".join(parts) + note


def short(commit: str) -> str:
    return commit[:10] if is_commit_name(commit) else commit


def best(project: Project, decision: Decision) -> str:
    """Names the variant that is the current best of a kernel, and the decision that says so."""
    target = project.kernels[decision.kernel].targets[decision.arch]
    departs = {
        name: value
        for name, value in decision.axes.items()
        if name not in target.axes or value != target.axes[name].default
    }
    at = f" at {short(decision.commit)}" if decision.commit else ""
    return f"{spell_point(departs)} ({decision.experiment}, accepted{at})"


def made(project: Project, done: Made) -> Iterator[Block]:
    """Yields the decisions just made, beside the verdict, and the best now."""
    for decision in done.decisions:
        several = len(project.experiment(decision.experiment).candidates) > 1
        departs = {k: v for k, v in decision.axes.items() if decision.baseline.get(k) != v}
        which = f" ({spell_point(departs)})" if several else ""
        result = f"{decision.experiment}{which}: {sentence(decision)}"
        yield paragraph(result if result.endswith((".", "!", "?")) else f"{result}.")
        if decision.why:
            yield paragraph(f"Why: {decision.why}", indent=2)
        if decision.name in done.stood:
            yield paragraph("This stands already: nothing was written.")
        verdict = f"The verdict is {decision.verdict} (run {decision.run})"
        if not decision.verdict:
            yield paragraph("No record speaks for it as it is now.", style="dim")
        elif decision.word == "accepted" and decision.verdict != Status.IMPROVED:
            yield paragraph(f"{verdict}: no measurement says that it is faster.", style="warn")
        else:
            yield paragraph(f"{verdict}.", style="dim")
    last, current = done.decisions[-1], done.best
    where = f"{last.kernel}@{last.arch}"
    if current is None:
        yield paragraph(f"No variant of {where} is accepted.")
    else:
        yield paragraph(f"Current best of {where}: {best(project, current)}.")
    for words in filter(None, (done.slower, done.waiting)):
        yield paragraph(words, style="warn")
