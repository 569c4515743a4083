"""Gates on build evidence, both ways."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support import ROOT, Kx, edit
from typer.testing import CliRunner

from kernelexp.cli import app
from kernelexp.evidence import build
from kernelexp.model import errors
from kernelexp.report.runs.gates import say_time
from kernelexp.services.check import gates
from kernelexp.services.check.checking import TimeSpent


@pytest.fixture(scope="module")
def baseline(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The baseline of the project `scale`."""
    root = tmp_path_factory.mktemp("gated") / "scale"
    shutil.copytree(ROOT / "tests/projects/scale", root)
    shutil.copytree(warm, root / build.CACHE)
    words = ["check", "--update", "-C", str(root)]
    assert CliRunner().invoke(app, words).exit_code == errors.OK
    return root / gates.FILE


@pytest.fixture
def gated(scale: Path, baseline: Path) -> Path:
    """The project `scale` with a baseline of what it builds."""
    shutil.copy(baseline, scale)
    return scale


def change(root: Path, name: str, by: int) -> None:
    """Changes a figure of the baseline, of the variant with width 4."""
    path = root / "build-baseline.json"
    values = json.loads(path.read_text())
    values["variants"]["scale@sm_90a: width=4"][name] += by
    path.write_text(json.dumps(values))


def test_what_is_as_the_baseline_passes(gated: Path, kx: Kx) -> None:
    result = kx("check", cwd=gated)
    assert (result.exit_code, result.stdout) == (
        errors.OK,
        "3 of 3 variants match build-baseline.json.\n",
    )


@pytest.mark.parametrize("name", ["registers", "sass_bytes", "smem_bytes"])
def test_more_than_the_baseline_is_a_regression(gated: Path, kx: Kx, name: str) -> None:
    change(gated, name, -2)
    result = kx("check", cwd=gated)
    assert result.exit_code == errors.REGRESSION
    assert "worse     scale@sm_90a: width=4" in result.stdout


def test_less_than_the_baseline_fails_too_and_says_how_to_lock_it_in(gated: Path, kx: Kx) -> None:
    change(gated, "spill_bytes", 8)
    result = kx("check", cwd=gated)
    assert result.exit_code == errors.REGRESSION
    assert "spill_bytes 8 -> 0; lock it in with `kernelexp check --update`." in result.stdout


def test_an_update_locks_the_gain_in_as_a_diff_of_one_line(gated: Path, kx: Kx) -> None:
    before = (gated / "build-baseline.json").read_text().splitlines()
    edit(gated, "default: forward", "default: backward")
    edit(gated, "candidate: {width: 4}", "candidate: {width: 2}")
    edit(gated, "      - {width: 4}\n", "")
    kx("check", "--update", cwd=gated)
    after = (gated / "build-baseline.json").read_text().splitlines()
    assert len(after) == len(before) - 1


def test_a_variant_that_no_experiment_names_any_more_is_reported(gated: Path, kx: Kx) -> None:
    edit(gated, "candidate: {width: 4}", "candidate: {width: 2}")
    edit(gated, "      - {width: 4}\n", "")
    result = kx("check", cwd=gated)
    assert "gone      scale@sm_90a: width=4" in result.stdout


def test_a_new_variant_is_reported(gated: Path, kx: Kx) -> None:
    edit(gated, "      - {width: 4}", "      - {order: backward}")
    result = kx("check", cwd=gated)
    assert "new       scale@sm_90a: order=backward" in result.stdout


def test_a_variant_that_does_not_build_ends_with_3(gated: Path, kx: Kx) -> None:
    source = gated / "variants/scale/scale.cu"
    source.write_text(source.read_text() + "oops\n")
    result = kx("check", cwd=gated)
    assert result.exit_code == errors.BUILD
    assert "does not build: variants/scale/scale.cu(" in result.stdout


def test_another_compiler_shows_what_it_changed_variant_by_variant(gated: Path, kx: Kx) -> None:
    path = gated / "build-baseline.json"
    path.write_text(path.read_text().replace('"13.0.', '"12.9.'))
    change(gated, "registers", -2)
    result = kx("check", "--junit", "report.xml", cwd=gated)
    assert result.exit_code == errors.REGRESSION
    assert "build-baseline.json was made with nvcc 12.9." in " ".join(result.stdout.split())
    assert "worse     scale@sm_90a: width=4" in result.stdout
    suite = ElementTree.parse(gated / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")


def test_an_update_prints_what_it_accepts(gated: Path, kx: Kx) -> None:
    change(gated, "registers", 2)
    before = json.loads((gated / "build-baseline.json").read_text())
    was = before["variants"]["scale@sm_90a: width=4"]["registers"]
    lines = kx("check", "--update", cwd=gated).stdout.splitlines()
    assert lines == [
        "accepts   scale@sm_90a: width=4",
        f"          registers {was} -> {was - 2}.",
        "wrote build-baseline.json: 3 variants",
    ]


def test_markdown_is_a_table_and_goes_to_the_step_s_summary(
    gated: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(gated, "registers", -2)
    (gated / "summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(gated / "summary.md"))
    result = kx("check", "--markdown", cwd=gated)
    assert result.exit_code == errors.REGRESSION
    assert "| worse" in result.stdout
    assert "2 of 3 variants match build-baseline.json." in result.stdout
    assert (gated / "summary.md").read_text() == "before\n" + result.stdout


@pytest.mark.parametrize("words", [("check",), ("check", "--update")])
def test_a_baseline_with_a_conflict_is_left_and_the_sentence_leads_on(
    cold: Path, kx: Kx, words: tuple[str, ...]
) -> None:
    path = cold / "build-baseline.json"
    path.write_text("<<<<<<< ours\n{}\n")
    result = kx(*words, cwd=cold)
    assert result.exit_code == errors.USAGE
    sentence = "Remove it, then write it again with `kernelexp check --update`.\n"
    assert result.stderr.endswith(sentence)
    assert path.read_text().startswith("<<<<<<< ours")


def test_without_a_baseline_the_sentence_says_how_to_write_one(cold: Path, kx: Kx) -> None:
    result = kx("check", cwd=cold)
    assert result.exit_code == errors.USAGE
    assert "write it with `kernelexp check --update` and commit it." in result.stderr
    assert not (cold / ".kernelexp/build").exists()


@pytest.mark.parametrize("name", [".", "nowhere/report.xml"])
def test_a_report_that_can_not_be_written_is_refused_before_the_build(
    cold: Path, kx: Kx, name: str
) -> None:
    (cold / "build-baseline.json").write_bytes((ROOT / "build-baseline.json").read_bytes())
    result = kx("check", "--junit", name, cwd=cold)
    assert result.exit_code == errors.USAGE
    assert f"{name} can't be written: " in result.stderr
    assert not (cold / ".kernelexp/build").exists()


def test_junit_has_a_case_for_each_variant(gated: Path, kx: Kx) -> None:
    change(gated, "registers", -1)
    kx("check", "--junit", "report.xml", cwd=gated)
    suite = ElementTree.parse(gated / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")


def test_in_github_actions_a_failure_is_an_annotation(
    gated: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(gated, "registers", -1)
    monkeypatch.setattr("kernelexp.cli.check.in_github_actions", lambda: True)
    result = kx("check", cwd=gated)
    assert "::error file=variants/scale/scale.cu,title=kernelexp check::scale@" in result.stdout


@pytest.mark.slow
def test_with_emulate_a_wrong_variant_ends_with_4(gated: Path, kx: Kx) -> None:
    source = gated / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("each *= factor", "each += factor"))
    result = kx("check", "--emulate", cwd=gated)
    assert result.exit_code == errors.WRONG_RESULT
    assert "wrong     scale@sm_90a: defaults" in result.stdout
    assert "all 4,096 elements of y are wrong" in " ".join(result.stdout.split())


def test_the_time_is_told_with_the_compilers_part_of_it():
    spent = TimeSpent(building=44.2, compilers=71.6, executing=51.0)
    of = "nvcc, ptxas and cuobjdump 72 s, of all cores"
    assert say_time(spent) == f"building 44 s ({of}), executing 51 s"
    assert say_time(TimeSpent(building=0.3, compilers=0.0, executing=0.2)) == ""


def test_pedantic_without_emulation_is_a_sentence(scale: Path, kx: Kx) -> None:
    result = kx("check", "--pedantic", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "--pedantic is about what --emulate finds: add --emulate." in result.stderr


def test_only_the_kernels_that_are_named_are_checked(gated: Path, kx: Kx) -> None:
    change(gated, "registers", -2)
    path = gated / "build-baseline.json"
    path.write_text(path.read_text().replace('"scale@sm_90a: width=4"', '"other@sm_90a: width=4"'))
    result = kx("check", "scale", cwd=gated)
    assert "other@" not in result.stdout
    assert "new       scale@sm_90a: width=4" in result.stdout
    assert "there is no kernel 'scales'" in kx("check", "scales", cwd=gated).stderr
