"""What is said beside the findings of an emulation."""

from __future__ import annotations

import msgspec
import pytest
from support import ROOT

from kernelexp.logs import records
from kernelexp.model.arm import AccessWidths, Arm, EmulatedEvidence, EmulatedFinding
from kernelexp.model.measurement import ArrayResult
from kernelexp.report.document.document import Paragraph
from kernelexp.report.variants import emulation


def evidence(*names: str, wrong: int = 0) -> EmulatedEvidence:
    return EmulatedEvidence(
        size="emulated",
        schedules=("late", "seed 1", "seed 2"),
        arrays=(ArrayResult(name="y", elements=96, wrong=wrong, worst=0.0),),
        findings=tuple(
            EmulatedFinding(name=name, sentence="y is raced for.", where="k.cu:3", count=2)
            for name in names
        ),
        widths=(AccessWidths(file="k.cu", line=3, what="shared load", ptx={32: 1}, sass={}),),
    )


@pytest.fixture
def arm() -> Arm:
    (path, *_) = sorted((ROOT / "logs/runs/T1").glob("*.json"))
    return msgspec.structs.replace(records.read_file(path).baseline, emulated_sass=None)


def said(arm: Arm, emulated: EmulatedEvidence) -> str:
    arm = msgspec.structs.replace(arm, emulated=emulated)
    blocks = [*emulation.results({"k": arm}, ["k"]), *emulation.dearest({"k": arm})]
    paragraphs = (block for block in blocks if isinstance(block, Paragraph))
    return "\n".join("".join(span.text for span in block.spans) for block in paragraphs)


def test_a_race_that_leaves_every_element_right_is_said_to(arm: Arm) -> None:
    words = "under 3 schedules, with one set of inputs, all 96 elements of y are right all the same"
    assert words in said(arm, evidence("race"))
    assert "all the same" not in said(arm, evidence("race", wrong=1))
    assert "all the same" not in said(arm, evidence("out-of-bounds"))


def test_findings_that_are_not_shown_are_counted(arm: Arm) -> None:
    assert "and 2 more findings" in said(arm, evidence(*["race"] * 7))


def test_widths_of_lines_are_left_out_of_a_wrong_variant(arm: Arm) -> None:
    assert "SASS has no shared load" not in said(arm, evidence("race"))
    assert "SASS has no shared load" in said(arm, evidence())
