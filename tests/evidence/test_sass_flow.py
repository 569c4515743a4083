"""Loops in the control flow of SASS, of code made by hand and by ptxas."""

from __future__ import annotations

from pathlib import Path

import kept
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelexp.evidence.code import sass_flow, sass_lines
from kernelexp.evidence.code.sass_flow import Flow
from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.system.toolchain import Toolchain

COMPILED = [
    arch if arch == "sm_90a" else pytest.param(arch, marks=pytest.mark.slow)
    for arch in ARCHITECTURES
]
KERNEL = """
extern "C" __global__ void sum(const float4* x, float* y, const int* steps, int count) {
  __shared__ float tile[32];
  float total = 0.0f;
  tile[threadIdx.x % 32] = y[threadIdx.x];
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const float4 v = x[i * blockDim.x + threadIdx.x];
    total += __fdiv_rn(v.x + v.y + v.z + v.w, tile[i % 32]);
    __syncthreads();
#pragma unroll 1
    for (int j = 0; j < steps[i]; ++j) {
      total += __shfl_xor_sync(0xffffffff, total, 3);
    }
  }
  y[threadIdx.x] = total;
}
"""


def code(*lines: str) -> list[SassInstruction]:
    """Instructions 16 bytes apart; `@name` at the end of one is the line that begins `name:`."""
    labels = {
        line.partition(":")[0]: 16 * at for at, line in enumerate(lines) if line[:1].islower()
    }
    texts = [line.partition(": ")[2] if line[:1].islower() else line for line in lines]
    result = []
    for at, text in enumerate(texts):
        start, _, label = text.rpartition(" @")
        resolved = f"{start} {labels[label]:#x}" if label in labels else text
        result.append(SassInstruction(offset=16 * at, text=resolved, source=None))
    return result


def loops(*lines: str) -> list[tuple[int, int, int]]:
    """Header, parent and number of instructions of each loop, the header as a line's number."""
    flow = sass_flow.analyse(code(*lines))
    return [(loop.header // 16, loop.parent, len(loop.offsets)) for loop in flow.loops]


def test_straight_code_has_no_loop_and_neither_has_the_branch_behind_it() -> None:
    assert loops("MOV R1, R2", "@P0 EXIT", "EXIT", "self: BRA @self", "NOP") == []


def test_a_branch_back_makes_a_loop_of_what_lies_between() -> None:
    assert loops("MOV R1, R2", "top: FADD R1, R1, R2", "@P0 BRA @top", "EXIT") == [(1, 0, 2)]


def test_a_branch_with_a_predicate_as_an_operand_goes_on_too() -> None:
    assert loops("top: FADD R1, R1, R2", "BRA !P0, @top", "STG.E [R2], R1", "EXIT") == [(0, 0, 2)]
    assert loops("top: FADD R1, R1, R2", "BRA.U UP0, @top", "STG.E [R2], R1", "EXIT") == [(0, 0, 2)]


def test_a_branch_under_the_predicate_that_is_always_true_does_not() -> None:
    assert loops("top: FADD R1, R1, R2", "@PT BRA @out", "BRA @top", "out: EXIT") == []


def test_a_jump_forwards_over_code_makes_no_loop() -> None:
    assert loops("@P0 BRA @out", "FADD R1, R1, R2", "BRA @out", "out: EXIT") == []


def test_a_loop_inside_has_the_number_of_the_one_around_it() -> None:
    result = loops(
        "outer: MOV R1, RZ", "inner: IADD3 R1, R1, 1", "@P0 BRA @inner", "@P1 BRA @outer", "EXIT"
    )
    assert result == [(0, 0, 4), (1, 1, 2)]


def test_a_loop_with_two_entries_is_one_loop() -> None:
    result = loops(
        "@P0 BRA @middle", "top: FADD R1, R1, R2", "middle: FADD R1, R1, R3", "@P1 BRA @top", "EXIT"
    )
    assert result == [(1, 0, 3)]


def test_code_that_a_loop_places_behind_the_exit_is_in_it() -> None:
    flow = sass_flow.analyse(
        code(
            "top: FADD R1, R1, R2",
            "@!P0 BRA @cold",
            "back: @P1 BRA @top",
            "EXIT",
            "cold: MUFU.RCP R1, R1",
            "BRA @back",
        )
    )
    assert set(flow.innermost) == {0, 16, 32, 64, 80}


def test_what_is_called_from_a_loop_is_in_it_and_a_second_caller_makes_no_loop() -> None:
    program = code(
        "CALL.REL.NOINC @f",
        "MOV R1, R2",
        "CALL.REL.NOINC @f",
        "EXIT",
        "f: MUFU.RCP R1, R1",
        "RET.REL.NODEC R2 0x0",
    )
    assert sass_flow.analyse(program).loops == ()
    program = code(
        "top: CALL.REL.NOINC @f",
        "@P0 BRA @top",
        "EXIT",
        "f: MUFU.RCP R1, R1",
        "RET.REL.NODEC R2 0x0",
    )
    assert set(sass_flow.analyse(program).innermost.values()) == {1}
    assert 48 in sass_flow.analyse(program).innermost


def test_a_call_of_what_never_returns_is_a_branch() -> None:
    result = loops("top: FADD R1, R1, R2", "@P0 CALL.REL.NOINC @out", "BRA @top", "out: EXIT")
    assert result == [(0, 0, 3)]


def test_what_only_a_divergent_branch_leads_to_is_marked() -> None:
    flow = sass_flow.analyse(
        code(
            "BRA.DIV UR4, @apart",
            "SHFL.BFLY PT, R1, R2",
            "back: EXIT",
            "apart: WARPSYNC.COLLECTIVE R9, @back",
            "SHFL.BFLY PT, R1, R2",
            "BRA @back",
        )
    )
    assert flow.diverged == {48, 64, 80}


def test_the_targets_of_an_indirect_branch_may_be_any_code_that_nothing_else_leads_to() -> None:
    flow = sass_flow.analyse(
        code(
            "top: LDC R2, c[0x2][R1]",
            "BRX R2 -0x20",
            "FADD R1, R1, R2",
            "BRA @next",
            "FMUL R1, R1, R2",
            "next: @P0 BRA @top",
            "EXIT",
            "end: BRA @end",
        )
    )
    assert flow.indirect == (16,)
    assert [len(loop.offsets) for loop in flow.loops] == [6]


# A program is a list of parts: a number of plain instructions, or a loop of parts.
PROGRAMS = st.recursive(
    st.integers(1, 3), lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=12
)


def emitted(part: object, lines: list[str], depth: int, wanted: list[tuple[int, int]]) -> None:
    """Appends a part's lines, and depth and header of its loops."""
    if isinstance(part, list):
        lines.append("IADD3 R1, R1, 1")
        header, place = len(lines), len(wanted)
        wanted.append((depth, header))
        lines.append(f"loop{header}: FADD R1, R1, R2")
        for item in part:
            emitted(item, lines, depth + 1, wanted)
        lines.append(f"@P0 BRA @loop{header}")
        assert wanted[place] == (depth, header)
    else:
        lines.extend(["FADD R1, R1, R2"] * int(str(part)))


@settings(max_examples=40)  # of up to three programs each
@given(st.lists(PROGRAMS, max_size=3))
def test_nested_loops_are_found_as_they_were_written(program: list[object]) -> None:
    lines: list[str] = []
    wanted: list[tuple[int, int]] = []
    for part in program:
        emitted(part, lines, 1, wanted)
    flow = sass_flow.analyse(code(*lines, "EXIT"))
    assert [(item.depth, item.header // 16) for item in flow.loops] == wanted
    for loop in flow.loops:
        if loop.parent:
            assert loop.offsets < flow.loops[loop.parent - 1].offsets


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 24)), max_size=25))
def test_each_loop_of_any_graph_comes_back_to_its_header(
    branches: list[tuple[bool, bool, int]],
) -> None:
    program = [
        SassInstruction(
            offset=16 * at,
            text=f"{'@P0 ' if guarded else ''}BRA {16 * to:#x}" if jumps else "MOV R1, R2",
            source=None,
        )
        for at, (jumps, guarded, to) in enumerate(branches)
    ]
    flow = sass_flow.analyse(program)
    for loop in flow.loops:
        assert loop.branches
        assert loop.header in loop.offsets
        assert all(flow.innermost[at] for at in loop.offsets)
        around = flow.loops[loop.parent - 1].offsets if loop.parent else None
        assert around is None or loop.offsets < around


SWITCH = """
extern "C" __global__ void steps(float* y, const int* kinds, int count) {
  float v = y[threadIdx.x];
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    v += 1.0f;
    __syncthreads();
#pragma unroll 1
    for (int j = 0; j < i; ++j) {
      switch (kinds[j]) {
        case 0: v = __sinf(v); break;
        case 1: v = v * v + 3.0f; break;
        case 2: v = __shfl_xor_sync(0xffffffff, v, 3); break;
        case 3: v = __expf(v); break;
        case 4: y[j] = v; break;
        case 5: atomicAdd(y, v); break;
        case 7: v = __logf(v) * 2.0f; break;
      }
    }
  }
  y[threadIdx.x] = v;
}
"""


@pytest.mark.parametrize("arch", COMPILED)
def test_the_cases_of_a_switch_are_in_its_loop(tools: Toolchain, tmp_path: Path, arch: str) -> None:
    result, flow = compiled(tools, tmp_path, arch, SWITCH, "steps")
    assert flow.indirect
    assert [loop.parent for loop in flow.loops] == [0, 1]
    inside = {item.opcode for item in result if flow.innermost.get(item.offset) == 2}
    assert {"MUFU", "SHFL"} <= inside
    assert {flow.innermost.get(item.offset) for item in result if item.opcode == "BAR"} == {1}


@pytest.mark.parametrize("arch", COMPILED)
def test_loops_of_a_real_kernel_are_those_of_its_source(
    tools: Toolchain, tmp_path: Path, arch: str
) -> None:
    result, flow = compiled(tools, tmp_path, arch, KERNEL, "sum")
    places = {
        name: [flow.innermost.get(item.offset, 0) for item in result if item.opcode == name]
        for name in ("BAR", "SHFL", "LDG", "MUFU", "RET")
    }
    assert [loop.parent for loop in flow.loops] == [0, 1]
    assert places["BAR"] == [0, 1]
    assert places["SHFL"] == [2]
    assert set(places["MUFU"]) == {1}  # also in the division, which is a function
    assert set(places["RET"]) == {1}
    (back,) = flow.loops[0].branches
    (line,) = [item.source.own().line for item in result if item.offset == back and item.source]
    assert KERNEL.splitlines()[line - 1] == "  for (int i = 0; i < count; ++i) {"


def compiled(
    tools: Toolchain, folder: Path, arch: str, source: str, entry: str
) -> tuple[tuple[SassInstruction, ...], Flow]:
    argv = [tools.nvcc, f"-arch={arch}", "-lineinfo", "-cubin", "-o", "a.cubin", "a.cu"]
    cubin = kept.run(argv, {"a.cu": source}, "a.cubin")
    dump = kept.run([tools.cuobjdump, "-sass", "a.cubin"], {"a.cubin": cubin}).decode()
    (folder / "a.cubin").write_bytes(cubin)
    result = sass_lines.read(folder / "a.cubin", dump, entry)
    return result, sass_flow.analyse(result)
