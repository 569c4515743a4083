"""The gates of a kernel as they are written: conditions that can be read, variants that can be."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.facts import condition, expectation, metrics
from kernelexp.model.errors import suggest
from kernelexp.model.experiment import Gate, Kernel
from kernelexp.model.text import quote
from kernelexp.project.faults import Fault, KeyPath
from kernelexp.project.points import check_point
from kernelexp.project.yamlfile import Document


def check(document: Document, name: str, kernel: Kernel) -> Iterator[Fault]:
    """Yields the faults in a kernel's gates."""
    for index, gate in enumerate(kernel.gates):
        path = ("kernels", name, "gates", index)
        yield from _check_selection(document, path, gate, kernel)
        for place, text in enumerate(gate.instructions):
            try:
                condition.parse(text)
            except ValueError as error:
                yield document.fault((*path, "instructions", place), str(error))
        for figure, text in gate.emulated.items():
            if complaint := _complaint(figure, text):
                yield document.fault((*path, "emulated", figure), complaint)
        if not (gate.instructions or gate.emulated or gate.expected or gate.measured):
            message = "this demands nothing: add instructions, emulated, expected or measured."
            yield document.fault(path, message)
        if gate.measured and gate.expected == "incorrect":
            message = "a variant that is expected to be incorrect is not timed: leave this out."
            yield document.fault((*path, "measured"), message)


def _check_selection(
    document: Document, path: KeyPath, gate: Gate, kernel: Kernel
) -> Iterator[Fault]:
    if gate.arch and gate.arch not in kernel.targets:
        hint = suggest(gate.arch, kernel.targets)
        message = f"this kernel has no target {quote(gate.arch)}{hint}."
        yield document.fault((*path, "arch"), message)
        return
    targets = [kernel.targets[gate.arch]] if gate.arch else list(kernel.targets.values())
    complaints = [list(check_point(gate.of, target.axes)) for target in targets]
    if complaints and all(complaints):
        for axis, message in complaints[0]:
            yield document.fault((*path, "of", axis), message)


def _complaint(figure: str, text: str) -> str:
    """Says what is wrong with a condition on a counter, as a sentence; empty where nothing is."""
    if metrics.kind_of(figure) not in ("emulated", "profiled") or "." in figure:
        return (
            f"{quote(figure)} is nothing that an emulation counts: name a counter of PTX, as in "
            "ptx__inst_executed, or of SASS, as in smsp__inst_executed (docs of warpsim list "
            "them)."
        )
    try:
        expectation.parse(text)
    except ValueError as error:
        return str(error)
    return ""
