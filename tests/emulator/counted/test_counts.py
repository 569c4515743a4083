"""Emulated counts held to ncu's, of launches that an H200 executed."""

from __future__ import annotations

import functools
import hashlib

import pytest

from . import golden, launches, own
from .comparison import differences, execute, load
from .launches import Made
from .program import ENVIRONMENT, Program, checkout
from .public import PUBLIC
from .sgemm import SGEMM

_QUICK = "transpose@sm_90a"
_SLOW = pytest.mark.slow


def held(group: str, made: list[Made]) -> dict[str, dict[str, str]]:
    """What differs from ncu's counts, by launch; the code must be that which was counted."""
    recorded, found = golden.recorded(), {}
    module = functools.cache(load)
    for each in made:
        counted = recorded.launches[group][each.case.name]
        digest = each.code.digest(counted.entry)
        assert digest == counted.code, f"{each.case.name}: not the code that ncu counted"
        result = execute(module(each.code), each)
        assert not result.findings, f"{each.case.name}: {result.findings}"
        if apart := differences(result, counted, recorded.metrics):
            found[each.case.name] = apart
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == _QUICK else _SLOW) for n in own.SIMPLE]
)
def test_a_variant_of_this_repository_is_counted_as_by_ncu(name: str) -> None:
    assert held("own", launches.of_variant(name)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", own.HOPPER)
def test_a_variant_for_hopper_is_counted_as_by_ncu(name: str) -> None:
    assert held("hopper", launches.of_variant(name)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("area", launches.GROUPS["conformance"][1])
def test_the_conformance_programs_are_counted_as_by_ncu(area: str) -> None:
    assert held("conformance", launches.of_area(area)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("program", (SGEMM, *PUBLIC), ids=lambda program: program.name)
def test_a_public_kernel_is_counted_as_by_ncu(program: Program) -> None:
    root = checkout(program)
    if root is None:
        pytest.skip(f"{ENVIRONMENT} has no checkout of {program.repository}")
    text = (root / program.file).read_bytes()
    source = golden.recorded().sources[program.name]
    assert hashlib.sha256(text).hexdigest() == source.sha256, f"check out {program.commit}"
    assert held("sgemm" if program is SGEMM else "public", launches.of_program(program)) == {}
