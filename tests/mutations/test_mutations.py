"""Every mutant is found at least as well as tests/mutations/expected.txt has it.

After a change of a kernel, a rule or a check: `python benchmarks/mutation_rate.py --update`.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from kernelexp.emulator import compiled
from mutations import expected, judging
from mutations.judging import Judge
from mutations.rules import RULES
from mutations.small import SMALL
from mutations.subjects import SUBJECTS

pytestmark = pytest.mark.xdist_group("mutations")  # One process compiles the small kernels.
SAMPLE = 20
UPDATE = "python benchmarks/mutation_rate.py --update"


@pytest.fixture(scope="module", autouse=True)
def _with_compiled_loops(library: Path) -> Iterator[None]:
    compiled.load(library)
    yield
    compiled.unload()


@functools.cache
def judge(kernel: str) -> Judge:
    return Judge(kernel, SUBJECTS[kernel].source())


def worse(keys: Iterable[str]) -> list[str]:
    """Mutants of which the emulator says less than it did, or accuses without a fault."""
    known, found = expected.read(), []
    for key in keys:
        its = judge(key.split(" | ")[0])
        answer = its.judge(its.mutants[key])
        allowed = judging.OUTCOMES.index(expected.outcome(known[key]))
        if judging.OUTCOMES.index(answer.outcome) > allowed:
            found.append(f"{answer.line()}, was {known[key]}")
    return found


def test_a_sample_of_the_mutants_is_found_as_before() -> None:
    small = {kernel.name for kernel in SMALL}
    keys = sorted(key for key in expected.read() if key.split(" | ")[0] in small)
    assert not worse(random.Random(len(keys)).sample(keys, SAMPLE))


@pytest.mark.parametrize("kernel", [each.name for each in SMALL])
def test_the_mutants_of_a_small_kernel_are_those_expected(kernel: str) -> None:
    known = {key for key in expected.read() if key.split(" | ")[0] == kernel}
    assert set(judge(kernel).mutants) == known, f"the rules or the kernel changed: {UPDATE}"


@pytest.mark.slow
@pytest.mark.parametrize("kernel", SUBJECTS)
def test_every_mutant_is_found_as_before(kernel: str) -> None:
    known = {key for key in expected.read() if key.split(" | ")[0] == kernel}
    assert set(judge(kernel).mutants) == known, f"the rules or the kernel changed: {UPDATE}"
    assert not worse(sorted(known))


def test_at_least_97_of_100_mutants_that_do_harm_are_found() -> None:
    said = list(expected.read().values())
    missed = said.count(judging.NOT_FOUND)
    seen = sum(each.split()[0] in judging.SEEN for each in said)
    assert len(said) > 1000
    assert seen / (seen + missed) >= 0.97


def test_no_equivalent_mutant_is_accused() -> None:
    assert not [k for k, said in expected.read().items() if said.startswith(judging.ACCUSED)]


def test_every_rule_makes_mutants() -> None:
    kinds = {rule.kind for rule in RULES}
    made = {mutant.kind for each in SMALL for mutant in judge(each.name).mutants.values()}
    assert made == kinds
