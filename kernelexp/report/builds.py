"""What the compiler made of variants, one row each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelexp import metrics
from kernelexp.arm import Arm
from kernelexp.report import arms as shared
from kernelexp.report import figures
from kernelexp.report.document import Block, Cell, Span, paragraph, status, table

_HEADER = ("Regs", "Spills", "Stack", "Shared", "SASS", "CTAs/SM")


def render(arms: Mapping[str, Arm], verbose: bool = False) -> Iterator[Block]:
    """The variants by label, sizes in bytes; below them, why some of them have no build."""
    kernel, arms = _shorten(arms)
    if kernel:
        yield paragraph(Span(kernel, "strong"))
    rows: list[tuple[Cell, ...]] = []
    for label, arm in arms.items():
        if arm.is_built:
            values = (*metrics.summarize(arm).values(), metrics.read("ctas_per_sm", arm))
            rows.append((label, *map(figures.value, values)))
        elif arm.refused:
            rows.append((label, status(arm.refused.status), *[""] * (len(_HEADER) - 1)))
    yield table(("Variant", *_HEADER), rows, numbers=range(1, len(_HEADER) + 1))
    for label, arm in arms.items():
        yield from shared.warnings(label, arm)
        if arm.refused:
            yield paragraph(f"{label}: {arm.refused.status}. {arm.refused.sentence}")
    yield from shared.compiler_errors(arms)
    if verbose:
        yield from shared.all_figures(list(arms), list(arms.values()))


def _shorten(arms: Mapping[str, Arm]) -> tuple[str, Mapping[str, Arm]]:
    """The kernel that all labels begin with, if there are several, and the arms without it."""
    kernels = {label.partition(": ")[0] for label in arms}
    if len(arms) == 1 or len(kernels) > 1:
        return "", arms
    return kernels.pop(), {label.partition(": ")[2]: arm for label, arm in arms.items()}
