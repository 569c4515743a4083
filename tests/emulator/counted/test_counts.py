"""Emulated counts held to ncu's, of launches that an H200 executed."""

from __future__ import annotations

import functools
import hashlib

import pytest

from . import golden, launches, own, page
from .comparison import execute, load, pairs
from .launches import COUNTED, Made
from .program import ENVIRONMENT, Program, checkout
from .public import PUBLIC
from .reasons import reason
from .sgemm import SGEMM

_QUICK = "memory"


def apart(group: str, made: list[Made]) -> list[str]:
    """What differs from ncu's counts for no reason that is known, by launch; the code must be that
    which was counted."""
    recorded, answer = golden.recorded(), []
    module = functools.cache(load)
    for item in made:
        name = item.case.name
        counted = recorded.launches[group][name]
        digest = item.code.digest(counted.entry)
        assert digest == counted.code, f"{name}: not the code that ncu counted"
        result = execute(module(item.code), item)
        assert not result.findings, f"{name}: {result.findings}"
        answer += [
            f"{name}: {what}: {mine:,} emulated, {ncu:,} by ncu"
            for what, mine, ncu in pairs(result, counted, recorded.metrics)
            if mine != ncu and not reason(group, name, what, (mine, ncu), counted)
        ]
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("name", own.SIMPLE)
def test_a_variant_of_this_repository_is_counted_as_by_ncu(name: str) -> None:
    assert apart("own", launches.of_variant(name)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", own.HOPPER)
def test_a_variant_for_hopper_is_counted_as_by_ncu(name: str) -> None:
    assert apart("hopper", launches.of_variant(name)) == []


@pytest.mark.parametrize(
    "area",
    [pytest.param(a, marks=() if a == _QUICK else pytest.mark.slow) for a in COUNTED],
)
def test_the_conformance_programs_are_counted_as_by_ncu(area: str) -> None:
    assert apart("conformance", launches.of_area(area)) == []


@pytest.mark.slow
@pytest.mark.parametrize("program", [SGEMM, *PUBLIC], ids=lambda program: program.name)
def test_a_public_kernel_is_counted_as_by_ncu(program: Program) -> None:
    root = checkout(program)
    if root is None:
        pytest.skip(f"{ENVIRONMENT} has no checkout of {program.repository}")
    text = (root / program.file).read_bytes()
    source = golden.recorded().sources[program.name]
    assert hashlib.sha256(text).hexdigest() == source.sha256, f"check out {program.commit}"
    assert apart("sgemm" if program is SGEMM else "public", launches.of_program(program)) == []


def test_the_page_has_the_figures_that_ncu_counted() -> None:
    table = page.PAGE.read_text().partition(page.BEGIN)[2].partition(page.END)[0]
    shown = {}
    for line in table.splitlines()[2:]:
        name, *figures = (cell.strip() for cell in line.strip("|").split("|"))
        shown[name] = figures[2::3]
    recorded = golden.recorded().launches["sgemm"]
    assert shown == {name: page.cells(counted) for name, counted in recorded.items()}
