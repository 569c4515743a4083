"""`kernelexp profile` with the real ncu: counters, source, and kernels that fail under it."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from gpu_kernels import needs_gpu
from support import ROOT, TOKEN, alive, wait_until

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence.profile import imports, take
from kernelexp.evidence.profile import ncu as programs
from kernelexp.evidence.profile.take import ProfileSettings
from kernelexp.facts.metrics import figures
from kernelexp.logs import profiles
from kernelexp.model import errors
from kernelexp.model.limits import Limits
from kernelexp.services import profiling
from kernelexp.system import toolchain

pytestmark = [
    needs_gpu,
    pytest.mark.skipif(shutil.which("ncu") is None, reason="ncu is not on the PATH"),
]
GEMM = "patch_embed_gemm"
SMALL = ProfileSettings(size="emulated")
FEW = ProfileSettings(size="emulated", sections=("SpeedOfLight", "LaunchStats"))
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The project's kernels in a folder of their own: profiles are not the repository's."""
    copy = tmp_path / "project"
    shutil.copytree(ROOT / "variants", copy / "variants")
    shutil.copy(ROOT / "experiments.yaml", copy)
    shutil.copytree(ROOT / "logs/runs", copy / "logs/runs")
    return copy


def run(root, kernel, settings, limits=None, **axes):
    """The outcome for one variant for sm_90a."""
    loaded = project.load(root)
    variant = loaded.variant(kernel, "sm_90a", axes)
    tools = toolchain.find(None, root / ".kernelexp")
    ncu = programs.find()
    (done,) = profiling.profile(
        loaded,
        [variant],
        Session(tools=tools, limits=limits or Limits()),
        ncu=ncu,
        settings=settings,
    )
    return done


def evidence_of(done):
    assert done.profile is not None, done.fault or done.refused
    return done.profile.arm.profiled


def replace(root, name, before, after):
    path = root / "variants" / name
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def test_a_gemm_has_counters_advice_and_source(root):
    done = run(root, GEMM, ProfileSettings())
    evidence = evidence_of(done)
    assert done.lost == ()
    assert evidence.entry.startswith(GEMM)
    assert evidence.figures["gpu__time_duration.sum"] > 1000
    assert 0 < evidence.figures["sm__throughput.avg.pct_of_peak_sustained_elapsed"] <= 100
    assert evidence.figures["launch__registers_per_thread"] == (
        done.profile.arm.build.resources.registers
    )
    assert (evidence.clock_control, evidence.cache_control, evidence.size) == (
        "none",
        "all",
        "full",
    )
    assert evidence.advice
    assert figures(done.profile.arm, "profiled")


def test_the_instructions_of_a_profile_are_those_of_the_cubin_with_their_lines(root):
    instructions = evidence_of(run(root, GEMM, SMALL)).instructions
    assert [instruction.offset for instruction in instructions] == [
        16 * i for i in range(len(instructions))
    ]
    assert any("GMMA" in instruction.sass for instruction in instructions)
    assert any(
        instruction.file.endswith("sm90a.cu") and instruction.line for instruction in instructions
    )
    assert (
        sum(instruction.figures.get("Instructions Executed", 0) for instruction in instructions) > 0
    )


def test_counters_tell_two_variants_apart(root):
    swizzled, plain = (
        evidence_of(run(root, "transpose", SMALL, **axes)) for axes in ({}, {"layout": "plain"})
    )
    assert plain.figures[CONFLICTS] > swizzled.figures[CONFLICTS]


def test_another_size_clock_and_cache_are_kept_with_the_profile(root):
    settings = msgspec.structs.replace(FEW, cache_control="none", metrics=("no__such.sum",))
    evidence = evidence_of(run(root, "transpose", settings))
    assert (evidence.cache_control, evidence.size) == ("none", "emulated")
    assert "no__such.sum" in evidence.missing
    assert evidence.instructions == ()


def test_all_sections_of_this_ncu_can_be_collected(root):
    sections = programs.sections(programs.find(), "all")
    assert set(programs.SECTIONS) < set(sections)
    evidence = evidence_of(
        run(root, "transpose", ProfileSettings(size="emulated", sections=sections))
    )
    assert len(evidence.figures) > 1000


def test_a_wrong_kernel_is_no_profile(root):
    replace(root, "transpose/transpose.cu", "= tile[", "= 1 + tile[")
    done = run(root, "transpose", FEW)
    assert done.profile is None
    assert done.exit_code == errors.WRONG_RESULT
    assert "transpose is INCORRECT" in done.fault
    assert profiles.read_all(root) == ([], [])


def test_a_kernel_that_crashes_is_no_profile(root):
    before, after = "= tile[place", "= reinterpret_cast<const uint32_t*>(uint64_t{8})[0 * place"
    replace(root, "transpose/transpose.cu", before, after)
    done = run(root, "transpose", FEW)
    assert done.exit_code == errors.WRONG_RESULT
    assert "transpose is CRASHED" in done.fault


def test_a_kernel_that_hangs_is_ended_with_all_that_ncu_started(root, monkeypatch):
    monkeypatch.setenv(TOKEN, "profile")
    replace(root, "transpose/transpose.cu", "__syncthreads();", "for (;;) __nanosleep(1000);")
    done = run(root, "transpose", FEW, Limits(profile_s=20.0))
    assert done.exit_code == errors.WRONG_RESULT
    assert "--limit profile=20m" in done.fault
    wait_until(lambda: not alive("profile"))


def test_a_variant_for_another_gpu_is_refused(root):
    loaded = project.load(root)
    variant = loaded.variant(GEMM, "sm_100a", {})
    tools = toolchain.find(None, root / ".kernelexp")
    (done,) = profiling.profile(
        loaded, [variant], Session(tools=tools), ncu=programs.find(), settings=FEW
    )
    assert done.exit_code == errors.USAGE
    assert "was built for sm_100a" in done.fault


def test_a_report_is_imported_as_its_pages_are(root, tmp_path, monkeypatch):
    kept = tmp_path / "kept.ncu-rep"
    real = programs.read_report

    def read_report(ncu, report, wanted, name=""):
        if not kept.exists():
            shutil.copy(report, kept)
        return real(ncu, report, wanted, name)

    monkeypatch.setattr(programs, "read_report", read_report)
    loaded = project.load(root)
    variant = loaded.variant("transpose", "sm_90a", {})
    tools = toolchain.find(None, root / ".kernelexp")
    arm = prepare.arm_of(loaded, variant, Session(tools=tools))
    taken = take.take(root, arm, FEW, Limits(), programs.find())
    imported = imports.read([kept])
    assert imported.evidence.figures == taken.evidence.figures
    assert imported.evidence.advice == taken.evidence.advice
    assert imported.evidence.clock_control == taken.evidence.clock_control
