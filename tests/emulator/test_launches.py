"""Launches: what is refused, how many CTAs there may be, what a schedule decides."""

from __future__ import annotations

import numpy as np
import pytest
from harness import found, ptx, run

import warpsim as emulator
from kernelexp.model.errors import UsageError
from warpsim.launch import Field, Launch, Pointer, Scalar, StructValue

IDENTITY = """
mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mad.lo.u32 %r2, %r0, %r1, %t;
mul.wide.u32 %d0, %r2, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r2;
"""


def test_more_ctas_than_are_resident_at_once_run_in_waves():
    out = np.zeros(256 * 300, np.uint32)
    result = run(ptx(IDENTITY, ["out"]), {"out": out}, threads=256, grid=300)
    assert result.findings == ()
    assert (out == np.arange(len(out))).all()
    assert result.counters.kernel["ptx__sass__inst_executed_global_stores"] == 8 * 300


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"entry": "other"}, "the PTX has no entry 'other'; its entries are k."),
        ({"cluster": (2, 1, 1)}, "grid (1, 1, 1) is not a multiple of cluster (2, 1, 1)."),
        ({"block": (65, 1, 1)}, "k was compiled for 64 threads per CTA at most, not 65."),
        ({"arguments": ()}, "entry k takes 1 arguments, the launch has 0."),
        (
            {"arguments": (Pointer(array="nowhere"),)},
            "the launch names array 'nowhere'; the arrays given are out.",
        ),
        (
            {"arguments": (Scalar(type="u32", value=1),)},
            "parameter k_out has 8 bytes, its argument 4.",
        ),
    ],
)
def test_an_impossible_launch_is_refused_in_a_sentence(change, sentence):
    text = ptx(IDENTITY, ["out"]).replace(")\n{", ")\n.maxntid 64\n{", 1)
    fields = {"entry": "k", "grid": (1, 1, 1), "block": (32, 1, 1)}
    fields["arguments"] = (Pointer(array="out"),)
    with pytest.raises(UsageError) as refusal:
        emulator.run(emulator.load(text), Launch(**fields | change), {"out": np.zeros(64)})
    assert str(refusal.value) == sentence


RACE = """
mul.wide.u32 %d0, %t, 0; shr.u32 %r0, %t, 5; st.global.b32 [%out], %r0;
"""


def test_a_result_that_depends_on_the_schedule_is_reported():
    launch = Launch(entry="k", grid=(1, 1, 1), block=(256, 1, 1), arguments=(Pointer(array="out"),))
    out = np.zeros(1, np.uint32)
    schedules = [emulator.Schedule(seed=seed) for seed in range(12)]
    module = emulator.load(ptx(RACE, ["out"]))
    compared = emulator.compare(module, [launch], {"out": out}, schedules=schedules)
    assert compared.differing == ("out",)
    assert len(compared.results) == 12


def test_the_same_seed_gives_the_same_run():
    text = ptx(RACE + IDENTITY.replace("[%d1]", "[%d1+4]"), ["out"])
    runs = []
    for _ in range(2):
        out = np.zeros(300, np.uint32)
        runs.append(run(text, {"out": out}, threads=256, schedule=emulator.Schedule(seed=11)))
        runs.append(out.tobytes())
    assert runs[0].counters.kernel == runs[2].counters.kernel
    assert runs[1] == runs[3]


def test_findings_of_one_instruction_are_counted_not_listed():
    text = ptx(
        "ld.global.b32 %r0, [%out]; add.u32 %r1, %r0, 1; st.global.b32 [%out+4], %r1;", ["out"]
    )
    out = np.zeros(4, np.uint32)
    result = run(text, {"out": out}, threads=1, unwritten=["out"])
    (finding,) = result.findings
    assert found(result) == {"uninitialised-read"}
    assert finding.count >= 1
    assert finding.where().startswith("PTX line")


def one_warp(text, arguments, arrays):
    launch = Launch(entry="k", grid=(1, 1, 1), block=(32, 1, 1), arguments=arguments)
    return emulator.run(emulator.load(text), launch, arrays)


STRUCT = """
ld.param.u64 %out, [k_whole+8]; ld.param.u8 %r0, [k_whole+1]; ld.param.s16 %r1, [k_small];
ld.param.u32 %r2, [k_whole+4]; add.s32 %r0, %r0, %r1; add.s32 %r0, %r0, %r2;
mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r0;
"""


def test_a_struct_is_passed_by_value_and_scalars_may_be_small():
    text = ptx(".reg .b64 %out;" + STRUCT).replace(
        "k()", "k(.param .align 8 .b8 k_whole[16], .param .s16 k_small)"
    )
    fields = (
        Field(offset=8, value=Pointer(array="out")),
        Field(offset=1, value=Scalar(type="u8", value=200)),
    )
    arguments = (StructValue(size=16, fields=fields), Scalar(type="s16", value=-7))
    out = np.zeros(32, np.int32)
    assert found(one_warp(text, arguments, {"out": out})) == set()
    assert (out == 193).all()


def test_a_field_that_leaves_its_struct_is_refused():
    text = ptx("").replace("k()", "k(.param .align 8 .b8 k_whole[16])")
    outside = Field(offset=13, value=Scalar(type="u32", value=1))
    with pytest.raises(UsageError, match="a field of 4 bytes at byte 13 leaves its struct of 16"):
        one_warp(text, (StructValue(size=16, fields=(outside,)),), {})


CONSTANT = """
mul.wide.u32 %d0, %t, 4; mov.u64 %d1, table; add.u64 %d1, %d1, %d0; ld.const.u32 %r0, [%d1];
mov.u64 %d2, sum; cvta.global.u64 %d2, %d2; atom.global.add.u32 %r1, [%d2], %r0;
"""
VARIABLES = ".const .align 4 .b8 table[128]; .global .align 4 .u32 sum;"


def test_an_array_with_the_name_of_a_variable_is_that_variable():
    arrays = {"table": np.arange(32, dtype=np.uint32), "sum": np.full(1, 4, np.uint32)}
    assert found(one_warp(ptx(CONSTANT, extra=VARIABLES), (), arrays)) == set()
    assert arrays["sum"][0] == 4 + 31 * 16


def test_an_array_of_another_size_than_its_variable_is_refused():
    with pytest.raises(UsageError, match="array 'sum' has 8 bytes, the variable of that name 4"):
        one_warp(ptx(CONSTANT, extra=VARIABLES), (), {"sum": np.zeros(2, np.uint32)})


RESERVED = """
mov.u32 %r0, %reserved_smem_offset_1; shl.b32 %r1, %t, 2; add.u32 %r0, %r0, %r1;
atom.shared.add.u32 %r3, [%r0], %t; ld.shared.u32 %r2, [%r0];
mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r2;
"""


def test_a_kernel_may_use_the_shared_memory_that_is_reserved_for_it():
    out = np.zeros(32, np.uint32)
    assert found(run(ptx(RESERVED, ["out"]), {"out": out})) == set()
    assert (out == np.arange(32)).all()
