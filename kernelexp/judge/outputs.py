"""Which outputs are wrong, and by how much, as a sentence."""

from __future__ import annotations

from collections.abc import Iterable

from kernelexp.model.measurement import WORST, ArrayResult

# Beyond this many times the tolerance a figure says nothing: the wanted value is nearly 0.
TELLING = 1e4


def describe(result: ArrayResult) -> str:
    """The sentence about one output, without its full stop."""
    count, whole = result.wrong or result.elements, result.wrong in (0, result.elements)
    elements = f"element{'' if result.elements == 1 else 's'} of {result.name}"
    verb = "is" if count == 1 else "are"
    if not result.wrong:
        words = f"{count:,} {elements} {verb} right"
        if result.worst > 0:
            words += f", the worst at {result.worst:.2f} of the tolerance"
        if 0 < result.frobenius < WORST:
            words += f", relative error {result.frobenius:.1e}"
        return words
    words = f"all {count:,}" if whole and count > 1 else f"{count:,} of {result.elements:,}"
    words += f" {elements} {verb} wrong"
    if result.worst < TELLING:
        words += f", the worst by {result.worst:.3g} times the tolerance"
    return f"{words}: {result.where}" if result.where else words


def describe_wrong(results: Iterable[ArrayResult]) -> str:
    """The sentence about all outputs that are wrong; empty if none is."""
    return "; ".join(describe(result) for result in results if result.wrong)
