"""accept, reject and replace: what they write, what they show, what they change."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from repositories import commit, git, repository
from support import ROOT, Kx, edit


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The project `scale` without a cache: nothing here builds."""
    return Path(shutil.copytree(ROOT / "tests/projects/scale", tmp_path / "scale"))


def listed(kx: Kx, root: Path) -> dict[str, Any]:
    return dict(json.loads(kx("list", "--json", cwd=root).stdout))


def test_an_acceptance_says_who_when_and_at_which_commit(bare: Path, kx: Kx) -> None:
    repository(bare)
    head = git(bare, "rev-parse", "HEAD")
    result = kx("accept", "S1", "--commit", "HEAD", "--note", "simpler code", cwd=bare)
    assert result.exit_code == 0
    assert f"by Ada Test at {head[:10]}: simpler code." in " ".join(result.stdout.split())
    (path,) = (bare / "logs/decisions").glob("*.json")
    values = json.loads(path.read_text())
    assert (values["who"], values["commit"]) == ("Ada Test", head)
    assert values["axes"] == {"width": 4, "order": "forward"}


def test_a_decision_stands_beside_the_verdict_in_list_show_and_log(scale: Path, kx: Kx) -> None:
    kx("run", "S1", "--no-emulate", cwd=scale)
    stdout = kx("accept", "S1", "--why", "One wide access.", cwd=scale).stdout
    assert "The verdict is UNMEASURED" in stdout
    rows = kx("list", cwd=scale).stdout.splitlines()
    assert any("S1" in row and "UNMEASURED" in row and "accepted" in row for row in rows)
    assert "Current best: width=4 (S1, accepted)." in rows
    shown = kx("show", "S1", cwd=scale).stdout
    assert "decided     accepted on" in shown
    assert "One wide access." in shown
    log = kx("log", cwd=scale).stdout
    assert "| UNMEASURED | accepted" in " ".join(log.split())
    assert "**Why:** One wide access." in (scale / "logs/EXPERIMENTS.md").read_text()
    assert kx("log", "--check", cwd=scale).exit_code == 0
    assert "candidate,width=4" in kx("log", "--csv", cwd=scale).stdout
    for text in (stdout, shown, *rows):
        assert max(map(len, text.splitlines()), default=0) <= 80


def test_there_is_no_column_where_nothing_was_decided(bare: Path, kx: Kx) -> None:
    assert "decision" not in kx("list", cwd=bare).stdout
    assert "Decision" not in kx("log", cwd=bare).stdout


def test_a_later_decision_undoes_an_earlier_one(bare: Path, kx: Kx) -> None:
    kx("accept", "S1", cwd=bare)
    kx("accept", "S2", "--candidate", "1", cwd=bare)
    assert listed(kx, bare)["best"]["scale@sm_90a"]["experiment"] == "S2"
    assert "Current best of scale@sm_90a: width=4 (S1" in kx("reject", "S2", cwd=bare).stdout
    assert "No variant of scale@sm_90a is accepted." in kx("reject", "S1", cwd=bare).stdout
    assert len(list((bare / "logs/decisions").glob("*.json"))) == 5


@pytest.mark.parametrize(
    "words",
    [
        ("accept", "S1", "--note", "simpler"),
        ("reject", "S2", "--candidate", "2"),
        ("replace", "aaaaaaa", "--by", "S1"),
    ],
)
def test_what_is_decided_again_stands_already(words: tuple[str, ...], bare: Path, kx: Kx) -> None:
    assert "stands already" not in kx(*words, cwd=bare).stdout
    written = sorted((bare / "logs/decisions").iterdir())
    result = kx(*words, "--json", cwd=bare)
    assert result.exit_code == 0
    last = json.loads(result.stdout)
    assert last["stood"] == [decision["name"] for decision in last["decisions"]]
    assert "This stands already: nothing was written." in kx(*words, cwd=bare).stdout
    assert sorted((bare / "logs/decisions").iterdir()) == written


def test_more_words_or_a_newer_best_make_a_decision_of_it(bare: Path, kx: Kx) -> None:
    kx("accept", "S1", cwd=bare)
    assert "stands already" not in kx("accept", "S1", "--why", "wider", cwd=bare).stdout
    assert "stands already" in kx("accept", "S1", cwd=bare).stdout
    kx("accept", "S2", "--candidate", "1", cwd=bare)
    assert "stands already" not in kx("accept", "S1", cwd=bare).stdout
    assert listed(kx, bare)["best"]["scale@sm_90a"]["experiment"] == "S1"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """This repository's kernels, experiments and runs, without their decisions."""
    for name in ("experiments.yaml", "experiments", "variants", "logs/runs"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_what_waits_and_took_less_time_at_the_same_size_is_named(copied: Path, kx: Kx) -> None:
    """0.627 ms at size full, then 0.888 ms at long128."""
    accepted = " ".join(kx("accept", "A17:2", cwd=copied).stdout.split())
    assert re.search(
        r"A\d+\S* waits for a decision too, and took less time in its own run", accepted
    )
    words = " ".join(kx("accept", "A16:2", cwd=copied).stdout.split())
    assert words.endswith("head_dim=128, overlap=issued (A16, accepted).")


def test_a_best_that_takes_longer_than_the_one_before_is_said(copied: Path, kx: Kx) -> None:
    tmp_path = copied
    words = " ".join(kx("accept", "F8", cwd=tmp_path).stdout.split())
    assert words.endswith(
        "It takes longer than the best before it: 0.764 ms (F8, published, accepted), not 0.579 ms "
        "(9bf658a, published)."
    )
    assert "takes longer" not in kx("accept", "9bf658a", cwd=tmp_path).stdout


def test_what_replaces_is_accepted(bare: Path, kx: Kx) -> None:
    kx("accept", "aaaaaaa", cwd=bare)
    output = " ".join(kx("replace", "aaaaaaa", "--by", "S1", cwd=bare).stdout.split())
    assert "S1: accepted on" in output
    assert "aaaaaaa: replaced by S1 on" in output
    assert listed(kx, bare)["best"]["scale@sm_90a"]["experiment"] == "S1"
    assert "replaced by S1" in kx("log", cwd=bare).stdout


def test_an_experiment_without_a_baseline_starts_from_the_current_best(bare: Path, kx: Kx) -> None:
    text = "  S3:\n    kernel: scale\n    arch: sm_90a\n    title: Backward\n"
    text += "    candidate: {order: backward}\n    hypothesis: Nothing changes.\n\nhistory:"
    edit(bare, "\nhistory:", text)

    def baseline() -> Any:
        return listed(kx, bare)["experiments"]["S3"]["experiment"]["baseline"]

    assert baseline() == {}
    kx("accept", "aaaaaaa", cwd=bare)
    assert baseline() == {"width": 2}
    kx("accept", "S3", cwd=bare)  # it is the best itself now, and keeps its own baseline
    kx("accept", "S1", cwd=bare)
    assert baseline() == {"width": 2}


def test_a_best_that_is_no_variant_any_more_is_a_mistake_with_its_place(bare: Path, kx: Kx) -> None:
    kx("accept", "S1", cwd=bare)
    edit(bare, "baseline: {}\n    candidate: {width: 4}", "candidate: {width: 2}")
    edit(bare, "      - {width: 4}\n", "")
    edit(bare, "  S2:\n", "  S0:\n")
    edit(bare, "    baseline: {}\n    candidate:\n", "    candidate:\n")
    edit(bare, "values: [1, 2, 4]", "values: [1, 2]")
    result = kx("list", cwd=bare)
    assert result.exit_code == 2
    assert (
        "experiments.yaml:24:3: experiments.S0: without a baseline this starts from the variant "
        "that was accepted last, which is none any more (axis 'width' has no value '4'"
        in result.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("accept", "S2"), "S2 has 2 candidates: say with --candidate which one is accepted (1: "),
        (("accept", "S2", "--candidate", "3"), "S2 has 2 candidates: there is no --candidate 3."),
        (("accept", "S9"), "there is no experiment 'S9'; kernelexp show lists"),
        (
            ("reject", "S1", "--commit", "no"),
            "is in no git repository, and it is not a commit's",
        ),
        (("replace", "S1", "--by", "S1"), "S1 can't be replaced by itself: name another"),
        (("replace", "S1", "--by", "S2"), "S2 has 2 candidates, none of them accepted: accept one"),
    ],
)
def test_a_mistake_is_a_sentence_and_decides_nothing(
    arguments: tuple[str, ...], sentence: str, bare: Path, kx: Kx
) -> None:
    result = kx(*arguments, cwd=bare)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not (bare / "logs").exists()


def test_a_commit_of_another_repository_is_kept_as_it_is_named(bare: Path, kx: Kx) -> None:
    repository(bare)
    assert "at abf04a5" in kx("accept", "S1", "--commit", "abf04a5", cwd=bare).stdout


def test_branches_that_both_decided_merge_without_a_conflict(bare: Path, kx: Kx) -> None:
    repository(bare)
    kx("log", "--write", cwd=bare)
    commit(bare, "log")
    git(bare, "checkout", "-q", "-b", "other")
    kx("accept", "S1", cwd=bare)
    commit(bare, "accept S1")
    git(bare, "checkout", "-q", "main")
    kx("reject", "S1", cwd=bare)
    commit(bare, "reject S1")
    git(bare, "merge", "-q", "--no-edit", "other")
    values = listed(kx, bare)
    words = [
        decision["word"] for decision in values["experiments"]["S1"]["candidates"][0]["decisions"]
    ]
    assert words == ["accepted", "rejected"]


def test_a_candidate_is_named_as_compare_names_it(bare: Path, kx: Kx) -> None:
    result = kx("reject", "S1:1", "--why", "It spills.", cwd=bare)
    assert result.exit_code == 0, result.output
    assert "S1: rejected" in " ".join(result.stdout.split())
    assert "Why: It spills." in result.stdout


def test_two_candidates_in_one_decision_are_refused(bare: Path, kx: Kx) -> None:
    result = kx("accept", "S1:1", "--candidate", "2", cwd=bare)
    assert result.exit_code == 2
    assert "name two candidates: drop one" in result.stderr


def test_an_id_in_another_case_is_the_one_that_was_meant(bare: Path, kx: Kx) -> None:
    assert kx("accept", "s1", cwd=bare).exit_code == 0
    assert "S1" in kx("show", "s1", cwd=bare).stdout.splitlines()[0]
    assert "accepted" in kx("show", "S1", cwd=bare).stdout


def test_a_log_that_stands_is_not_said_to_be_written(bare: Path, kx: Kx) -> None:
    assert kx("log", "--write", cwd=bare).stdout == "wrote logs/EXPERIMENTS.md\n"
    assert kx("log", "--write", cwd=bare).stdout == "logs/EXPERIMENTS.md is up to date\n"
