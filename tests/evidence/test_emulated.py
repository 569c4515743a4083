"""Emulated evidence: variants executed on the CPU, judged and kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Kx

from kernelexp import errors, examine, project
from kernelexp.evidence import emulated
from kernelexp.evidence.emulated import Emulable
from kernelexp.evidence.emulation_worker import EmulationJob, emulate
from kernelexp.judge.verdict import emulated as judge
from kernelexp.model import EmulatedEvidence, Status
from kernelexp.toolchain import Toolchain


def evidence(root: Path, tools: Toolchain, *edits: tuple[str, str]) -> EmulatedEvidence:
    """The default variant of `scale`, after edits of its source, emulated in this process."""
    source = root / "variants/scale/scale.cu"
    for text, instead in edits:
        assert text in source.read_text()
        source.write_text(source.read_text().replace(text, instead))
    variant = project.load(root).variant("scale", "sm_90a")
    (found,) = examine.judge(project.load(root), [variant], tools).values()
    assert found.ptx
    assert found.arm.build
    job = EmulationJob(
        root=str(root),
        kernel="scale",
        arch="sm_90a",
        ptx=str(found.ptx),
        axes=variant.axes,
        size="emulated",
        exports=found.arm.build.exports,
    )
    return emulate(job)


def test_a_right_kernel_is_right_and_counted(scale: Path, tools: Toolchain) -> None:
    found = evidence(scale, tools)
    assert judge(found) is None
    assert found.arrays[0].elements == 4096
    assert found.counters["sass__inst_executed_global_loads"] == 4096 // 32
    assert found.counters["memory_l2_theoretical_sectors_global"] == 2 * 4096 * 4 // 32


def test_a_wrong_element_is_found(scale: Path, tools: Toolchain) -> None:
    found = evidence(scale, tools, ("y[i] = v;", "if (i == 77) v.at[0] += 1; y[i] = v;"))
    verdict = judge(found)
    assert verdict
    assert (verdict.status, verdict.reason) == (Status.INCORRECT, "emulated_reference")
    assert "1 of 4,096 elements of y differ" in verdict.sentence


def test_an_element_that_is_never_written_is_found(scale: Path, tools: Toolchain) -> None:
    found = evidence(scale, tools, ("y[i] = v;", "if (i != 5) y[i] = v;"))
    assert found.arrays[0].wrong == 1


def test_a_race_is_found_with_its_line(scale: Path, tools: Toolchain) -> None:
    racing = "__shared__ float s[256]; s[threadIdx.x ^ 32] = v.at[0]; v.at[0] = s[threadIdx.x];"
    verdict = judge(evidence(scale, tools, ("y[i] = v;", f"{racing} y[i] = v;")))
    assert verdict
    assert verdict.status is Status.INCORRECT
    assert "scale.cu" in verdict.sentence


def test_a_hang_is_a_verdict_with_who_waits(scale: Path, tools: Toolchain) -> None:
    hanging = 'if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); y[i] = v;'
    found = evidence(scale, tools, ("y[i] = v;", hanging))
    verdict = judge(found)
    assert verdict
    assert verdict.status is Status.TIMED_OUT
    assert found.hang


def test_an_instruction_that_is_not_covered_is_named_and_is_no_verdict(
    scale: Path, tools: Toolchain
) -> None:
    odd = 'asm volatile("pmevent 1;"); y[i] = v;'
    found = evidence(scale, tools, ("y[i] = v;", odd))
    assert "pmevent" in found.unsupported
    assert judge(found) is None


def test_lines_are_named_from_the_root_of_the_project(scale: Path, tools: Toolchain) -> None:
    assert {line.file for line in evidence(scale, tools).lines} == {"variants/scale/scale.cu"}


def test_evidence_is_kept_beside_the_build(
    scale: Path, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = project.load(scale).variant("scale", "sm_90a")
    (found,) = examine.judge(project.load(scale), [variant], tools).values()
    assert found.ptx
    assert found.arm.build
    side = Emulable(variant=variant, ptx=found.ptx, exports=found.arm.build.exports)
    first = emulated.take(scale, [side])
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert emulated.take(scale, [side]) == first


def test_run_refuses_to_time_what_emulation_finds_wrong(scale: Path, kx: Kx) -> None:
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("each *= factor", "each += factor"))
    result = kx("run", "S1", "--json", cwd=scale)
    (ran,) = json.loads(result.stdout)
    assert result.exit_code == errors.WRONG_RESULT
    assert ran["record"]["candidates"][0]["verdict"]["status"] == "INCORRECT"
    assert ran["path"].endswith(".emulated.json")
