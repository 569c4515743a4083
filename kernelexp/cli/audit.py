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
    from kernelexp.report.compared import audit as report
    from kernelexp.services import auditing, kernel_logs

    loaded = common.load(project)
    with common.session(loaded, nvcc, limit, emulate=True) as session:
        audit = auditing.audit(loaded, variant, against, session)
    audited = audit.audited
    if json:
        print_json("audit", audited)
        return
    place = (audited.kernel, audited.arch)
    own = [one for one in kernel_logs.assemble(loaded) if (one.kernel, one.arch) == place]
    print_document(report.render(audit, own[0] if own else None), markdown)
