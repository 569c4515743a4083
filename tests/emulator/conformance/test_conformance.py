"""The emulator against an H200: the same PTX, the same launches, the same inputs."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from kernelexp.emulator import Module, Schedule, UnsupportedInstruction, run
from kernelexp.emulator.decode import decode
from kernelexp.emulator.ptx.parser import parse
from kernelexp.toolchain import Toolchain

from . import golden
from .cases import AREAS, Case
from .record import compile_ptx
from .test_arithmetic import differing

SCHEDULES = (Schedule(seed=0, asynchrony="late"), Schedule(seed=3, asynchrony="early"))

NOT_COVERED: dict[str, tuple[str, ...]] = {
    "integer": (
        "mad.hi.s16",
        "sad.s16",
        "mad.hi.u16",
        "sad.u16",
        "mad.hi.s64",
        "sad.s64",
        "mad.hi.u64",
        "sad.u64",
        "mul24.hi.u32",
        "mad.hi.sat.s32",
        "add.cc.u32",
        "sub.cc.u32",
        "mad.lo.cc.u32",
    ),
    "logic": (
        "bfind.shiftamt.s32",
        "bfind.shiftamt.s64",
    ),
    "float_conversion": ("cvt.rn.relu.tf32.f32",),
    "control": (
        "structs",
        "calls",
    ),
    "memory": ("load_widths",),
    "sync": ("mbarrier_states",),
    "matrix": (
        "wmma_f16_row",
        "wmma_f16_col",
        "wmma_f16_m8n32",
        "wmma_s8_m8n32",
        "wmma_s8_m16n16",
    ),
    "cluster": (
        "remote_arrive 2",
        "remote_arrive 4",
    ),
}
"""By area, the cases whose instructions the emulator refuses. No other case may be refused."""

LEFT_OUT: dict[str, tuple[str, ...]] = {
    "logic": (
        "bfe.u64",
        "bfe.s64",
    ),
    "integer_conversion": (
        "cvt.rzi.s8.f32",
        "cvt.rzi.s8.f64",
        "cvt.rzi.s8.f16",
        "cvt.s8.u8",
        "cvt.sat.s8.u8",
        "cvt.s8.s16",
        "cvt.sat.s8.s16",
        "cvt.s8.u16",
        "cvt.sat.s8.u16",
        "cvt.s8.s32",
        "cvt.sat.s8.s32",
        "cvt.s8.u32",
        "cvt.sat.s8.u32",
        "cvt.s8.s64",
        "cvt.sat.s8.s64",
        "cvt.s8.u64",
        "cvt.sat.s8.u64",
    ),
    "atomics": (
        "atom.global.add.f32",
        "red.global.add.f32",
        "atom.global.add.f64",
    ),
    "mma": (
        "mma_e4m3",
        "mma_e5m2",
        "mma_e4m3_e5m2",
        "mma_e4m3_f16",
    ),
    "wgmma": (
        "wgmma_e4m3",
        "wgmma_e4m3_registers",
        "wgmma_e5m2",
        "wgmma_e4m3_e5m2",
        "wgmma_e4m3_f16",
        "wgmma_bf16",
        "wgmma_bf16_negated",
        "wgmma_bf16_transposed",
        "wgmma_f16",
        "wgmma_f16_f16",
        "wgmma_tf32",
        "wgmma_s8",
        "wgmma_u8",
        "wgmma_swizzle_128B",
        "wgmma_swizzle_64B",
        "wgmma_swizzle_32B",
    ),
}
"""By area, the cases that the emulator is known not to reproduce."""


@pytest.fixture(scope="session")
def ptx(tools: Toolchain, tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """The PTX of an area, compiled once."""
    folder: Path = tmp_path_factory.mktemp("conformance")

    @functools.cache
    def text(name: str) -> str:
        area = AREAS[name]
        if area.source is None:
            return area.origin()
        target = folder / f"{name}.ptx"
        compile_ptx(tools.nvcc, area.source, target)
        return target.read_text()

    return text


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("area", golden.recorded())
def test_the_emulator_writes_what_the_gpu_wrote(area: str, schedule: Schedule, ptx) -> None:  # type: ignore[no-untyped-def]
    outputs = golden.load(area).outputs
    syntax = parse(ptx(area))
    problems = []
    for case in golden.cases(area):
        if case.name in LEFT_OUT.get(area, ()):
            continue
        try:
            program = decode(syntax, case.launch.entry)
        except UnsupportedInstruction as refusal:
            if case.name not in NOT_COVERED.get(area, ()):
                problems.append(f"{case.name}: {refusal}")
            continue
        module = Module(syntax=syntax, entries={case.launch.entry: program})
        problems += emulated_problems(module, case, schedule, outputs)
    assert not problems, "\n".join(problems[:20])


def emulated_problems(
    module: Module, case: Case, schedule: Schedule, outputs: dict[tuple[str, str], np.ndarray]
) -> list[str]:
    """What sets the emulator's launch of a case apart from the GPU's."""
    arrays = {name: array.copy() for name, array in case.arrays.items()}
    result = run(module, case.launch, arrays, schedule=schedule)
    problems = [f"{case.name}: {finding.sentence}" for finding in result.findings]
    for name in case.outputs:
        gpu = outputs[case.name, name]
        wrong = np.flatnonzero(differing(arrays[name], gpu, case.bound))
        if len(wrong):
            at = wrong[0]
            sample = f"{int(arrays[name][at]):#x}, on the GPU {int(gpu[at]):#x}"
            problems.append(f"{case.name}: {name}: {len(wrong)} differ; [{at}] is {sample}")
    return problems
