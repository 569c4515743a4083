"""The compiler's figures for variants, one row each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelexp.facts import metrics
from kernelexp.model.arm import Arm, BuildEvidence
from kernelexp.report.document import arms as shared
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Span, paragraph, status, table
from warpsim.launch import plain_name

_HEADER = ("Regs", "Spills", "Stack", "Shared", "SASS", "CTAs/SM")


def render(arms: Mapping[str, Arm], verbose: bool = False) -> Iterator[Block]:
    """The variants by label, sizes in bytes; below them, why some of them have no build."""
    kernel, arms = _shorten(arms)
    if kernel:
        yield paragraph(Span(kernel, "strong"))
    rows: list[tuple[Cell, ...]] = []
    blank = [""] * (len(_HEADER) - 1)
    for label, arm in arms.items():
        if arm.has_code:
            values = (*metrics.summarize(arm).values(), metrics.read("ctas_per_sm", arm))
            rows.append((label, *map(figures.value, values)))
            rows += _others(arm.build) if arm.build else ()
        elif arm.is_built:
            rows.append((label, "no code for a GPU", *blank))
        elif arm.refused:
            rows.append((label, status(arm.refused.status), *blank))
    if not rows:
        return
    yield table(("Variant", *_HEADER), rows, numbers=range(1, len(_HEADER) + 1))
    yield from shared.warnings(arms)
    for label, arm in arms.items():
        if arm.refused:
            yield paragraph(f"{label}: {arm.refused.status}. {arm.refused.sentence}")
    yield from shared.compiler_errors(arms)
    yield from _kernels(arms)
    if verbose:
        yield from shared.all_figures(arms)


def _others(build: BuildEvidence) -> Iterator[tuple[Cell, ...]]:
    """A row for each entry that a job launches besides the one of the variant's row."""
    for symbol, other in build.others.items():
        used = other.resources
        values = (
            used.registers,
            used.spill_bytes,
            used.stack_bytes,
            used.static_smem_bytes + used.dynamic_smem_bytes,
            used.sass_bytes,
            other.occupancy.ctas_per_sm,
        )
        yield (f"  and {plain_name(symbol)}", *map(figures.value, values))


def _kernels(arms: Mapping[str, Arm]) -> Iterator[Block]:
    """The kernels of programs that have several: above, the largest and the sums of them."""
    rows: list[tuple[Cell, ...]] = [
        (
            label,
            _demangle(kernel.name),
            str(kernel.registers),
            figures.value(kernel.spill_store_bytes + kernel.spill_load_bytes),
            figures.value(kernel.stack_bytes),
            figures.value(kernel.static_smem_bytes),
            figures.value(kernel.sass_bytes),
        )
        for label, arm in arms.items()
        if arm.program and len(arm.program.kernels) > 1
        for kernel in arm.program.kernels
    ]
    if rows:
        yield table(("Variant", "Kernel", *_HEADER[:-1]), rows, numbers=range(2, len(_HEADER) + 1))


def _demangle(name: str) -> str:
    import cxxfilt

    try:
        return str(cxxfilt.demangle(name))
    except cxxfilt.InvalidName:
        return name


def _shorten(arms: Mapping[str, Arm]) -> tuple[str, Mapping[str, Arm]]:
    """The kernel that all labels begin with, if there are several, and the arms without it."""
    kernels = {label.partition(": ")[0] for label in arms}
    if len(arms) < 2 or len(kernels) > 1:
        return "", arms
    return kernels.pop(), {label.partition(": ")[2]: arm for label, arm in arms.items()}
