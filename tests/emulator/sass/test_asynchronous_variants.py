"""Hopper's and Blackwell's kernels of this repository in both instruction sets.

They have the same output, phases of every mbarrier and traffic, under several schedules.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import patch_embed
import pytest
from harness import assemble
from support import ROOT
from test_patch_embed import PER_TILE

import warpsim as emulator
from kernelexp import project
from warpsim.machine.memory.layout import SHARED_RESERVED
from warpsim.machine.wave.mbarrier import Mbarriers

from .test_both_instruction_sets import problem, source

SCHEDULES = [
    emulator.Schedule(seed=0, asynchrony="late"),
    emulator.Schedule(seed=1, asynchrony="late"),
    emulator.Schedule(seed=2, asynchrony="early"),
]
ALIKE = (
    "sass__inst_executed_global_loads",
    "sass__inst_executed_global_stores",
    "smsp__sass_inst_executed_op_shared_gmma",
    "smsp__sass_inst_executed_op_tmem_ldt",
    "smsp__sass_inst_executed_op_utcmma",
    "smsp__inst_executed_op_tma_ld",
    "smsp__inst_executed_op_tma_st",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma",
    "l1tex__data_pipe_tc_wavefronts_mem_shared",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
    "memory_l2_theoretical_sectors_global",
    "memory_l1_tag_requests_global",
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld",
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld_dest_multicast",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st",
)
ATTENTION = {"b": 1, "h": 1, "s": 320, "d": 64, "sms": 1}
GEMM = {"m": 256, "n": 768, "k": 768, "period": 196, "ctas": 2, "ctas_sm_90a": 4}


_STREAMED = {"operand_b": "streamed", "combined": "inline", "prefetch": 0, "order": "linear"}


class Case(NamedTuple):
    kernel: str
    arch: str
    axes: Mapping[str, object] = MappingProxyType({})

    def __str__(self) -> str:
        return "-".join([self.kernel, self.arch, *map(str, self.axes.values())])


CASES = [
    Case("flash_attention_hopper", "sm_90a"),
    Case("flash_attention_hopper", "sm_90a", {"overlap": "issued", "stages": 3}),
    Case("flash_attention_hopper", "sm_90a", {"ctas": "persistent", "schedule": "free"}),
    Case("patch_embed_gemm", "sm_90a"),
    Case("patch_embed_gemm", "sm_90a", _STREAMED),
    Case("patch_embed_gemm", "sm_90a", {"store": "staged", "registers": "equal"}),
    Case("patch_embed_gemm", "sm_100a"),
    Case("patch_embed_gemm", "sm_100a", {"store": "direct_v8", "tmem_load": "split"}),
    Case("patch_embed_gemm", "sm_100a", {"cta_group": 1, "tile_n": 128, "epilogue_warps": 4}),
]


class Done(NamedTuple):
    out: np.ndarray
    counters: dict[str, int]
    phases: dict[tuple[int, int], int]
    """Of each mbarrier of the kernel when its CTA ended, by CTA and address."""


def executed(
    module: emulator.Module, case: Case, text: str, schedule: emulator.Schedule, patch
) -> Done:
    axes = project.load(ROOT).variant(case.kernel, case.arch, dict(case.axes)).axes
    size, given, out = inputs(case)
    launch = problem(case.kernel, patch).launch(axes, size, patch_embed.exports(text))
    phases: dict[tuple[int, int], int] = {}
    end = Mbarriers.end

    def noting(self: Mbarriers, cta: int) -> None:
        number = self.residents.ctas[cta].number
        own = [item for item in self.at.values() if item.cta == number]
        phases.update({(item.cta, item.address): item.phase for item in own})
        end(self, cta)

    patch.setattr(Mbarriers, "end", noting)
    result = emulator.run(
        module, launch, {**given, "out": out}, unwritten=["out"], schedule=schedule
    )
    assert not result.findings
    kept = {key: phase for key, phase in phases.items() if key[1] >= SHARED_RESERVED}
    return Done(out, result.counters.kernel, kept)


def inputs(case: Case) -> tuple[dict[str, int], dict[str, np.ndarray], np.ndarray]:
    """(size, arrays, output)"""
    if case.kernel == "patch_embed_gemm":
        arrays = {name: array.copy() for name, array in patch_embed.inputs(GEMM["m"]).items()}
        return GEMM, arrays, np.zeros((GEMM["m"], GEMM["n"]), np.uint16)
    rng, shape = np.random.default_rng(0), (1, ATTENTION["s"], ATTENTION["d"])
    given = {n: rng.normal(size=shape).astype(np.float16).view(np.uint16) for n in "qkv"}
    return ATTENTION, given, np.zeros(shape, np.uint16)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_sass_of_a_variant_does_what_its_ptx_does(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = project.load(ROOT).variant(case.kernel, case.arch, dict(case.axes)).axes
    stem = f"{case.kernel}_{case.arch.replace('_', '')}"
    name = stem if case.kernel == "patch_embed_gemm" else case.kernel
    text = source(case.kernel, case.arch, axes, name)
    with monkeypatch.context() as patch:
        wanted = executed(emulator.load(text), case, text, SCHEDULES[0], patch)
    module = emulator.load_cubin(*assemble(text, case.arch))
    assert wanted.phases
    for schedule in SCHEDULES:
        with monkeypatch.context() as patch:
            got = executed(module, case, text, schedule, patch)
        assert (got.out == wanted.out).all()
        assert got.phases == wanted.phases
        assert {n: got.counters[n] for n in ALIKE} == {
            n: wanted.counters[f"ptx__{n}"] for n in ALIKE
        }


@pytest.mark.slow
@pytest.mark.parametrize(("store", "column"), [("direct_v8", 0), ("staged", 1)])
def test_the_sass_of_the_b200_kernel_counts_what_ncu_counted_per_tile(store, column):
    text = patch_embed.ptx(store)
    module = emulator.load_cubin(*assemble(text, "sm_100a"))
    few, many = (counted(module, text, m) for m in (256, 512))
    tiles = patch_embed.COLUMN_TILES
    per_tile = {
        n: (many[n.removeprefix("ptx__")] - few[n.removeprefix("ptx__")]) / tiles for n in PER_TILE
    }
    assert per_tile == {name: values[column] for name, values in PER_TILE.items()}


@pytest.mark.slow
def test_the_sass_of_the_b200_kernel_allocates_with_as_many_accesses_as_ncu_counted():
    text = patch_embed.ptx("direct_v8")
    counters = counted(emulator.load_cubin(*assemble(text, "sm_100a")), text, 256)
    # Of a pair of CTAs: ncu's 666 loads and 740 atomics are of 74 pairs, of a kernel whose warps
    # do not load the address of their columns; here 14 warps do.
    assert counters["sass__inst_executed_shared_loads"] == 666 // 74 + 14
    assert counters["sass__inst_executed_atomic"] == 740 // 74


def counted(module: emulator.Module, text: str, m: int) -> dict[str, int]:
    size = GEMM | {"m": m}
    launch = patch_embed.problem().launch({}, size, patch_embed.exports(text))
    arrays = {**patch_embed.inputs(m), "out": np.zeros((m, GEMM["n"]), np.uint16)}
    result = emulator.run(module, launch, arrays, unwritten=["out"], schedule=SCHEDULES[0])
    assert not result.findings
    return result.counters.kernel
