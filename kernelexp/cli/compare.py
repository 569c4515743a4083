"""kernelexp compare: what changed between two variants, records or profiles; and audits of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import refuse_two_forms
from kernelexp.cli.completion import variant_names
from kernelexp.cli.console import output
from kernelexp.cli.modes import refuse_other_modes
from kernelexp.cli.options import HERE, argument, option
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from pathlib import Path

    from kernelexp.project import Project
    from kernelexp.report.document.document import Block
    from kernelexp.services.auditing import Audit
    from kernelexp.services.comparisons import Compared, ComparisonOptions

_SUBJECT = (
    "An experiment's id (its latest run), a run's name, a record's file, a variant "
    "KERNEL@ARCH:axis=value, a CSV page or .ncu-rep report of ncu, or a profile's run; F3:baseline "
    "or F3:2 for an arm, FILE:2 for a launch."
)


WITHOUT_OTHERS = "Without --records or --audit"
WITH_AUDIT = "With --audit"


@app.command()
def compare(
    ctx: typer.Context,
    before: Annotated[str, argument("A", _SUBJECT, completion=variant_names)],
    after: Annotated[
        str | None,
        argument(
            "[B]",
            "The same. Without it, A's baseline is compared with its candidate, or with each.",
            completion=variant_names,
        ),
    ] = None,
    of_records: Annotated[
        bool,
        option("--records", "Compare two runs in full: axes, flags, compiler, sources, figures."),
    ] = False,
    as_audit: Annotated[
        bool,
        option("--audit", "Write a performance audit of B, or of A's candidate, from the records."),
    ] = False,
    floor: Annotated[
        float,
        option("--floor PERCENT", "Smallest change to show.", WITHOUT_OTHERS, min=0.0, max=1000.0),
    ] = 5.0,
    every: Annotated[
        bool, option("--all", "Show counters of every group, even shares near 0.", WITHOUT_OTHERS)
    ] = False,
    metric: Annotated[
        str | None, option("--metric REGEX", "Show these metrics, changed or not.", WITHOUT_OTHERS)
    ] = None,
    emulate: Annotated[
        bool, option("--emulate", "Emulate variants that have no stored emulation.", WITHOUT_OTHERS)
    ] = False,
    against: Annotated[str | None, option("--against", mode=WITH_AUDIT, hidden=True)] = None,
    markdown: options.Markdown = False,
    json: options.Json = False,
    limit: options.Limit = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Compare two variants, records or profiles: what changed most.

    --audit writes a document about B: times with peers, history, problem and solution, shared
    memory, build, stalls, throughput, access efficiency and what else changed. Conclusions are left
    blank, marked TO WRITE; a section without evidence names the command that supplies it.

    For example:
        kernelexp compare F3
        kernelexp compare baseline.csv after.csv
        kernelexp compare cefc59d c32ab7a --audit --markdown > audit.md
    """
    refuse_two_forms(json, markdown)
    if of_records and as_audit:
        raise UsageError("--records and --audit do not go together: choose one.")
    if as_audit:
        from kernelexp.services import auditing

        refuse_other_modes(ctx, WITH_AUDIT)
        one, other = (before, against) if after is None else (after, before)
        loaded = common.load(project)
        with common.session(loaded, nvcc, limit, emulate=True) as session:
            audit = auditing.audit(loaded, one, other, session)
        output("audit", audit.audited, _audit(loaded, audit), json, markdown)
    elif of_records:
        refuse_other_modes(ctx)
        _records(before, after, project, json, markdown)
    else:
        refuse_other_modes(ctx, WITHOUT_OTHERS)
        from kernelexp.report.compared import differences
        from kernelexp.services import comparisons

        options = comparisons.ComparisonOptions(
            floor=floor / 100, every=every, metric=_pattern(metric)
        )
        compared = _compare(before, after, options, emulate, nvcc, limit, project)
        document = (
            block
            for item in compared
            for block in differences.render(item, markdown, whole=metric is not None)
        )
        output("compare", compared if len(compared) > 1 else compared[0], document, json, markdown)


def _audit(loaded: Project, audit: Audit) -> Iterator[Block]:
    """An audit as a document, with the history of its kernel."""
    from kernelexp.report.compared import audit as report
    from kernelexp.services import kernel_logs

    place = (audit.audited.kernel, audit.audited.arch)
    own = [one for one in kernel_logs.assemble(loaded) if (one.kernel, one.arch) == place]
    yield from report.render(audit, own[0] if own else None)


def _records(before: str, after: str | None, start: Path, json: bool, markdown: bool) -> None:
    """Two runs side by side."""
    from kernelexp.logs import records
    from kernelexp.report.compared import differences
    from kernelexp.services import record_differences

    if after is None:
        raise UsageError("--records compares two runs: name both.")
    loaded = common.load(start, sources=False)
    one, other = (
        records.read_file(records.find(loaded.root, loaded.id_of(text))) for text in (before, after)
    )
    compared = record_differences.compare(loaded.root, one, other)
    output("diff", compared.differing, differences.of_records(compared), json, markdown)


def _compare(
    before: str,
    after: str | None,
    options: ComparisonOptions,
    emulate: bool,
    nvcc: str | None,
    limit: list[str] | None,
    start: Path,
) -> list[Compared]:
    """One, or where a record alone is named, one for each of its candidates."""
    from kernelexp.dossier import subjects
    from kernelexp.services import comparisons

    texts = (before,) if after is None else (before, after)
    project = None if all(map(subjects.is_file, texts)) else common.load(start, sources=False)
    pairs = [(before, after)] if after is not None else subjects.pairs(project, before)
    if project is not None and any(subjects.is_variant(project, text) for text in pairs[0]):
        project = common.load(start)
        with common.session(project, nvcc, limit, emulate=emulate) as session:
            sides = [subjects.find_both(project, *pair, session) for pair in pairs]
    else:
        sides = [subjects.find_both(project, *pair) for pair in pairs]
    return [comparisons.compare(*pair, options) for pair in sides]


def _pattern(text: str | None) -> re.Pattern[str] | None:
    import re

    try:
        return re.compile(text, re.IGNORECASE) if text is not None else None
    except re.error as error:
        raise UsageError(f"--metric {text!r} is not a regular expression: {error}.") from None
