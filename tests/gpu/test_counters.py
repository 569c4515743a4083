"""The emulator's counters of the Hopper kernel are ncu's; and the program that holds them so."""

import shutil
import sys
from pathlib import Path

import pytest
from gpu_kernels import needs_gpu

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import counters

from kernelexp.evidence.profile import ncu as programs
from warpsim.machine.counts.counter_names import named

KERNEL = "patch_embed_gemm@sm_90a"
VARIANTS = (
    KERNEL,
    f"{KERNEL}:store=staged",
    f"{KERNEL}:store=direct",
    f"{KERNEL}:combined=inline",
    f"{KERNEL}:schedule=cooperative,tile_m=128,stages=3",
    f"{KERNEL}:operand_b=streamed,tile_m=128,stages=4,boxes=1,combined=blocked,prefetch=0,order=snake",
    f"{KERNEL}:operand_b=registers,combined=resident,order=linear,prefetch=0,boxes=1,stages=15",
    "transpose@sm_90a:layout=plain",
)
needs_ncu = pytest.mark.skipif(shutil.which("ncu") is None, reason="ncu is not on the PATH")


@pytest.fixture(scope="module")
def held():
    """Of each variant, what the emulator and ncu counted."""
    prepared = counters.built_and_emulated(counters.ROOT, VARIANTS, "emulated")
    ncu = programs.find()
    rows = [list(counters.hold(p.counters, counters.count(p, "emulated", ncu))) for p in prepared]
    return dict(zip(VARIANTS, rows, strict=True))


@needs_gpu
@needs_ncu
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_emulator_counts_a_variant_as_ncu_does(variant, held):
    assert [item for item in held[variant] if item.wrong] == []


@needs_gpu
@needs_ncu
def test_bank_conflicts_are_equal_where_nothing_else_uses_shared_memory(held):
    name = "ptx__l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"
    (conflicts,) = (item for item in held[VARIANTS[-1]] if item.row.counter == name)
    assert conflicts.counted == conflicts.emulated > 0


def test_opcodes_are_the_instances_of_their_metric():
    name = counters.OPCODES
    figures = {name: 1234.0, f"{name}[LDS.128]": 1000.0, f"{name}[QGMMA.64x192x32.F32]": 234.0}
    assert counters.opcodes(figures) == {"LDS.128": 1000, "QGMMA.64x192x32.F32": 234}
    assert counters.opcodes({name: 0.0}) == {}


@pytest.mark.parametrize(("emulated", "counted", "wrong"), [(5, 5.0, False), (5, 6.0, True)])
def test_a_counter_that_must_be_equal_is_wrong_where_it_is_not(emulated, counted, wrong):
    name = "memory_l1_wavefronts_shared"
    page = {name: counted}
    (result,) = counters.hold({f"ptx__{name}": emulated}, page)
    assert result.wrong == wrong


@pytest.mark.parametrize(("counted", "wrong"), [(9.0, False), (4.0, True)])
def test_arbitration_may_add_conflicts_but_not_take_any(counted, wrong):
    name = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"
    page = {f"{name}.sum": counted}
    (result,) = counters.hold({f"ptx__{name}": 5}, page)
    assert result.wrong == wrong


def test_every_row_names_a_counter_of_the_emulator():
    assert {row.counter for row in counters.ROWS} <= named([], "PTX").keys()
