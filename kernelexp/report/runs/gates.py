"""Findings of `kernelexp check`: as text, as JUnit XML, as annotations of GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from kernelexp.model.text import printable
from kernelexp.report.document.document import Block, Heading, Span, Style, paragraph, table
from kernelexp.services.check.checking import Checked, TimeSpent
from kernelexp.services.check.gates import FILE, PASSED, UPDATE, GateFinding

NOTEWORTHY_S = 1.0
"""Less is not spoken of."""
_STYLES: dict[str, Style] = {
    "worse": "bad",
    "missed": "bad",
    "failed": "broken",
    "wrong": "broken",
    "skipped": "dim",
}


def render(checked: Checked) -> Iterator[Block]:
    """Each variant that is not as the baseline has it and each gate that is not met, then the
    counts."""
    for finding in checked.findings:
        if finding.outcome != "same":
            outcome = Span(f"{finding.outcome:9}", _STYLES.get(finding.outcome, "warn"))
            yield paragraph(outcome, f" {finding.variant}")
            yield paragraph(_sentence(finding), indent=10)
    yield paragraph(_counts(checked))


def _sentence(one: GateFinding) -> str:
    return f"{one.gate}: {one.sentence}" if one.gate else one.sentence


def _counts(checked: Checked) -> str:
    """3 of 3 variants match build-baseline.json; 2 of 2 gates are met."""
    own = [
        finding
        for finding in checked.findings
        if not finding.gate and finding.outcome != "compiler"
    ]
    held = sum(one.outcome == "same" for one in own)
    words = f"{held} of {len(own)} variants match {FILE}"
    gated = [
        finding for finding in checked.findings if finding.gate and finding.outcome != "skipped"
    ]
    if gated:
        met = sum(one.outcome == "same" for one in gated)
        words += f"; {met} of {len(gated)} gates are met"
    if checked.since:
        words += f"; {checked.left_out} unchanged since {checked.since}"
    return f"{words}."


def say_time(spent: TimeSpent) -> str:
    """Says where the time went, with the compilers' share; empty if nearly everything was
    cached."""
    if spent.building + spent.executing < NOTEWORTHY_S:
        return ""
    of = f" (nvcc, ptxas and cuobjdump {spent.compilers:.0f} s, of all cores)"
    building = f"building {spent.building:.0f} s{of if spent.compilers >= 1 else ''}"
    return f"{building}, executing {spent.executing:.0f} s"


def table_of(checked: Checked) -> Iterator[Block]:
    """A pull request's comment: a row for each gate or variant that is not as it should be."""
    yield Heading("kernelexp check", 3)
    rows = [
        (finding.outcome, finding.variant, _sentence(finding))
        for finding in checked.findings
        if finding.outcome != "same"
    ]
    if rows:
        yield table(("Outcome", "Variant", "Finding"), rows)
    yield paragraph(_counts(checked))


def accepted(changed: Sequence[GateFinding]) -> Iterator[Block]:
    """Yields the findings against the baseline before that a new one accepts."""
    for finding in changed:
        sentence = finding.sentence.replace(f"; lock it in with `{UPDATE}`", "")
        sentence = sentence.replace(f"; run `{UPDATE}`", "")
        yield paragraph(Span("accepts", "strong"), f"   {finding.variant}")
        yield paragraph(sentence, indent=10)


def _failed(findings: Sequence[GateFinding]) -> list[GateFinding]:
    return [finding for finding in findings if finding.outcome not in PASSED]


def to_junit(findings: Sequence[GateFinding]) -> str:
    """A JUnit test suite: a case for each variant, a failure for each that is not the same."""
    failed = _failed(findings)
    suite = ElementTree.Element(
        "testsuite",
        name="kernelexp check",
        tests=str(len(findings)),
        failures=str(len(failed)),
        skipped=str(sum(one.outcome == "skipped" for one in findings)),
    )
    for finding in findings:
        name = printable(" / ".join(filter(None, (finding.variant, finding.gate))))
        kind = "gate" if finding.gate else "build"
        case = ElementTree.SubElement(suite, "testcase", classname=kind, name=name)
        if finding.outcome == "skipped":
            skipped = ElementTree.SubElement(case, "skipped")
            skipped.set("message", printable(finding.sentence))
        if finding in failed:
            failure = ElementTree.SubElement(case, "failure", type=finding.outcome)
            failure.set("message", printable(finding.sentence))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def to_annotations(findings: Sequence[GateFinding]) -> list[str]:
    """GitHub workflow commands: each shows its sentence on the source of the variant."""
    lines = []
    for one in _failed(findings):
        file = _escape(one.source or FILE).replace(":", "%3A").replace(",", "%2C")
        line = f",line={one.line}" if one.line else ""
        words = _escape(printable(f"{one.variant}: {_sentence(one)}"))
        lines.append(f"::error file={file}{line},title=kernelexp check::{words}")
    return lines


def _escape(text: str) -> str:
    """Escapes a workflow command's message: percent and line ends."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
