"""Findings of the gates: for people, for JUnit readers, for GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from kernelexp.judge.gates import FILE, Finding
from kernelexp.report.document import Block, Span, Style, paragraph
from kernelexp.text import printable

_STYLES: dict[str, Style] = {"worse": "bad", "failed": "broken", "wrong": "broken"}


def render(findings: Sequence[Finding]) -> Iterator[Block]:
    """Each variant that is not as the baseline has it, then the count."""
    for each in _failed(findings):
        outcome = Span(f"{each.outcome:9}", _STYLES.get(each.outcome, "warn"))
        yield paragraph(outcome, f" {each.variant}")
        yield paragraph(each.sentence, indent=10)
    held = len(findings) - len(_failed(findings))
    yield paragraph(f"{held} of {len(findings)} variants match {FILE}.")


def _failed(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.outcome != "same"]


def to_junit(findings: Sequence[Finding]) -> str:
    """A JUnit test suite: a case for each variant, a failure for each that is not the same."""
    failed = _failed(findings)
    suite = ElementTree.Element(
        "testsuite", name="kernelexp check", tests=str(len(findings)), failures=str(len(failed))
    )
    for finding in findings:
        name = printable(finding.variant)
        case = ElementTree.SubElement(suite, "testcase", classname="build", name=name)
        if finding in failed:
            failure = ElementTree.SubElement(case, "failure", type=finding.outcome)
            failure.set("message", printable(finding.sentence))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def to_annotations(findings: Sequence[Finding]) -> list[str]:
    """GitHub workflow commands: each shows its sentence on the source of the variant."""
    return [
        f"::error file={_property(finding.source or FILE)}"
        f"{f',line={finding.line}' if finding.line else ''},title=kernelexp check::"
        f"{_escape(printable(f'{finding.variant}: {finding.sentence}'))}"
        for finding in _failed(findings)
    ]


def _escape(text: str) -> str:
    """Of a workflow command's message: percent and line ends."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
