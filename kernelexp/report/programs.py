"""Output of `kernelexp exec`: a program's mistakes and kernels, as text, JUnit XML and SARIF."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from kernelexp.model.errors import join
from kernelexp.model.text import printable, shorten_template
from kernelexp.report.document.document import Block, Span, Style, paragraph, table
from kernelexp.services.execution import Executed, Mistake
from warpsim.launch import full_name
from warpsim.machine.core.findings import FORMAL, NAMES
from warpsim.runtime.reports import MISTAKES, REMARKS

_STYLES: dict[str, Style] = {"finding": "broken", "warning": "warn", "note": "dim"}
SHOWN = 12
"""Kernels in the table of a program."""


def render(executed: Executed, verbose: bool = False) -> Iterator[Block]:
    """Its mistakes, then its kernels; notes only with `verbose`."""
    for mistake in executed.mistakes:
        if verbose or mistake.level != "note":
            yield paragraph(
                Span(f"{mistake.level}: {mistake.name}", _STYLES[mistake.level]), _place(mistake)
            )
            yield paragraph(mistake.sentence, indent=2)
    if verbose:
        rows = (
            (
                shorten_template(full_name(one.kernel)),
                f"{one.launches:,}",
                f"{one.thread_instructions:,}",
                f"{one.seconds:.2f}",
            )
            for one in executed.kernels[:SHOWN]
        )
        header = ("kernel", "launches", "thread-instructions", "seconds")
        yield table(header, rows, numbers=(1, 2, 3))
    if executed.computed:
        yield paragraph(
            f"Computed on the CPU, not by NVIDIA's kernels: {join(executed.computed)}.",
            style="limit",
        )
    if executed.returncode < 0:
        name = signal.Signals(-executed.returncode).name
        yield paragraph(f"{executed.program} was ended by {name}.")
    if executed.refused:
        yield paragraph(Span("not executed", "limit"), f": {executed.refused}")
    yield paragraph(_summary(executed, verbose), style="dim")


def _place(mistake: Mistake) -> str:
    parts = [f"in {shorten_template(mistake.kernel)}"] if mistake.kernel else []
    parts += [f"at {mistake.where}"] if mistake.where else []
    parts += [f"inlined at {mistake.inlined}"] if mistake.inlined else []
    if mistake.launch:
        parts += [f"launch {mistake.launch}"]
        parts += [f"stream {mistake.stream}"] if mistake.stream else []
        parts += [f"launched at {mistake.call}"] if mistake.call else []
    if mistake.launches > 1:
        times = "launches" if mistake.launch else "times"
        parts += [f"{mistake.launches:,} {times} in all"]
    return f" {', '.join(parts)}" if parts else ""


def _summary(executed: Executed, verbose: bool) -> str:
    counts = {
        level: sum(mistake.level == level for mistake in executed.mistakes)
        for level in ("finding", "warning", "note")
    }
    words = [
        f"{count} {level}{'s' * (count != 1)}"
        for level, count in counts.items()
        if count or level == "finding"
    ]
    hidden = " (--verbose shows them)" if counts["note"] and not verbose else ""
    count = executed.thread_instructions
    emulated = sum(kernel.seconds for kernel in executed.kernels)
    speed = _spelled(int(float(f"{count / emulated:.3g}"))) if emulated > 0.1 else ""
    rate = f", {speed} per second" if speed else ""
    launches = f"{executed.launches:,} launch{'es' * (executed.launches != 1)}"
    judged = sum(kernel.judged for kernel in executed.kernels)
    if judged < executed.launches:
        launches += f", {judged:,} of them checked"
    return (
        f"{executed.program} on {executed.device}: {', '.join(words)}{hidden}; "
        f"{launches}, {_spelled(count)} thread-instructions{rate}, "
        f"{executed.seconds:.1f} s."
    )


def to_junit(executed: Executed) -> str:
    """A test suite: a case for each kernel, a failure for each finding in it, and one case for the
    program's own calls."""
    kernels = [full_name(kernel.kernel) for kernel in executed.kernels]
    names = [*dict.fromkeys(kernels), ""]
    suite = ElementTree.Element(
        "testsuite",
        name=f"kernelexp exec {printable(executed.program)}",
        tests=str(len(names)),
        failures=str(sum(any(x.kernel == name for x in executed.findings) for name in names)),
    )
    for name in names:
        kind, label = "kernel" if name else "calls", printable(name or executed.program)
        case = ElementTree.SubElement(suite, "testcase", classname=kind, name=label)
        for finding in executed.findings:
            if finding.kernel == name:
                failure = ElementTree.SubElement(case, "failure", type=finding.name)
                failure.set("message", printable(f"{finding.where}: {finding.sentence}"))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS = {"finding": "error", "warning": "warning", "note": "note"}


def to_sarif(executed: Executed) -> dict[str, Any]:
    """Static Analysis Results Interchange Format 2.1.0, which code hosts show beside the lines."""
    from kernelexp import __version__

    texts = {**NAMES, **FORMAL, **MISTAKES, **REMARKS}
    used = sorted({mistake.name for mistake in executed.mistakes})
    rules = [{"id": name, "shortDescription": {"text": texts.get(name, name)}} for name in used]
    driver = {"name": "kernelexp", "version": __version__, "rules": rules}
    results = [_sarif_result(mistake) for mistake in executed.mistakes]
    return {
        "$schema": _SARIF,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _sarif_result(mistake: Mistake) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": mistake.name,
        "level": _SARIF_LEVELS[mistake.level],
        "message": {"text": f"{mistake.sentence}{_place(mistake)}"},
    }
    if mistake.file:
        path = Path(mistake.file)
        here = Path.cwd()
        name = path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()
        place = {"artifactLocation": {"uri": name}, "region": {"startLine": max(1, mistake.line)}}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _spelled(count: int) -> str:
    return f"{count:,}" if count < 1_000_000 else f"{count / 1e6:,.1f} million"
