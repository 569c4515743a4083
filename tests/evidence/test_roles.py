"""Roles from which warps ran which lines, and their names from the source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.evidence.emulate import roles
from kernelexp.evidence.emulate.job import LineCost
from warpsim.lineinfo import Source

ALL = 0b1111


def ran(line: int, warps: int, times: int = 10, caller: Source | None = None) -> LineCost:
    return LineCost(
        source=Source("kernel.cu", line, caller),
        warps=warps,
        counters={"ptx__inst_executed": times * warps.bit_count()},
    )


PROLOGUE = [ran(line, ALL, 1) for line in range(1, 6)]
PRODUCER = [ran(20, 0b0001, 100), ran(21, 0b0001, 100)]
CONSUMER = [ran(30, 0b1110, 100), ran(31, 0b1110, 100)]


def test_warps_that_run_the_same_lines_are_one_role() -> None:
    assert roles.find([*PROLOGUE, *PRODUCER, *CONSUMER]) == (0b0001, 0b1110)


def test_a_kernel_whose_warps_all_run_the_same_has_one_role() -> None:
    assert roles.find(PROLOGUE) == (ALL,)


def test_a_warp_that_only_sets_up_more_than_the_others_has_their_role() -> None:
    setup = ran(10, 0b0001, 30)
    assert roles.find([*PROLOGUE, setup, ran(20, ALL, 100)]) == (ALL,)


def test_warps_that_do_nothing_are_a_role_apart() -> None:
    assert roles.find([*PROLOGUE, *PRODUCER, ran(30, 0b0010, 100)]) == (0b0001, 0b0010, 0b1100)


def test_a_template_for_each_half_of_the_columns_is_one_role() -> None:
    entry = Source("kernel.cu", 70)
    left = Source("kernel.cu", 50, Source("kernel.cu", 60, entry))
    right = Source("kernel.cu", 50, Source("kernel.cu", 61, entry))
    halves = [ran(40, 0b0010, 50, left), ran(40, 0b1100, 50, right), ran(41, 0b0010, 50, left)]
    halves += [ran(41, 0b1100, 50, right), ran(42, 0b1110, 50)]
    assert roles.find([*PROLOGUE, *PRODUCER, *halves]) == (0b0001, 0b1110)


def test_a_helper_that_two_roles_call_leaves_them_apart() -> None:
    one, other = Source("kernel.cu", 20), Source("kernel.cu", 30)
    waits = [ran(3, 0b0001, 50, one), ran(3, 0b1110, 50, other)]
    assert roles.find([*PROLOGUE, *waits]) == (0b0001, 0b1110)


def test_nothing_emulated_has_no_roles() -> None:
    assert roles.find([]) == ()


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, ALL), st.integers(1, 99))))
def test_each_warp_that_ran_has_one_role(lines: list[tuple[int, int, int]]) -> None:
    result = roles.find([ran(*item) for item in lines])
    every = 0
    for _, warps, _ in lines:
        every |= warps
    assert sum(result) == every
    assert all(not one & other for i, one in enumerate(result) for other in result[:i])


def names(functions: dict[int, str], comments: dict[int, str] | None = None) -> list[str]:
    lines = [*PROLOGUE, *PRODUCER, *CONSUMER]
    result = roles.name(
        roles.find(lines),
        lines,
        {("kernel.cu", line): name for line, name in functions.items()},
        {("kernel.cu", line): text for line, text in (comments or {}).items()},
    )
    return [role.name for role in result]


def test_roles_without_names_go_by_their_warps() -> None:
    assert names({}) == ["warp 0", "warps 1-3"]


def test_a_function_called_role_names_the_warps_that_alone_run_it() -> None:
    functions = {20: "_Z9load_rolePKf", 21: "_ZN2kx4waitEj", 31: "_Z8role_mmaILi2EEvv"}
    assert names(functions) == ["load", "mma"]


def test_a_function_that_is_most_of_what_a_role_runs_names_it() -> None:
    assert names({20: "_Z7producev", 21: "_Z7producev"}) == ["produce", "warps 1-3"]


def test_a_function_that_several_roles_run_names_none() -> None:
    functions = dict.fromkeys((20, 21, 30, 31), "_Z4workv")
    assert names(functions) == ["warp 0", "warps 1-3"]


def test_a_comment_goes_before_a_function() -> None:
    functions = {20: "_Z9load_rolePKf"}
    assert names(functions, {19: "producer", 29: "consumer"}) == ["producer", "consumer"]


def test_a_comment_names_the_role_of_the_next_line_that_one_role_alone_runs() -> None:
    assert names({}, {2: "producer"}) == ["producer", "warps 1-3"]


def test_two_roles_of_one_name_go_by_their_warps() -> None:
    assert names({}, {19: "worker", 29: "worker"}) == ["warp 0", "warps 1-3"]


@pytest.mark.parametrize(
    ("warps", "words"),
    [(0b1, "warp 0"), (0b1111100, "warps 2-6"), (0b100001111, "warps 0-3, 8"), (0b10, "warp 1")],
)
def test_warps_are_spelled_as_ranges(warps: int, words: str) -> None:
    assert roles.spell(warps) == words


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_Z9load_roleRK3CtaPK11CUtensorMap", "load_role"),
        ("_ZN2kx15cluster_ctarankEv", "cluster_ctarank"),
        ("_ZNK8ByPeriod5countEv", "count"),
        ("_ZZ4mainENKUlT_E_clI3ColEEDaS_", ""),
        ("plain_c", "plain_c"),
    ],
)
def test_mangled_names_are_told_by_their_last_identifier(mangled: str, name: str) -> None:
    assert roles.plain(mangled) == name
