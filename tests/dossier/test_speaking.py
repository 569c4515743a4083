"""One record speaks for a variant, and one for a pair, on every page."""

from __future__ import annotations

import itertools

import pytest
from support import ROOT

from kernelexp import project
from kernelexp.dossier import examine, speaking, subjects
from kernelexp.dossier.session import Session
from kernelexp.dossier.tree import Tree
from kernelexp.project import Project, parse_variant
from kernelexp.services import auditing
from kernelexp.system import toolchain
from kernelexp.system.toolchain import Toolchain

FREE = "flash_attention_hopper@sm_90a:schedule=free"
DEFAULTS = "flash_attention_hopper@sm_90a"


@pytest.fixture(scope="module")
def house() -> Project:
    return project.load(ROOT)


@pytest.fixture(scope="module")
def tools() -> Toolchain:
    return toolchain.find(None, ROOT / ".kernelexp")


@pytest.mark.parametrize(("before", "after"), [(DEFAULTS, FREE), (FREE, DEFAULTS)])
def test_compare_and_audit_give_one_ratio(
    house: Project, tools: Toolchain, before: str, after: str
) -> None:
    session = Session(tools=tools)
    one, other = subjects.find_both(house, before, after, session)
    audit = auditing.audit(house, after, before, Session(tools=tools))
    assert one.arm.measured
    assert other.arm.measured
    assert one.run == other.run == audit.after.run
    assert audit.audited.time_ratio == pytest.approx(
        other.arm.measured.time_us / one.arm.measured.time_us
    )


def test_an_audit_of_a_candidate_takes_the_run_that_interleaved_both(
    house: Project, tools: Toolchain
) -> None:
    audit = auditing.audit(house, "H1", None, Session(tools=tools))
    assert audit.audited.time_ratio_how == "interleaved in one run"
    assert audit.audited.time_ratio == pytest.approx(1.0436, abs=5e-4)
    assert audit.before.record == audit.after.record


def test_a_variant_has_one_time_wherever_it_is_shown(house: Project, tools: Toolchain) -> None:
    variant = parse_variant(house, "patch_embed_gemm@sm_90a:stages=4")
    recorded = speaking.of_variant(house, variant)
    subject = subjects.find(house, "patch_embed_gemm@sm_90a:stages=4", Session(tools=tools))
    explained = examine.variant(house, variant, Session(tools=tools))
    assert recorded
    assert recorded.arm.measured
    assert recorded.arm.measured == subject.arm.measured == explained.case.arm.measured


def test_a_run_that_timed_both_speaks_before_two_runs(house: Project) -> None:
    tree = Tree(house.root)
    pairs = 0
    for experiment in house.experiments.values():
        baseline, candidates = house.variants(experiment)
        for before, after in itertools.pairwise([baseline, *candidates]):
            one, other = speaking.of_pair(house, before, after, tree)
            if one and other and one.arm.measured and other.arm.measured:
                ratio = speaking.ratio(one, other)
                pairs += 1
                assert ratio
                assert ratio.how != "measured in separate runs"
    assert pairs > 40


def test_the_ratio_of_a_pair_is_the_inverse_of_the_other_order(house: Project) -> None:
    before, after = (parse_variant(house, text) for text in (DEFAULTS, FREE))
    ratio = speaking.ratio(*speaking.of_pair(house, before, after))
    inverse = speaking.ratio(*speaking.of_pair(house, after, before))
    assert ratio
    assert inverse
    assert ratio.value * inverse.value == pytest.approx(1.0)
