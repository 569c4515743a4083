"""Mistakes planted in the attention kernel for Hopper: the emulator finds each by name."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from support import ROOT

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import jobs
from kernelexp.evidence.emulate.emulation_worker import emulate
from kernelexp.project.problem import consult
from kernelexp.system.process import isolated
from kernelexp.system.process.isolated import TimeLimit
from kernelexp.system.toolchain import Toolchain

LIMIT = TimeLimit(name="emulation", seconds=600.0)
SOURCE = "variants/flash_attention_hopper/flash_attention_hopper.cu"


class Fault(NamedTuple):
    name: str
    right: str
    wrong: str
    found: str


# fmt: off
FAULTS = (
    Fault(
        "no proxy fence before the store", "  kx::fence_proxy_async_shared_cta();\n", "",
        "missing-proxy-fence",
    ),
    Fault(
        "no wait for Q", "kx::wait_for_copies(cta.q_full(q_ring.stage), q_ring.phase);", "",
        "uninitialised-read",
    ),
    Fault(
        "V released before its MMAs are complete", "wgmma_wait_group<0>(o);\n    release",
        "wgmma_wait_group<1>(o);\n    release", "overwritten-in-use",
    ),
    Fault(
        "one warpgroup's arrivals for two", "cta.free_k(stage), 4 * Config::WARPGROUPS",
        "cta.free_k(stage), 4", "overwritten-in-use",
    ),
    Fault(
        "an arrival too many expected", "cta.free_v(stage), 4 * Config::WARPGROUPS",
        "cta.free_v(stage), 4 * Config::WARPGROUPS + 1", "hang",
    ),
    Fault(
        "the first warpgroup's turn never comes",
        "warpgroup == Config::WARPGROUPS - 1) {\n      kx::bar_arrive(1",
        "warpgroup == Config::WARPGROUPS) {\n      kx::bar_arrive(1", "hang",
    ),
)
# fmt: on
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_found_by_its_name(fault: Fault, tmp_path: Path, tools: Toolchain) -> None:
    shutil.copytree(ROOT / "variants", tmp_path / "variants")
    shutil.copy(ROOT / "experiments.yaml", tmp_path)
    text = (tmp_path / SOURCE).read_text()
    assert fault.right in text
    (tmp_path / SOURCE).write_text(text.replace(fault.right, fault.wrong))
    loaded = project.load(tmp_path)
    variant = loaded.variant(
        "flash_attention_hopper", "sm_90a", {"block_n": 64, "ctas": "persistent"}
    )
    arm = prepare.arm_of(loaded, variant, Session(tools=tools))
    assert arm.build, arm.build_log
    output = emulate(
        jobs.emulation(tmp_path, arm, "emulated", consult.limit(), LIMIT),
        isolated.Watch(sys.stderr),
    )
    assert fault.found in {finding.name for finding in output.evidence.findings}
