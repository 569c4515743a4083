"""Each arm that a gate can meet: what it is called, and how the command ends."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support import ROOT

from kernelexp.facts import metrics
from kernelexp.judge.verdict import contradicts_budget, contradicts_launches
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.model.arm import Arm, EmulatedEvidence, Status, Verdict
from kernelexp.model.errors import ConfigurationError, EnvironmentFault
from kernelexp.model.experiment import Variant
from kernelexp.model.problem import Budget
from kernelexp.services.check import gates
from kernelexp.services.check.gates import Baseline, GateFinding
from warpsim.launch import Launch

COMPILER = "13.0.88"
T3 = ROOT / "logs/runs/T3/20261121T000044Z-485c4d1d.measured.json"
VARIANT = Variant(kernel="transpose", arch="sm_90a", source="transpose.cu", axes={})


@pytest.fixture
def arm() -> Arm:
    """A built arm with 24 registers and 256 threads."""
    return msgspec.structs.replace(records.read_file(T3).baseline, emulated=None, refused=None)


def weigh(arm: Arm, *, gate: gates.Gate | None, emulated: bool = False) -> GateFinding:
    """The finding on `arm` where the baseline has `gate`."""
    baseline = Baseline(compiler=COMPILER, variants={} if gate is None else {"a": gate})
    (finding,) = gates.compare(baseline, COMPILER, {"a": arm}, {}, emulated=emulated)
    return finding


def refused(arm: Arm, status: Status, sentence: str = "Why.") -> Arm:
    return msgspec.structs.replace(
        arm, refused=Verdict(status=status, reason="because", sentence=sentence)
    )


def contradicting(arm: Arm) -> Arm:
    assert arm.build
    verdict = contradicts_budget(
        VARIANT, "budget()", Budget(threads=128, dynamic_smem_bytes=0), arm.build
    )
    return msgspec.structs.replace(arm, refused=verdict)


def test_a_contradiction_fails_with_its_own_sentence_and_3(arm: Arm) -> None:
    finding = weigh(contradicting(arm), gate=metrics.summarize(arm))
    assert finding.outcome == "failed"
    assert finding.sentence.startswith("variants/transpose: budget() says 128 threads")
    assert gates.exit_code([finding]) == errors.BUILD


def test_no_baseline_is_written_of_a_contradiction(arm: Arm, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a does not build"):
        gates.write_baseline(tmp_path, COMPILER, {"a": contradicting(arm)})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({}, ()),
        ({"block": (128, 1, 1)}, ("128 threads", "exports 256")),
        ({"dynamic_smem_bytes": 64}, ("64 dynamic_smem_bytes", "exports 0")),
        ({"cluster": (1, 2, 1)}, ("2 CTAs per cluster", "exports 1")),
    ],
)
def test_a_launch_is_compared_with_the_exports(
    arm: Arm, changed: dict[str, object], names: tuple[str, ...]
) -> None:
    assert arm.build
    launch = Launch(entry="transpose", grid=(8, 1, 1), block=(32, 8, 1))
    other = msgspec.structs.replace(launch, main=True, **changed)
    clear = msgspec.structs.replace(launch, entry="clear", block=(1, 1, 1))
    built = msgspec.structs.replace(arm.build, exports={**arm.build.exports, "cluster": 1})
    verdict = contradicts_launches(
        VARIANT, {"small": (launch, clear), "full": (clear, other)}, built
    )
    assert (verdict is None) == (not names)
    assert all(name in verdict.sentence for name in names if verdict)
    assert verdict is None or "at size 'full'" in verdict.sentence


def test_what_is_not_exported_may_be_launched_in_any_way(arm: Arm) -> None:
    assert arm.build
    launch = Launch(entry="transpose", grid=(8, 1, 1), block=(128, 1, 1), cluster=(2, 1, 1))
    built = msgspec.structs.replace(arm.build, exports={})
    assert contradicts_launches(VARIANT, {"full": (launch,)}, built) is None


@pytest.mark.parametrize("status", gates.WRONG)
def test_a_wrong_result_is_wrong_whatever_its_figures(arm: Arm, status: Status) -> None:
    finding = weigh(refused(arm, status), gate=metrics.summarize(arm))
    assert (finding.outcome, finding.sentence) == ("wrong", f"{status}: Why.")
    assert gates.exit_code([finding]) == errors.WRONG_RESULT


@pytest.mark.parametrize("evidence", [None, EmulatedEvidence(size="s", unsupported="no mma")])
def test_a_build_that_was_not_emulated_is_no_pass(
    arm: Arm, evidence: EmulatedEvidence | None
) -> None:
    other = msgspec.structs.replace(arm, emulated=evidence)
    assert weigh(other, gate=metrics.summarize(arm)).outcome == "same"
    finding = weigh(other, gate=metrics.summarize(arm), emulated=True)
    assert finding.outcome == "unchecked"
    assert gates.exit_code([finding]) == errors.ENVIRONMENT


def test_a_variant_that_has_become_impossible_is_worse(arm: Arm) -> None:
    impossible = refused(Arm(), Status.IMPOSSIBLE)
    assert weigh(impossible, gate="IMPOSSIBLE").outcome == "same"
    finding = weigh(impossible, gate=metrics.summarize(arm))
    assert finding.outcome == "worse"
    assert finding.sentence == "IMPOSSIBLE; the baseline has a build."


@pytest.mark.parametrize(
    ("registers", "sass_bytes", "outcome"),
    [(0, 0, "same"), (-1, 0, "worse"), (1, 0, "better"), (1, -1, "mixed")],
)
def test_figures_are_compared_both_ways(
    arm: Arm, registers: int, sass_bytes: int, outcome: str
) -> None:
    gate = metrics.summarize(arm)
    gate["registers"] += registers
    gate["sass_bytes"] += sass_bytes
    finding = weigh(arm, gate=gate)
    assert finding.outcome == outcome
    assert gates.exit_code([finding]) == (errors.OK if outcome == "same" else errors.REGRESSION)


def test_a_variant_is_new_or_gone_or_could_not_be_examined(arm: Arm) -> None:
    assert weigh(arm, gate=None).outcome == "new"
    baseline = Baseline(compiler=COMPILER, variants={"b": "IMPOSSIBLE", "c": "IMPOSSIBLE"})
    fault = EnvironmentFault("the disk is full.")
    unchecked, gone = gates.compare(baseline, COMPILER, {}, {"b": fault}, emulated=False)
    assert (unchecked.variant, unchecked.outcome) == ("b", "unchecked")
    assert unchecked.sentence == "could not be examined: the disk is full."
    assert (gone.variant, gone.outcome) == ("c", "gone")


def test_another_compiler_is_a_finding_even_where_it_changed_nothing(arm: Arm) -> None:
    baseline = Baseline(compiler="12.9", variants={"a": dict(metrics.summarize(arm))})
    compiler, same = gates.compare(baseline, COMPILER, {"a": arm}, {}, emulated=False)
    assert "made with nvcc 12.9, this is 13.0.88" in compiler.sentence
    assert (compiler.outcome, same.outcome) == ("compiler", "same")
    assert gates.exit_code([compiler, same]) == errors.REGRESSION


def test_a_word_in_a_baseline_that_does_not_print_is_spelled_out(tmp_path: Path) -> None:
    (tmp_path / gates.FILE).write_text('{"varia\u202ets": {}}', "utf-8")
    with pytest.raises(ConfigurationError, match=r"unknown field `varia\\u202ets`") as caught:
        gates.read_baseline(tmp_path)
    assert str(caught.value).isprintable()
