"""Code cut by line and role, and what of an emulation and a profile belongs to each piece."""

from __future__ import annotations

from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.evidence.emulate.emulated_costs import LineCost
from kernelexp.model.arm import ProfiledInstruction
from kernelexp.services.lines import costs, pieces
from kernelexp.services.lines.costs import FIGURES, SAMPLES
from kernelexp.services.lines.roles import Role
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
    found = pieces.by_line(pieces.cut(LINES, ROLES, SASS, ()))
    assert [(each.file, each.line) for each in found] == [
        ("", 0),
        ("k/kernel.cu", 20),
        ("k/kernel.cu", 50),
    ]


def test_roles_share_what_both_ran_and_part_of_a_line_is_of_one_alone() -> None:
    found = pieces.by_role(pieces.cut(LINES, ROLES, (), ()))
    executed = {roles: FIGURES["instructions"].read(each) for roles, each in found.items()}
    assert executed == {("load",): 5, ("store",): 3, ("load", "store"): 8}


def test_stalls_go_by_offset_to_line_and_role() -> None:
    cut = pieces.cut(LINES, ROLES, SASS, PROFILE)
    stalls = {each.line: FIGURES["stalls"].read(each.costs) for each in pieces.by_line(cut)}
    assert stalls == {0: 0, 20: 30, 50: 70}
    (wait,) = [each for each in cut if each.line == 50]
    assert wait.costs.stalls == {"long_sb": 60.0, "wait": 10.0}
    assert wait.roles == ("load", "store")


def test_code_that_no_emulation_ran_has_the_roles_of_its_caller() -> None:
    (called,) = [each for each in pieces.cut(LINES, ROLES, SASS, ()) if each.instructions][1:2]
    assert (called.line, called.roles) == (20, ("load", "store"))


def test_padding_is_no_code() -> None:
    assert costs.add(each.costs for each in pieces.cut((), (), SASS, ())).sass == 3


def test_a_profile_of_other_code_goes_by_the_lines_that_it_names() -> None:
    other = (row(16, "FADD R1", 9.0, "k/kernel.cu", 50), row(32, "BRA", 4.0))
    assert not pieces.is_of(other, SASS)
    found = pieces.cut(LINES, ROLES, SASS, other)
    stalls = [(each.line, each.roles, FIGURES["stalls"].read(each.costs)) for each in found]
    assert [each for each in stalls if each[2]] == [(50, (), 9.0)]


def test_a_profile_of_longer_code_is_of_other_code() -> None:
    assert pieces.is_of(PROFILE, SASS)
    assert not pieces.is_of((*PROFILE, row(4096, "EXIT", 1.0)), SASS)


def test_one_role_is_shown_with_what_it_shares() -> None:
    found = pieces.by_line(pieces.cut(LINES, ROLES, (), ()), "store")
    assert {each.line: each.costs.emulated["ptx__inst_executed"] for each in found} == {
        20: 3,
        50: 8,
    }
