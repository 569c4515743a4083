"""Mistakes planted in patch_embed_gemm for Hopper: the emulator finds each by name."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import jobs
from kernelexp.evidence.emulate.emulation_worker import emulate
from kernelexp.model.experiment import Point
from kernelexp.project.problem import consult
from kernelexp.system.process import isolated
from kernelexp.system.process.isolated import TimeLimit
from kernelexp.system.toolchain import Toolchain

ROOT = Path(__file__).parents[2]
LIMIT = TimeLimit(name="emulation", seconds=600.0)
RESIDENT: Point = {}
IN_REGISTERS: Point = {
    "operand_b": "registers",
    "combined": "resident",
    "order": "linear",
    "prefetch": 0,
    "boxes": 1,
    "stages": 15,
}
KERNEL = "patch_embed_gemm_sm90a.cu"
STAGES, TILES = "stages.cuh", "tiles_sm90a.cuh"
MULTIPLY = "multiply_sm90a.cuh"
EPILOGUE = "epilogue_sm90a.cuh"
TRANSPOSED = "epilogue_transposed_sm90a.cuh"
FENCE = "kx::fence_proxy_async_shared_cta();"
READ = "kx::cp_async_bulk_wait_group_read<Config::BOXES - 1>();"
READ_LATER = "kx::cp_async_bulk_wait_group_read<Config::BOXES>();"
GROUP = "kx::wgmma_wait_group<Config::IN_FLIGHT>();"
GROUP_LATER = "kx::wgmma_wait_group<Config::IN_FLIGHT + 1>();"


class Fault(NamedTuple):
    name: str
    point: Point
    file: str
    right: str
    wrong: str
    found: str


# fmt: off
FAULTS = (
    Fault(
        "a stage released before its MMAs are complete",
        RESIDENT, MULTIPLY, GROUP, GROUP_LATER, "overwritten-in-use",
    ),
    Fault(
        "no wait for the copies",
        RESIDENT, MULTIPLY, "kx::wait_for_copies(cta.full(ring.stage), ring.phase);", "",
        "uninitialised-read",
    ),
    Fault(
        "no wait for the turn, so that a warpgroup is a ring ahead",
        RESIDENT, KERNEL, "kx::wait_for_phase(cta.turn(warpgroup), turn_phase);", "",
        "overwritten-in-use",
    ),
    Fault(
        "B not waited for",
        RESIDENT, KERNEL, "kx::wait_for_copies(cta.resident_full(), 0);", "", "uninitialised-read",
    ),
    Fault("no proxy fence before a store", RESIDENT, EPILOGUE, FENCE, "", "missing-proxy-fence"),
    Fault("a buffer filled while TMA reads it", RESIDENT, EPILOGUE, READ, READ_LATER, "race"),
    Fault(
        "half of the bytes expected",
        RESIDENT, STAGES, "(full, Config::STAGE_BYTES)", "(full, Config::STAGE_BYTES / 2)", "race",
    ),
    Fault(
        "an arrival too many expected",
        RESIDENT, TILES, "4 * Config::READERS)", "4 * Config::READERS + 1)", "hang",
    ),
    Fault(
        "one warpgroup's arrivals for three",
        IN_REGISTERS, TILES, "4 * Config::READERS)", "4)", "overwritten-in-use",
    ),
    Fault(
        "a store before all warps have staged",
        IN_REGISTERS, TRANSPOSED, FENCE + "\n    kx::bar_sync(barrier, 128);", FENCE, "race",
    ),
    Fault("a buffer filled while TMA reads it", IN_REGISTERS, TRANSPOSED, READ, READ_LATER, "race"),
    Fault(
        "the table read before it is copied",
        IN_REGISTERS, TRANSPOSED, "  kx::bar_sync(TABLE_BARRIER, THREADS);\n", "", "race",
    ),
)
# fmt: on


# Each takes 10 to 20 s: one of each finding, and one of the other schedule, are shown every time.
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}: {fault.name}")
def test_a_fault_is_found_by_its_name(fault: Fault, tmp_path: Path, tools: Toolchain) -> None:
    shutil.copytree(ROOT / "variants", tmp_path / "variants")
    shutil.copy(ROOT / "experiments.yaml", tmp_path)
    source = tmp_path / "variants/patch_embed_gemm" / fault.file
    assert fault.right in source.read_text()
    source.write_text(source.read_text().replace(fault.right, fault.wrong))
    loaded = project.load(tmp_path)
    variant = loaded.variant("patch_embed_gemm", "sm_90a", fault.point)
    arm = prepare.arm_of(loaded, variant, Session(tools=tools))
    assert arm.build, arm.build_log
    output = emulate(
        jobs.emulation(tmp_path, arm, "uneven", consult.limit(), LIMIT), isolated.Watch(sys.stderr)
    )
    assert fault.found in {finding.name for finding in output.evidence.findings}
