"""Variants to their instructions, as a gate asks for them."""

from __future__ import annotations

from pathlib import Path

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.judge.expectations import instruction_expectations
from kernelexp.model.limits import Limits
from kernelexp.services import inspection
from kernelexp.system.live import Step
from kernelexp.system.toolchain import Toolchain


def test_a_gate_judges_an_arm_by_the_counts_that_the_page_shows(
    tools: Toolchain, scale: Path
) -> None:
    loaded = project.load(scale)
    variant = loaded.variant("scale", "sm_90a", {"width": 4})
    arm = prepare.arm_of(loaded, variant, Session(tools=tools))
    counts = inspection.counts(scale, arm)
    (result,), faults = inspection.look(
        loaded, [variant], Session(tools=tools, limits=Limits(), emulate=False)
    )
    assert not faults
    assert counts == result.counts()
    (judged,) = instruction_expectations(counts, ["STG.128 == 1"])
    assert judged.result == "met"


def test_another_small_size_that_is_executed_is_progress(tools: Toolchain, scale: Path) -> None:
    problem = scale / "variants/scale/problem.py"
    small = '"emulated": {"count": 4096}'
    assert small in problem.read_text()
    problem.write_text(problem.read_text().replace(small, f'{small}, "more": {{"count": 8192}}'))
    loaded, steps = project.load(scale), list[Step]()
    session = Session(tools=tools, limits=Limits(), emulate=True, on_progress=steps.append)
    inspection.look(loaded, [loaded.variant("scale", "sm_90a")], session)
    assert "SASS of scale at size 'more'" in [step.now for step in steps]


def test_a_vectorised_access_is_one_in_ptx_and_in_sass(tools: Toolchain, scale: Path) -> None:
    loaded = project.load(scale)
    variants = [loaded.variant("scale", "sm_90a", {"width": width}) for width in (1, 2, 4)]
    result, _ = inspection.look(
        loaded, variants, Session(tools=tools, limits=Limits(), emulate=False)
    )
    loads = [
        [
            (item.bits, count)
            for item, count in (one.ptx_accesses or {}).items()
            if "load" in item.kind
        ]
        for one in result
    ]
    assert loads == [[(32, 1)], [(64, 1)], [(128, 1)]]
