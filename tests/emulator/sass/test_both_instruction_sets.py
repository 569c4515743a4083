"""Variants of this repository in both instruction sets: the same output and memory traffic."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from harness import assemble, compile_cu
from patch_embed import exports

import warpsim as emulator
from warpsim.launch import Launch

VARIANTS = Path(__file__).parents[3] / "variants"
_HEADS, _ROWS, _COLUMNS = 1, 64, 64
# Of global memory, and of shared memory where ptxas merges no accesses.
GLOBAL = (
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
    "memory_l2_theoretical_sectors_global",
    "memory_l1_tag_requests_global",
)
SHARED = (
    "memory_l1_wavefronts_shared",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st",
)


def problem(kernel: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """problem.py of a kernel, which may import from its own folder."""
    monkeypatch.setattr(sys, "path", [str(VARIANTS / kernel), *sys.path])
    path = VARIANTS / kernel / "problem.py"
    spec = importlib.util.spec_from_file_location(f"{kernel}_problem", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def source(kernel: str, target: str, defines: Mapping[str, object], stem: str = "") -> str:
    """PTX of a kernel, whose source is named after it, or `stem`."""
    return compile_cu(
        VARIANTS / kernel / f"{stem or kernel}.cu",
        target=target,
        defines=[f"KX_{name.upper()}={value}" for name, value in defines.items()],
        include=[VARIANTS / "include", VARIANTS / kernel],
    )


def both(
    text: str, target: str, launch: Launch, given: dict[str, np.ndarray], out: np.ndarray
) -> list[tuple[np.ndarray, dict[str, int]]]:
    """What the PTX writes and counts, then what its SASS does under another schedule."""
    answer = []
    ptx, sass = emulator.load(text), emulator.load_cubin(*assemble(text, target))
    for module, seed in ((ptx, 0), (sass, 1)):
        mine, schedule = np.zeros_like(out), emulator.Schedule(seed=seed)
        result = emulator.run(
            module, launch, {**given, "out": mine}, unwritten=["out"], schedule=schedule
        )
        assert not result.findings
        answer.append((mine, result.counters.kernel))
    return answer


def test_a_transpose_moves_the_same_bytes_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    text = source("transpose", "sm_90a", {"layout": "plain", "rows": 8})
    size = {"rows": 64, "columns": 96}
    launch = problem("transpose", monkeypatch).launch({}, size, exports(text))
    x = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    answer = []
    for module in (emulator.load(text), emulator.load_cubin(*assemble(text, "sm_90a"))):
        y = np.zeros((96, 64), np.float32)
        result = emulator.run(module, launch, {"x": x.copy(), "y": y}, unwritten=["y"])
        assert not result.findings
        assert (y == x.T).all()
        answer.append(result.counters.kernel)
    ptx, sass = answer
    assert {n: sass[n] for n in GLOBAL + SHARED} == {n: ptx[f"ptx__{n}"] for n in GLOBAL + SHARED}
    assert sass["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"] == 31 * 64 * 96 // 32


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("phase", "block_m", "merged"),
    [("minimal", 64, True), ("1", 32, True), ("3", 32, True), ("5", 64, False), ("7", 64, False)],
)
def test_attention_has_the_same_bits_in_both(
    target: str, phase: str, block_m: int, merged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes: dict[str, object] = {
        "phase": phase,
        "block_m": block_m,
        "block_n": 64,
        "num_warps": 4,
        "vec_width": 8,
        "reduce": "warp",
        "sync_policy": 5,
        "layout": "plain",
    }
    text = source("flash_attention", target, axes)
    named = axes | {"phase": int(phase) if phase.isdigit() else phase}
    size = {"b": 1, "h": _HEADS, "s": _ROWS, "d": _COLUMNS}
    launch = problem("flash_attention", monkeypatch).launch(named, size, exports(text))
    rng = np.random.default_rng(0)
    shape = (_HEADS, _ROWS, _COLUMNS)
    given = {n: rng.normal(size=shape).astype(np.float16).view(np.uint16) for n in "qkv"}
    (wanted, ptx), (got, sass) = both(text, target, launch, given, np.zeros(shape, np.uint16))
    assert (wanted == got).all()
    alike = GLOBAL if merged else GLOBAL + SHARED
    assert {n: sass[n] for n in alike} == {n: ptx[f"ptx__{n}"] for n in alike}
    # ptxas merges the loads of a row of K and V: up to four in one.
    assert (sass["memory_l1_wavefronts_shared"] < ptx["ptx__memory_l1_wavefronts_shared"]) == merged


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_each_access_is_of_the_lsu(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = source("transpose", target, {"layout": "padded", "rows": 8})
    size = {"rows": 64, "columns": 96}
    launch = problem("transpose", monkeypatch).launch({}, size, exports(text))
    x, y = np.arange(64 * 96, dtype=np.float32), np.zeros(64 * 96, np.float32)
    module = emulator.load_cubin(*assemble(text, target))
    counters = emulator.run(module, launch, {"x": x, "y": y}, unwritten=["y"]).counters
    opcodes = counters.by_opcode()
    accesses = sum(opcodes.get(name, 0) for name in ("LDG", "STG", "LDS", "STS", "SHFL"))
    indices = sum(
        instruction.executed
        for instruction in counters.instructions
        if instruction.instruction.opcode == "S2R" and "SR_TID" in instruction.instruction.text
    )
    assert counters.kernel["sm__inst_executed_pipe_lsu"] == accesses + indices
    assert counters.kernel["sm__inst_executed_pipe_fma"] > 0
