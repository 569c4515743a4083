"""Gates of experiments.yaml and check --since, from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fake_gpu import FakeGpu
from repositories import commit, git, repository
from support import Kx, edit

from kernelexp.model import errors

WIDE = "scale@sm_90a: width=4"


def gate(root: Path, *lines: str) -> Path:
    """Gives the kernel gates; each line is one, as YAML."""
    text = "".join(f"      - {line}\n" for line in lines)
    edit(root, "    targets:\n", f"    gates:\n{text}    targets:\n")
    return root


def said(kx: Kx, root: Path, *options: str) -> tuple[int, str]:
    """The exit code and what was printed, on one line."""
    result = kx("check", *options, cwd=root)
    return result.exit_code, " ".join((result.stdout + result.stderr).split())


def update(kx: Kx, root: Path) -> None:
    assert kx("check", "--update", cwd=root).exit_code == errors.OK


def test_conditions_on_instructions_are_met_or_say_how_many_there_are(scale: Path, kx: Kx) -> None:
    gate(scale, "{of: {width: 4}, instructions: ['LDG.128 >= 1', 'STL == 0', 'LDG >= 9']}")
    update(kx, scale)
    code, text = said(kx, scale)
    assert code == errors.REGRESSION
    assert f"missed {WIDE} LDG >= 9: there are 1, by 8." in text
    assert text.endswith("3 of 3 variants match build-baseline.json; 2 of 3 gates are met.")


def test_what_is_compared_with_the_baseline_is_committed_with_it(scale: Path, kx: Kx) -> None:
    gate(scale, "{of: {width: 4}, instructions: ['FMUL unchanged']}")
    update(kx, scale)
    assert said(kx, scale)[0] == errors.OK
    path = scale / "build-baseline.json"
    values = json.loads(path.read_text())
    assert values["variants"][WIDE]["FMUL"] == 4
    values["variants"][WIDE]["FMUL"] = 6
    path.write_text(json.dumps(values))
    code, text = said(kx, scale)
    assert code == errors.REGRESSION
    assert "FMUL unchanged: 6 -> 4; lock it in with `kernelexp check --update`." in text


def test_counters_of_an_emulation_are_compared_with_numbers_and_the_baseline(
    scale: Path, kx: Kx
) -> None:
    gate(
        scale,
        "{of: {width: 4}, emulated: {ptx__inst_executed: unchanged, ptx__nothing: == 0}}",
        "{of: {width: 2}, emulated: {ptx__inst_executed: '< 5'}}",
        "{of: {width: 4}, emulated: {sass__inst_executed_global_stores: == 32}}",
    )
    update(kx, scale)
    code, text = said(kx, scale)
    assert code == errors.REGRESSION
    assert "ptx__nothing: == 0: no emulation counts anything of this name." in text
    assert "scale@sm_90a: width=2 ptx__inst_executed: < 5: there are" in text
    assert "3 of 3 variants" in text
    assert "5 of 7 gates are met" in text


@pytest.mark.slow
def test_a_variant_that_is_wrong_on_purpose_passes_and_a_right_one_does_not(
    scale: Path, kx: Kx
) -> None:
    gate(scale, "{of: {width: 4}, expected: incorrect}")
    update(kx, scale)
    assert said(kx, scale) == (errors.OK, "3 of 3 variants match build-baseline.json.")
    code, text = said(kx, scale, "--emulate")
    assert code == errors.REGRESSION
    assert "expected: incorrect: its result is right" in text
    source = scale / "variants/scale/scale.cu"
    wrong = "if constexpr (KX_WIDTH == 4) each += factor; else each *= factor"
    source.write_text(source.read_text().replace("each *= factor", wrong))
    update(kx, scale)
    assert said(kx, scale, "--emulate")[0] == errors.OK


def test_a_gate_that_means_no_variant_is_missed(scale: Path, kx: Kx) -> None:
    gate(scale, "{of: {order: backward}, instructions: ['STL == 0']}")
    update(kx, scale)
    code, text = said(kx, scale)
    assert code == errors.REGRESSION
    assert "missed scale gate 1: no variant that an experiment names is meant" in text


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{instructions: ['STLL == 0']}", "gates[0].instructions[0]: 'STLL == 0': no SASS instruc"),
        ("{emulated: {registers: == 1}}", "gates[0].emulated.registers: 'registers' is nothing th"),
        ("{emulated: {ptx__inst_executed: 5}}", "'5' may be a value or a change"),
        ("{of: {widht: 4}, measured: true}", "gates[0].of.widht: unknown axis 'widht'"),
        ("{arch: sm_80, measured: true}", "gates[0].arch: this kernel has no target 'sm_80'"),
        ("{of: {width: 4}}", "gates[0]: this demands nothing: add instructions, emulated"),
        ("{measured: true, expected: incorrect}", "gates[0].measured: a variant that is expected"),
    ],
)
def test_a_gate_that_can_not_be_judged_is_a_mistake_with_its_place(
    line: str, sentence: str, cold: Path, kx: Kx
) -> None:
    code, text = said(kx, gate(cold, line))
    assert code == errors.USAGE
    assert sentence in text


# ---- since a revision ----------------------------------------------------------------------------


@pytest.fixture
def committed(scale: Path, kx: Kx) -> Path:
    """The project `scale` with its baseline, in a repository."""
    update(kx, scale)
    return repository(scale)


def test_since_a_revision_nothing_is_checked_where_nothing_changed(committed: Path, kx: Kx) -> None:
    (committed / "README.md").write_text("Words.\n")
    assert said(kx, committed, "--since", "HEAD") == (
        errors.OK,
        "0 of 0 variants match build-baseline.json; 3 unchanged since HEAD.",
    )
    assert not list((committed / ".kernelexp/worktrees").iterdir())


def test_since_a_revision_a_new_variant_counts_and_others_do_not(committed: Path, kx: Kx) -> None:
    edit(committed, "      - {width: 4}", "      - {order: backward}")
    code, text = said(kx, committed, "--since", "HEAD")
    assert code == errors.REGRESSION
    assert "new scale@sm_90a: order=backward" in text
    assert text.endswith("0 of 1 variants match build-baseline.json; 3 unchanged since HEAD.")


@pytest.mark.parametrize(("revision", "sentence"), [("nope", "git knows no revision 'nope'")])
def test_a_revision_that_is_none_is_a_sentence(
    committed: Path, kx: Kx, revision: str, sentence: str
) -> None:
    code, text = said(kx, committed, "--since", revision)
    assert code == errors.USAGE
    assert sentence in text


# ---- time ----------------------------------------------------------------------------------------


@pytest.fixture
def timed(scale: Path, kx: Kx) -> Path:
    """The project with a gate on the time of one variant, whose code has changed since."""
    gate(scale, "{of: {width: 4}, measured: true}")
    update(kx, scale)
    repository(scale)
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("each *= factor", "each *= factor * 1.5f"))
    return scale


def test_the_baseline_s_own_code_needs_no_gpu(scale: Path, kx: Kx) -> None:
    gate(scale, "{of: {width: 4}, measured: true}")
    update(kx, scale)
    assert said(kx, scale, "--measured")[0] == errors.OK


@pytest.mark.slow
def test_without_a_gpu_a_gate_on_time_is_skipped_unless_it_is_required(timed: Path, kx: Kx) -> None:
    _, text = said(kx, timed)
    assert f"skipped {WIDE} measured: its code has changed, and it is not timed: " in text
    assert said(kx, timed, "--measured")[0] == errors.ENVIRONMENT


@pytest.mark.parametrize(
    ("candidate", "outcome"),
    [
        ("1.02", "worse"),
        pytest.param("0.97", "better", marks=pytest.mark.slow),
        pytest.param("1.001", "same", marks=pytest.mark.slow),
    ],
)
def test_changed_code_is_timed_beside_the_baseline_s(
    timed: Path,
    kx: Kx,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    candidate: str,
    outcome: str,
) -> None:
    FakeGpu(tmp_path / "locks", monkeypatch).takes(f"{candidate} if name == 'candidate' else 1.0")
    result = kx("check", "--json", cwd=timed)
    (answer,) = [item for item in json.loads(result.stdout) if item["gate"] == "measured"]
    assert answer["outcome"] == outcome
    assert "Compared with" in answer["sentence"]


@pytest.mark.slow
def test_a_shallow_clone_is_not_timed_against_itself(
    timed: Path, kx: Kx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(timed, "slower")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", timed.as_uri(), str(clone))
    (clone / ".kernelexp").symlink_to(timed / ".kernelexp")
    FakeGpu(tmp_path / "locks", monkeypatch).takes("1.0")
    code, text = said(kx, clone, "--measured")
    assert code == errors.ENVIRONMENT
    assert "can't be seen in a shallow clone: run `git fetch --unshallow`" in text
    for words in (("check", "--since", "HEAD~1"), ("bisect", "S1", "--good", "a", "--bad", "HEAD")):
        assert "this clone is shallow: `git fetch --unshallow`" in kx(*words, cwd=clone).stderr


@pytest.mark.slow
def test_a_commit_of_new_code_needs_no_checkout_of_the_old(timed: Path, kx: Kx) -> None:
    update(kx, timed)
    commit(timed, "faster")
    assert said(kx, timed, "--measured")[0] == errors.OK


def test_records_that_drift_fail_until_the_drift_is_accepted(
    scale: Path, kx: Kx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate(scale, "{of: {width: 4}, measured: true}")
    update(kx, scale)
    FakeGpu(tmp_path / "locks", monkeypatch).takes("1.0")
    kx("run", "S1", "--no-emulate", cwd=scale)
    (path,) = (scale / "logs/runs/S1").iterdir()
    record = json.loads(path.read_text())
    (effect,) = record["estimate"]["effects"]
    for day in range(1, 19):  # 0.4% a day
        record["run"] = f"202701{day:02}T000000Z-00000000"
        effect |= {name: effect[name] * 1.004 for name in ("ratio", "low", "high")}
        (path.parent / f"{record['run']}.measured.json").write_text(json.dumps(record))
    code, text = said(kx, scale)
    assert code == errors.REGRESSION
    assert re.search(rf"worse {WIDE} drift: [67]\.\d% slower than its fastest of 19 records", text)
    assert "% since 202701" in text
    accepted = kx("check", "--update", cwd=scale).stdout
    assert "times_after new -> 20270118T000000Z-00000000" in accepted
    assert said(kx, scale)[0] == errors.OK
