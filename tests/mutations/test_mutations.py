"""Every mutant is found at least as well as tests/mutations/expected.txt has it.

After a change of a kernel, a rule or a check: `python benchmarks/mutation_rate.py --update`.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from support import ROOT

from mutations import expected, judging, rules_of_text
from mutations.case import TextMutant
from mutations.judging import Judge
from mutations.rules import RULES
from mutations.small import SMALL
from mutations.subjects import SUBJECTS
from mutations.texts import TEXTS
from warpsim import compiled

pytestmark = pytest.mark.xdist_group("mutations")  # One process compiles the small kernels.
SAMPLE = 20
UPDATE = "python benchmarks/mutation_rate.py --update"
SOURCES = {kernel.name: kernel for kernel in TEXTS}


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
    known, result = expected.read(), []
    for key in keys:
        its = judge(key.split(" | ")[0])
        answer = its.judge(its.mutants[key])
        allowed = judging.OUTCOMES.index(expected.outcome(known[key]))
        if judging.OUTCOMES.index(answer.outcome) > allowed:
            result.append(f"{answer.line()}, was {known[key]}")
    return result


def of(kernel: str) -> set[str]:
    """Keys in expected.txt."""
    return {key for key in expected.read() if key.split(" | ")[0] == kernel}


def test_a_sample_of_the_mutants_is_found_as_before() -> None:
    small = {kernel.name for kernel in SMALL}
    keys = sorted(key for key in expected.read() if key.split(" | ")[0] in small)
    assert not worse(random.Random(len(keys)).sample(keys, SAMPLE))


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("transpose_twice.cu | __syncthreads 2 | dropped", marks=pytest.mark.slow),
        "ring_of_stores.cu | wait 2 | after the next statement",
    ],
)
def test_a_mutant_of_a_source_is_found_as_before(key: str) -> None:
    kernel = SOURCES[key.split(" | ")[0]]
    ptx = kernel.ptx(kernel.texts()[key])
    assert ptx is not None
    answer = Judge(kernel.name, kernel.of.source()).judge(TextMutant(key, ptx))
    assert f"{answer.outcome} {' '.join(answer.said)}" == expected.read()[key]


@pytest.fixture(scope="module")
def texts() -> set[str]:
    """Keys of all that the rules make of sources."""
    return {key for kernel in TEXTS for key in kernel.texts()}


def test_the_mutants_of_sources_are_made_as_when_they_were_judged(texts: set[str]) -> None:
    # Those that do not compile, or change nothing, are not in expected.txt.
    judged = {key for kernel in SOURCES for key in of(kernel)}
    assert judged <= texts, f"the rules or a source changed: {UPDATE}"


@pytest.mark.parametrize("kernel", [item.name for item in SMALL])
def test_the_mutants_of_a_small_kernel_are_those_expected(kernel: str) -> None:
    assert set(judge(kernel).mutants) == of(kernel), f"the rules or the kernel changed: {UPDATE}"


@pytest.mark.slow
@pytest.mark.parametrize("kernel", SUBJECTS)
def test_every_mutant_is_found_as_before(kernel: str) -> None:
    assert set(judge(kernel).mutants) == of(kernel), f"the rules or the kernel changed: {UPDATE}"
    assert not worse(sorted(of(kernel)))


def test_at_least_97_of_100_mutants_that_do_harm_are_found() -> None:
    result = list(expected.read().values())
    missed = result.count(judging.NOT_FOUND)
    seen = sum(item.split()[0] in judging.SEEN for item in result)
    assert len(result) > 1400
    assert seen / (seen + missed) >= 0.97


def test_no_equivalent_mutant_is_accused() -> None:
    assert not [k for k, item in expected.read().items() if item.startswith(judging.ACCUSED)]


def test_every_rule_makes_mutants() -> None:
    kinds = {rule.kind for rule in RULES}
    result = {mutant.kind for item in SMALL for mutant in judge(item.name).mutants.values()}
    assert result == kinds


def test_every_rule_of_text_makes_mutants(texts: set[str]) -> None:
    result = {key.split(" | ")[2] for key in texts}
    assert result == {rule.change for rule in rules_of_text.RULES}


def test_the_documentation_shows_these_figures() -> None:
    outcomes = Counter(expected.outcome(item) for item in expected.read().values())
    cells = [str(outcomes[outcome] or "") for outcome in judging.OUTCOMES[:8]]
    row = " | ".join(["| all", str(outcomes.total()), *cells, ""]).replace("  ", " ")
    page = (ROOT / "warpsim" / "docs" / "conformance.md").read_text()
    assert page.count(row) == 1, f"{row}: python benchmarks/mutation_rate.py --expected"
