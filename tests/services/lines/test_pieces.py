"""Code cut by line and role, and what of an emulation and a profile belongs to each piece."""

from __future__ import annotations

from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.evidence.emulate.job import LineCost
from kernelexp.evidence.emulate.roles import Role
from kernelexp.model.arm import ProfiledInstruction
from kernelexp.services.lines import costs, pieces
from kernelexp.services.lines.costs import FIGURES, SAMPLES
from warpsim.lineinfo import Source

ENTRY = Source("k/kernel.cu", 50)
WAIT = Source("include/wait.cuh", 7, ENTRY)
COPY = Source("k/kernel.cu", 20)
ROLES = (Role(name="load", warps=0b0001), Role(name="store", warps=0b1110))
LINES = (
    LineCost(source=WAIT, warps=0b1111, counters={"ptx__inst_executed": 8}),
    LineCost(source=COPY, warps=0b0001, counters={"ptx__inst_executed": 5}),
    LineCost(source=COPY, warps=0b0110, counters={"ptx__inst_executed": 3}),
)
SASS = (
    SassInstruction(offset=0, text="LDC R1, c[0x0][0x28]", source=None),
    SassInstruction(offset=16, text="SYNCS R1", source=WAIT),
    SassInstruction(offset=32, text="@P0 BRA 0x10", source=Source("x.h", 3, COPY)),
    SassInstruction(offset=48, text="NOP", source=COPY),
)


def row(offset: int, sass: str, samples: float, file: str = "", line: int = 0, **stalls: float):
    figures = {SAMPLES: samples, **{f"stall_{name}": value for name, value in stalls.items()}}
    return ProfiledInstruction(offset=offset, sass=sass, file=file, line=line, figures=figures)


PROFILE = (row(16, "SYNCS R1", 70.0, long_sb=60.0, wait=10.0), row(32, "@P0 BRA 0x7f10", 30.0))


def test_code_of_a_header_counts_for_the_line_of_the_kernel_that_uses_it() -> None:
    result = pieces.by_line(pieces.cut(LINES, ROLES, SASS, ()))
    assert [(item.file, item.line) for item in result] == [
        ("", 0),
        ("k/kernel.cu", 20),
        ("k/kernel.cu", 50),
    ]


def test_roles_share_what_both_ran_and_part_of_a_line_is_of_one_alone() -> None:
    result = pieces.by_role(pieces.cut(LINES, ROLES, (), ()))
    executed = {roles: FIGURES["instructions"].read(item) for roles, item in result.items()}
    assert executed == {("load",): 5, ("store",): 3, ("load", "store"): 8}


def test_stalls_go_by_offset_to_line_and_role() -> None:
    cut = pieces.cut(LINES, ROLES, SASS, PROFILE)
    stalls = {item.line: FIGURES["stalls"].read(item.costs) for item in pieces.by_line(cut)}
    assert stalls == {0: 0, 20: 30, 50: 70}
    (wait,) = [item for item in cut if item.line == 50]
    assert wait.costs.stalls == {"long_sb": 60.0, "wait": 10.0}
    assert wait.roles == ("load", "store")


def test_code_that_no_emulation_ran_has_the_roles_of_its_caller() -> None:
    (called,) = [item for item in pieces.cut(LINES, ROLES, SASS, ()) if item.instructions][1:2]
    assert (called.line, called.roles) == (20, ("load", "store"))


def test_padding_is_no_code() -> None:
    assert costs.add(item.costs for item in pieces.cut((), (), SASS, ())).sass == 3


def test_a_profile_of_other_code_goes_by_the_lines_that_it_names() -> None:
    other = (row(16, "FADD R1", 9.0, "k/kernel.cu", 50), row(32, "BRA", 4.0))
    assert not pieces.is_of(other, SASS)
    result = pieces.cut(LINES, ROLES, SASS, other)
    stalls = [(item.line, item.roles, FIGURES["stalls"].read(item.costs)) for item in result]
    assert [stall for stall in stalls if stall[2]] == [(50, (), 9.0)]


def test_a_profile_of_longer_code_is_of_other_code() -> None:
    assert pieces.is_of(PROFILE, SASS)
    assert not pieces.is_of((*PROFILE, row(4096, "EXIT", 1.0)), SASS)


def test_one_role_is_shown_with_what_it_shares() -> None:
    result = pieces.by_line(pieces.cut(LINES, ROLES, (), ()), "store")
    assert {item.line: item.costs.emulated["ptx__inst_executed"] for item in result} == {
        20: 3,
        50: 8,
    }
