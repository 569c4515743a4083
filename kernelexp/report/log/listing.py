"""The page of `kernelexp show`: kernels with their axes, experiments with their standing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kernelexp.dossier.standing import (
    Standings,
    before_change,
    judged_expectations,
    rewritten,
    written_later,
)
from kernelexp.dossier.tree import Tree, same_code_words
from kernelexp.facts import metrics
from kernelexp.judge import consistency
from kernelexp.logs import decisions
from kernelexp.logs.decisions import Decision
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import Axis, Target, spell, spell_point
from kernelexp.model.record import Record, own_axes
from kernelexp.project import Project
from kernelexp.report.document import figures
from kernelexp.report.document.document import (
    Block,
    Cell,
    Heading,
    Span,
    filled,
    paragraph,
    table,
    text_of,
)
from kernelexp.report.log import decisions as report
from kernelexp.report.log import logbook
from kernelexp.report.runs import page
from kernelexp.report.variants import expectations
from kernelexp.report.variants.emulation import is_right
from kernelexp.services import kernel_logs

RECORDS_SHOWN = 10


def render(
    project: Project,
    standings: Mapping[str, Standings],
    decided: Sequence[Decision] = (),
    wanted: str = "",
) -> Iterator[Block]:
    """Each kernel, or those that `wanted` names, with its axes, its experiments and the steps of
    its history, and the variant that was accepted last."""
    if not project.kernels:
        yield paragraph("No kernels yet: kernelexp adopt FILE.cu adds one.")
    for kernel_name, arch in _places(project):
        if wanted not in ("", kernel_name, f"{kernel_name}@{arch}"):
            continue
        kernel, own = project.kernels[kernel_name], _of(project, standings, kernel_name, arch)
        words = f"  {kernel.title}{' (a program)' if kernel.program else ''}"
        yield paragraph(Span(f"{kernel_name}@{arch}", "strong"), words)
        if kernel.targets[arch].axes:
            yield _axes(kernel.targets[arch])
        elif not own:
            yield paragraph("")
        if own:
            yield _experiments(own)
        if best := decisions.best(decided, kernel_name, arch):
            yield paragraph(f"Current best: {report.best(project, best)}.")


def _places(project: Project) -> Iterator[tuple[str, str]]:
    for name, kernel in project.kernels.items():
        yield from ((name, arch) for arch in kernel.targets)


def _of(
    project: Project, standings: Mapping[str, Standings], kernel: str, arch: str
) -> dict[str, Standings]:
    return {
        name: item
        for name, item in standings.items()
        if (project.experiments[name].kernel, project.experiments[name].arch) == (kernel, arch)
    }


def _axes(target: Target) -> Block:
    return table(
        ("axis", "values", ""),
        ((name, _values(axis), Span(axis.about, "dim")) for name, axis in target.axes.items()),
    )


def _experiments(standings: Mapping[str, Standings]) -> Block:
    """A row per experiment; with people's decisions where there are any."""
    header: tuple[str, ...] = ("experiment", "title", "verdict")
    rows: list[tuple[Cell, ...]] = [
        (name, item.experiment.title, _verdict(item)) for name, item in standings.items()
    ]
    if any(one.decision for entry in standings.values() for one in entry.candidates):
        header = (*header, report.HEADER)
        decided = map(_decisions, standings.values())
        rows = [(*row, word) for row, word in zip(rows, decided, strict=True)]
    return table(header, rows, unwrapped=(0, 2))


def _decisions(standings: Standings) -> Cell:
    """The current decisions, each once, in the order of the candidates."""
    return _stacked(filter(None, (report.word(one.decision) for one in standings.candidates)))


def _verdict(standings: Standings) -> Cell:
    """One word for an experiment; several candidates may have several."""
    words = [logbook.verdict(standing) for standing in standings.candidates]
    if {*words} == {logbook.NOT_RUN} and standings.former:
        return Span(logbook.CHANGED, "warn")
    return _stacked(words)


def _stacked(cells: Iterable[Cell]) -> Cell:
    """Each once; in its style if there is one."""
    known = list(dict.fromkeys(cells))
    return known[0] if len(known) == 1 else "\n".join(map(text_of, known))


def _values(axis: Axis) -> str:
    """The allowed values; the default has an asterisk."""
    return ", ".join(
        f"{spell(value)}*"
        if value == axis.default and type(value) is type(axis.default)
        else spell(value)
        for value in axis.values
    )


_REWRITTEN = {
    "reworded": "The hypothesis was reworded after that record; its figures are the same.",
    "edited": "The hypothesis was edited after that record, which has it as it was measured: "
    "--verbose.",
}


def experiment(
    name: str,
    standings: Standings,
    records: Sequence[Record],
    tree: Tree,
    unread: int = 0,
    every: bool = True,
    verbose: bool = False,
) -> Iterator[Block]:
    """Yields what is written about an experiment, where it stands, and its records, latest last: a
    summary of each, or its page if `verbose`. `unread` counts the earlier ones that are not among
    `records`."""
    written = standings.experiment
    yield Heading(f"{name}  {written.title}")
    for label, words in kernel_logs.by_card(standings, records).items():
        yield paragraph(f"{label}: {words}.", style="warn")
    changes = "\n".join(f"- {change}" for change in written.changes)
    reasons = (written.why.strip(), *(d.why for c in standings.candidates for d in c.decisions))
    texts = (
        ("kernel", f"{written.kernel}@{written.arch}"),
        ("baseline", spell_point(written.baseline)),
        ("size" if written.size else "sizes", ", ".join(written.timed_sizes)),
        ("hypothesis", written.hypothesis.strip()),
        ("changes", changes),
        ("why", "\n".join(dict.fromkeys(filter(None, reasons)))),
        ("decision", written.decision),
        ("decided", "\n".join(logbook.decided(standings))),
        ("notes", written.notes),
    )
    yield table(("", ""), ((Span(label, "strong"), text) for label, text in texts if text))
    yield _standing(standings)
    yield from _sources(standings)
    yield from expectations.render(judged_expectations(name, standings))
    if written_later(standings):
        yield paragraph("The expectation was written after that record.", style="dim")
    if since := rewritten(standings):
        yield paragraph(_REWRITTEN[since], style="warn" if since == "edited" else "dim")
    for standing, point in standings.points:
        if standing.changed:
            yield paragraph(f"{spell_point(point)}: {before_change(standing)}.", style="warn")
        elif standing.rewritten:
            words = same_code_words(standing.rewritten)
            yield paragraph(f"{spell_point(point)}: {words}.", style="dim")
    if not records:
        yield paragraph(f"No records yet: kernelexp run {name}")
        return
    if [record.provenance for record in records] == ["published"] and not verbose:
        yield _rows(records[0])
        return
    shown = records if every else records[-RECORDS_SHOWN:]
    if hidden := unread + len(records) - len(shown):
        yield paragraph(f"{hidden:,} earlier records are not shown (--all).", style="dim")
    timed = {record.size for record in records if record.measurement}
    for record in shown:
        if verbose:
            yield from page.render(record, verbose=True)
        else:
            yield from _record(record, tree, is_of_sizes=len(timed) > 1)


def _standing(standings: Standings) -> Block:
    rows: list[tuple[Cell, ...]] = []
    for standing, point in standings.points:
        arm = standing.current
        was = standing.record.baseline.published if standing.record else None
        change = figures.effect(standing.effect)
        change = change or figures.published_change(was, arm.published if arm else None)
        rows.append((spell_point(point), figures.cell_of(arm), change, logbook.verdict(standing)))
    head = figures.head_of(candidate.arm for candidate in standings.candidates if candidate.arm)
    return table(("candidate", head, "change", "verdict"), rows, numbers=(1, 2), unwrapped=(3,))


def _sources(standings: Standings) -> Iterator[Block]:
    """Names the records that speak, and those that do not list all that they were made from."""
    if source := _from(standings):
        yield paragraph(source, style="dim")
    records = standings.by_run.items()
    for what in (consistency.PROBLEM, consistency.HEADERS):
        silent = [run for run, record in records if what in consistency.unrecorded(record)]
        if silent:
            words = f"did not record {what}: a change since is not noticed."
            yield paragraph(f"{', '.join(silent)} {words}", style="warn")


def _from(standings: Standings) -> str:
    """Names the records of the table's rows, and their size where it is not the usual one."""
    runs = dict.fromkeys(map(_named, standings.by_run.values()))
    if all(run.startswith(_PUBLISHED) for run in runs):
        return "; ".join(runs)
    return f"from {', '.join(runs)}"


_PUBLISHED = "Published"


def _named(record: Record) -> str:
    """A run by its name; of what others published, by whom."""
    if record.provenance == "published":
        return f"{_PUBLISHED}: {record.source}" if record.source else _PUBLISHED
    return f"{record.run}{figures.standing_conditions(record)}"


def _record(record: Record, tree: Tree, is_of_sizes: bool = False) -> Iterator[Block]:
    """Its conditions and its arms; with its size where others have another."""
    place = record.device or (record.machine.cpu if record.machine else "")
    conditions = figures.conditions(record)
    if is_of_sizes and record.measurement and "size " not in conditions:
        conditions = f", size {record.size}{conditions}"
    place += conditions
    facts = [record.created, place, f"nvcc {record.compiler}" if record.compiler else ""]
    if record.git:
        facts.append(f"git {record.git.commit[:10]}{', dirty' if record.git.dirty else ''}")
    if record.overrides:
        facts.append(f"--set {spell_point(record.overrides)}")
    yield paragraph(Span(record.run, "strong"), "  " + ", ".join(filter(None, facts)), style="dim")
    yield _rows(record)
    for candidate in record.candidates:
        if doubts := tree.doubts(record, candidate):
            point = spell_point(own_axes(record.baseline, candidate.arm))
            yield paragraph(f"Can't be relied on for {point}: {', '.join(doubts)}.", style="warn")


def _rows(record: Record) -> Block:
    verdicts = {name: page.verdict_of(record, one) for name, one in record.judged.items()}
    rows: list[tuple[Cell, ...]] = [
        (
            "baseline" if arm is record.baseline else spell_point(own_axes(record.baseline, arm)),
            *_figures(arm, record.baseline),
            verdicts.get(name, ""),
        )
        for name, arm in record.by_name.items()
    ]
    header = ("", figures.head_of(record.arms), *_HEADER)
    shown = filled(rows)
    return table(header, rows, range(1, len(header) - 2), (shown[-1],), shown)


_HEADER = ("TFLOPS", "change", "registers", "smem, B", "emulated", "verdict")


def _figures(arm: Arm, base: Arm) -> tuple[str, ...]:
    """The cells between label and verdict; empty where there is no such evidence.

    The rate is for published results that give no time: 80 columns are few.
    """
    time = figures.cell_of(arm)
    summary = metrics.summarize(arm) if arm.has_code else {}
    cells = (
        time,
        figures.tflops_of(arm) if time == figures.NONE else "",
        figures.ratio(arm.effect)
        or figures.published_change(base.published, arm.published if arm is not base else None),
        str(summary["registers"]) if summary else figures.registers_of(arm),
        figures.value(summary.get("smem_bytes")),
    )
    emulated = "right" if is_right(arm) else "wrong"
    return (
        *("" if cell == figures.NONE else cell for cell in cells),
        emulated if arm.emulated and arm.emulated.arrays else "",
    )
