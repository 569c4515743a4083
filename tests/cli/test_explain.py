"""The command `explain`, and what `run` and `show` say of expectations."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from judge_cases import PADDED, PLAIN, profile
from support import ROOT, Kx, edit

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.model import arm
from kernelexp.model.errors import BuildError, UsageError
from kernelexp.model.record import Profile, Record
from kernelexp.system import disk

# One worker emulates the transpose for all of them.
pytestmark = pytest.mark.xdist_group("transpose")

NO_CHANGES = "    changes: [one 16-byte access instead of four]"
EXPECT = "    expect: {time_ms: -30%, launch__registers_per_thread: unchanged, sass_bytes: < 9999}"
PUBLISHED = "logs/runs/S1/published.json"


def expecting(root: Path) -> None:
    edit(root, NO_CHANGES, f"{EXPECT}\n{NO_CHANGES}")


def lines(text: str) -> list[str]:
    """Those that are wider than the page would be cut on a terminal."""
    assert max(map(len, text.splitlines())) <= 80
    return text.splitlines()


def test_run_says_what_became_of_expectations_and_keeps_them(scale: Path, kx: Kx) -> None:
    expecting(scale)
    shown = lines(kx("run", "S1", "--no-emulate", cwd=scale).stdout)
    assert any("SASS, B" in line and "met" in line for line in shown)
    (path,) = (scale / "logs/runs/S1").glob("*.build.json")
    record = msgspec.json.decode(path.read_bytes(), type=Record)
    assert record.expect[0]["time_ms"] == "-30%"
    again = lines(kx("show", record.run, cwd=scale).stdout)
    assert [line for line in shown if "SASS, B" in line] == [
        line for line in again if "SASS, B" in line
    ]


def test_json_has_each_expectation_with_its_result(scale: Path, kx: Kx) -> None:
    expecting(scale)
    (ran,) = json.loads(kx("run", "S1", "--no-emulate", "--json", cwd=scale).stdout)
    by_name = {item["metric"]: item for item in ran["expectations"]["candidate"]}
    assert by_name["time_ms"]["result"] == "not measured"
    assert by_name["time_ms"]["sentence"].endswith("kernelexp run S1, on a machine with one H200")
    assert by_name["sass_bytes"]["result"] == "met"
    shown = json.loads(kx("show", "S1", "--json", cwd=scale).stdout)
    assert shown["expectations"]["candidate"][2] == by_name["sass_bytes"]


def test_an_expectation_that_was_written_after_the_record_is_said_to_be(
    scale: Path, kx: Kx
) -> None:
    kx("run", "S1", "--no-emulate", cwd=scale)
    expecting(scale)
    words = "The expectation was written after that record."
    assert words in kx("show", "S1", cwd=scale).stdout
    shutil.rmtree(scale / "logs")  # two runs of the same second have no order
    kx("run", "S1", "--no-emulate", cwd=scale)
    assert words not in kx("show", "S1", cwd=scale).stdout


def test_explain_says_what_differs_and_what_would_decide(scale: Path, kx: Kx) -> None:
    expecting(scale)
    result = kx("explain", "S1", cwd=scale)
    assert result.exit_code == 0
    page = " ".join(" ".join(lines(result.stdout)).split())
    assert "Verdict: none" in page
    assert "differs most" in page
    assert "kind goes" not in page  # with the time, of which there is none
    assert "kernelexp run S1, on a machine with one H200" in page
    assert "kernelexp profile S1, on a machine with one H200: which limit either arm is" in page
    assert not (scale / "logs").exists()


def test_the_page_has_few_rows_and_all_of_them_with_verbose(scale: Path, kx: Kx) -> None:
    short = lines(kx("explain", "S1", cwd=scale).stdout)
    long = lines(kx("explain", "S1", "--verbose", cwd=scale).stdout)
    assert sum(line.split()[0][:-1].isdigit() for line in short if line.split()) <= 5
    assert len(long) > len(short) + 10


def test_explain_shows_what_is_kept_where_it_does_not_emulate(scale: Path, kx: Kx) -> None:
    assert kx("emulate", "S1", cwd=scale).exit_code == 0
    values = json.loads(kx("explain", "S1", "--no-emulate", "--json", cwd=scale).stdout)
    causes = values["differences"]["causes"]
    assert {item["kind"] for cause in causes for item in cause["told"]} == {"built", "emulated"}


def test_explain_as_json_and_as_markdown(scale: Path, kx: Kx) -> None:
    values = json.loads(kx("explain", "S1", "--no-emulate", "--json", cwd=scale).stdout)
    assert values["candidate"]["width"] == 4
    causes = values["differences"]["causes"]
    assert "built" in {item["kind"] for cause in causes for item in cause["told"]}
    assert values["uses"]["baseline"][0]["resource"] == "tensor cores"
    text = kx("explain", "S1", "--no-emulate", "--markdown", cwd=scale).stdout
    assert text.startswith("# S1 Four floats per thread: width=4")
    assert "| differs most" in text


def test_another_candidate_is_explained_by_its_number(scale: Path, kx: Kx) -> None:
    def candidate(number: int) -> object:
        options = ("--no-emulate", "--json", "--candidate", str(number))
        return json.loads(kx("explain", "S2", *options, cwd=scale).stdout)["candidate"]["width"]

    assert [candidate(1), candidate(2)] == [2, 4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("explain", "S2", "--candidate", "3"), "S2 has 2 candidates: there is no --candidate 3."),
        (("explain", "S9"), "there is no experiment 'S9'"),
        (("explain", "scales"), "there is no kernel 'scales'"),
        (("explain", "S1", "--set", "width=2"), "--set goes with a variant"),
        (("explain", "scale", "--candidate", "1"), "--candidate goes with an experiment"),
    ],
)
def test_what_does_not_exist_is_a_sentence(
    scale: Path, kx: Kx, arguments: tuple[str, ...], words: str
) -> None:
    result = kx(*arguments, cwd=scale)
    assert result.exit_code == UsageError.exit_code
    assert words in result.stderr


@pytest.fixture
def without_profiles(tmp_path: Path) -> Path:
    """This repository's kernels, builds, experiments, and the records of an H200, whose profiles
    tests bring along."""
    (tmp_path / "logs/runs/T1").mkdir(parents=True)
    (ROOT / build.CACHE).mkdir(exist_ok=True)
    for name in ("variants", build.CACHE, "experiments.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    for record in (ROOT / "logs/runs/T1").glob("2026112[01]T*"):
        (tmp_path / "logs/runs/T1" / record.name).symlink_to(record)
    return tmp_path


def test_opportunities_of_the_transpose_are_its_planted_conflicts(
    without_profiles: Path, kx: Kx
) -> None:
    result = kx("explain", "transpose@sm_90a:layout=plain", cwd=without_profiles)
    page = " ".join(" ".join(lines(result.stdout)).split())
    assert "1. 60.2% shared loads: 32.0-way bank conflicts" in page
    assert "100% of it at variants/transpose/transpose.cu:59" in page
    padded = kx("explain", "transpose@sm_90a", cwd=without_profiles)
    assert "No rule found anything." in padded.stdout


@pytest.mark.slow
def test_opportunities_as_json(without_profiles: Path, kx: Kx) -> None:
    variant = "transpose@sm_90a:layout=plain"
    result = kx("explain", variant, "--json", cwd=without_profiles)
    (answer,) = json.loads(result.stdout)["opportunities"]
    assert answer["rule"] == "SharedMemoryConflicts"
    assert answer["figures"]["memory_l1_wavefronts_shared"] == 138_412_032  # as ncu counts it


@pytest.fixture
def with_profiles(without_profiles: Path) -> Path:
    """The same with two profiles that were taken of the transpose on an H200."""
    tmp_path = without_profiles
    loaded = project.load(tmp_path)
    for number, (launch, layout) in enumerate(((PADDED, "padded"), (PLAIN, "plain"))):
        begun = arm.begin(loaded.variant("transpose", "sm_90a", {"layout": layout}))
        taken = Profile(
            version=1,
            run=f"20261122T04182{number}Z-0000000{number}",
            provenance="imported",
            created="2026-11-22",
            arm=msgspec.structs.replace(begun, profiled=profile(launch)),
        )
        path = tmp_path / f"logs/profiles/{taken.run}.json"
        disk.write(path, msgspec.json.encode(taken))
    return tmp_path


def test_explain_with_profiles_says_that_the_nearest_limit_moved(
    with_profiles: Path, kx: Kx
) -> None:
    result = kx("explain", "T1", "--no-emulate", cwd=with_profiles)
    page = " ".join(" ".join(lines(result.stdout)).split())
    assert (
        "The limit moved: the baseline is bound by the L1 data pipe (87.5% of the peak), the "
        "candidate is bound by L2 (82.8%)." in page
    )
    assert "kernelexp profile" not in page


@pytest.mark.slow
def test_profiles_of_former_sources_and_of_other_conditions_are_warned_of(
    with_profiles: Path, kx: Kx
) -> None:
    for path, control in zip(
        sorted((with_profiles / "logs/profiles").glob("20261122T04182*")),
        ("none", "base"),
        strict=True,
    ):
        kept = json.loads(path.read_text())
        kept["arm"]["profiled"]["clock_control"] = control
        kept["arm"]["files"] = {"variants/transpose/transpose.cu": "0" * 64}
        path.with_name(path.name.replace("20261122", "20991122")).write_text(json.dumps(kept))
    result = kx("explain", "T1", "--no-emulate", cwd=with_profiles)
    page = " ".join(" ".join(lines(result.stdout)).split())
    changed = "was profiled before these changed: variants/transpose/transpose.cu."
    assert f"The baseline {changed}" in page
    assert f"The candidate {changed}" in page
    assert "The arms were profiled under different conditions: clock control base and none" in page

    result = kx("explain", "transpose@sm_90a", "--no-emulate", cwd=with_profiles)
    page = " ".join(result.stdout.split())
    assert "profiled elsewhere on NVIDIA H200" in page
    assert "Profiled before these changed: variants/transpose/transpose.cu." in page


@pytest.mark.slow
def test_a_profile_that_others_published_is_not_taken_for_our_own(
    with_profiles: Path, kx: Kx
) -> None:
    for path in (with_profiles / "logs/profiles").glob("20261122T*.json"):
        kept = json.loads(path.read_text())
        path.write_text(json.dumps({**kept, "provenance": "published", "source": "a paper"}))
    page = " ".join(kx("explain", "T1", "--no-emulate", cwd=with_profiles).stdout.split())
    assert "The baseline was profiled by others: 20261122T" in page

    words = ("explain", "transpose@sm_90a", "--no-emulate")
    page = " ".join(kx(*words, cwd=with_profiles).stdout.split())
    assert "profiled by others on NVIDIA H200" in page


def test_an_impossible_candidate_has_its_reason_and_no_limits(scale: Path, kx: Kx) -> None:
    edit(scale, "candidate: {width: 4}", "candidate: {width: 4, order: backward}")
    page = " ".join(kx("explain", "S1", "--no-emulate", cwd=scale).stdout.split())
    assert "The candidate has no figures: IMPOSSIBLE. order backward exists for" in page
    assert "limit" not in page
    assert "What would decide" not in page
    values = json.loads(kx("explain", "S1", "--no-emulate", "--json", cwd=scale).stdout)
    assert values["conclusion"] == []


def test_opportunities_of_an_impossible_variant_are_a_sentence(scale: Path, kx: Kx) -> None:
    result = kx("explain", "scale:width=4,order=backward", cwd=scale)
    assert result.exit_code == BuildError.exit_code
    assert "IMPOSSIBLE: order backward exists for widths 1 and 2 only." in result.stderr


def test_the_second_candidate_is_named_as_elsewhere(scale: Path, kx: Kx) -> None:
    by_number = kx("explain", "S2:2", "--no-emulate", cwd=scale)
    by_option = kx("explain", "S2", "--candidate", "2", "--no-emulate", cwd=scale)
    assert by_number.exit_code == 0, by_number.output
    assert by_number.stdout == by_option.stdout
    assert kx("explain", "S2:3", "--no-emulate", cwd=scale).exit_code == 2


def test_where_nothing_was_counted_no_kernel_is_said_to_wait_for_latency(kx: Kx) -> None:
    words = " ".join(kx("explain", "A1", "--no-emulate").stdout.split())
    assert "latency" not in words
    assert "Which limit is nearest is not known: an arm's instructions were not counted." in words
    assert "needs at least 0.2% of device memory: what it executes was not counted" in words
    assert "on a machine with one L4:" in words
    assert "Not known: L1 data pipe" in words


def test_a_published_figure_is_said_to_be_of_its_author_s_build(kx: Kx) -> None:
    words = " ".join(kx("explain", "c32ab7a", "--no-emulate").stdout.split())
    assert "IMPROVED (published_figures). 9.6% faster." in words
    assert "of its author's build: 222 registers per thread (this build: 128)." in words
    assert "Both arms are bound by L1: 82.0% of the peak, then 85.0%." in words
