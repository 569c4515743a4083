"""A performance audit of a variant, written from the records: `compare --audit`."""

from __future__ import annotations

from pathlib import Path

from kernelexp.cli import common
from kernelexp.cli.console import print_document, print_json


def show(
    variant: str,
    against: str | None,
    project: Path,
    nvcc: str | None,
    limit: list[str] | None,
    *,
    json: bool,
    markdown: bool,
) -> None:
    """Prints it; without `against` an experiment's candidate is compared with its baseline."""
    from datetime import date

    from kernelexp.report.compared import audit as report
    from kernelexp.report.log import log as logs
    from kernelexp.services import auditing

    loaded = common.load(project)
    with common.session(loaded, nvcc, limit, emulate=True) as session:
        audited = auditing.audit(loaded, variant, against, session)
    today = date.today().isoformat()
    if json:
        print_json("audit", report.to_values(audited, today))
        return
    place = (audited.kernel, audited.arch)
    own = [one for one in logs.assemble(loaded) if (one.kernel, one.arch) == place]
    document = report.render(audited, own[0] if own else None, today)
    print_document(document, markdown)
