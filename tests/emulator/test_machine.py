"""The machine runs a program that no PTX was decoded for."""

from __future__ import annotations

import numpy as np

import warpsim as emulator
from warpsim.launch import Launch, Pointer
from warpsim.machine.core.image import Image, Variable
from warpsim.machine.core.registers import Literal, RegisterPart, SpecialRegister, SymbolAddress
from warpsim.machine.core.site import Site, Source
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.counts.counter_names import named
from warpsim.machine.schedule.program import BasicBlock, DecodedProgram, Exit
from warpsim.machine.sync.barriers import CtaBarrier

THREADS = 64
TID, OUT, ADDRESS, ZERO, VALUE = range(5)
SLOTS = [
    SpecialRegister("tid.x", 32),
    SymbolAddress("out", 0, 64),
    RegisterPart("R0", 64, 64),
    Literal(0, 32),
    RegisterPart("R2", 32, 32),
]


def site(number: int, kind: str) -> Site:
    return Site(
        number=number,
        opcode="OP",
        kind=kind,
        listing="SASS",
        line=10 + number,
        source=Source("kernel.cu", number),
        text="OP;",
    )


def program(*, skew: int = 0, written: bool = True) -> DecodedProgram:
    """Stores each thread's number, meets at a barrier, ends; `skew` bytes off the array."""
    sites = [site(0, "integer"), site(1, "global store"), site(2, "barrier"), site(3, "branch")]
    store = AccessKind(sites[1], 4, 1, store=True)

    def where(R, m, warps):
        base = warps.machine.spaces["param"].load(
            warps, R[OUT] & np.uint64(0xFF_FFFF_FFFF), AccessKind(sites[0], 8, 1, store=False), m
        )
        R[ADDRESS][...] = base + R[TID].astype(np.uint64) * np.uint64(4) + np.uint64(skew)

    def put(R, m, warps):
        values = R[TID] if written else R[VALUE]
        warps.machine.spaces["global"].store(warps, R[ADDRESS], values, store, m)

    gate = CtaBarrier(sites[2], number=ZERO, count=ZERO, aligned=True, waits=True, vote=None)
    blocks = [BasicBlock(0, 2), BasicBlock(2, 3, gate=gate), BasicBlock(3, 4, end=Exit())]
    for number, op in enumerate((where, put)):
        blocks[0].add(number, op)
    image = Image(
        entry="k",
        slots=SLOTS,
        parameters=(Variable(name="out", space="param", type="u64", align=8, size=8),),
    )
    return DecodedProgram(image, sites, {block.first: block for block in blocks})


def run(made: DecodedProgram) -> tuple[emulator.Result, np.ndarray]:
    out = np.zeros(THREADS, np.uint32)
    launch = Launch(
        entry="k", grid=(1, 1, 1), block=(THREADS, 1, 1), arguments=(Pointer(array="out"),)
    )
    module = emulator.Module(entries={"k": made})
    return emulator.run(module, launch, {"out": out}), out


def test_a_program_of_another_instruction_set_runs():
    result, out = run(program())
    assert not result.findings
    assert out.tolist() == list(range(THREADS))


def test_its_counters_begin_with_the_name_of_its_listing():
    result, _ = run(program())
    kernel = result.counters.kernel
    assert kernel["smsp__inst_executed"] == 4 * THREADS // 32
    assert kernel["sass__inst_executed_barrier"] == THREADS // 32
    assert kernel["sass__inst_executed_global_stores"] == THREADS // 32
    assert not any(name.startswith("ptx__") for name in kernel)


def test_ncus_counters_are_named_so_for_sass_alone():
    ptx, sass = named([], "PTX"), named([], "SASS")
    assert all(name.startswith("ptx__") for name in ptx)
    assert not any(name.startswith("ptx__") for name in sass)
    assert {"memory_l1_wavefronts_shared", "sass__inst_executed_barrier"} <= sass.keys()


def test_a_finding_names_the_line_of_its_listing():
    result, _ = run(program(skew=2))
    (finding,) = result.findings
    assert finding.name == "misaligned"
    assert finding.where() == "kernel.cu:1, SASS line 11, CTA 0, warp 0"


def test_a_register_holds_poison_until_it_is_written():
    _, out = run(program(written=False))
    assert np.isnan(out.view(np.float32)).all()
