"""kernelexp opportunities: what could be gained in a variant, ranked."""

from __future__ import annotations

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_variants
from kernelexp.cli.console import output
from kernelexp.cli.options import (
    HERE,
    EmulateOption,
    JsonOption,
    LimitOption,
    MarkdownOption,
    NvccOption,
    ProjectOption,
    SetOption,
    VariantArgument,
)
from kernelexp.model.errors import UsageError


@app.command()
def opportunities(
    variant: VariantArgument,
    set_: SetOption = None,
    emulate: EmulateOption = True,
    json: JsonOption = False,
    markdown: MarkdownOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Rank what could be gained in a variant: bank conflicts, occupancy, tail waves.

    Each estimate says how it was computed. If the variant was profiled, ncu's own rules are used,
    and those known to be false are named.

    For example:
        kernelexp opportunities transpose@sm_90a:layout=plain
    """
    from kernelexp.dossier import examine
    from kernelexp.judge import bounds
    from kernelexp.judge import opportunities as rules
    from kernelexp.report.variants import opportunities as report

    loaded = common.load(project)
    wanted = parse_variants(loaded, [variant], set_)
    if len(wanted) != 1:
        raise UsageError(
            f"{variant} is an experiment: name one variant, or see kernelexp explain {variant}."
        )
    with common.session(loaded, nvcc, limit, emulate=emulate) as session:
        dossier = examine.variant(loaded, wanted[0], session)
    case = dossier.case
    found, suppressed = rules.find(case)
    uses = bounds.uses(case)
    values = report.to_values(dossier, uses, found, suppressed)
    document = report.render(dossier, uses, found, suppressed)
    output("opportunities", values, document, json, markdown)
