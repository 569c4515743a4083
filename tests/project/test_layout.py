"""A project's files: one experiment per file, what git merges of them, and what is not a file."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support import Kx

from kernelexp import project
from kernelexp.model.errors import ConfigurationError, UsageError
from kernelexp.project import Project, shape
from kernelexp.project.yamlfile import Document

EXPERIMENT = """\
kernel: scale
arch: sm_90a
title: {title}
baseline: {{}}
candidate: {{width: 4}}
hypothesis: Wider is better.
"""


def add(root: Path, file: str, text: str = EXPERIMENT.format(title="Another")) -> Path:
    path = root / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def refuse(root: Path, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        project.load(root)
    assert sentence in str(caught.value)


# ---- one experiment per file ---------------------------------------------------------------------


def test_an_experiment_may_have_a_file_of_its_own(scale: Path) -> None:
    add(scale, "experiments/S10.yaml")
    add(scale, "experiments/S3.yaml")
    loaded = project.load(scale)
    assert list(loaded.experiments) == ["S1", "S2", "S3", "S10", "aaaaaaa"]
    assert loaded.experiment("S3").title == "Another"
    assert loaded.place("S3") == "experiments/S3.yaml:1"
    assert loaded.place("S2") == "experiments.yaml:25"


def test_steps_of_the_history_follow_their_numbers(scale: Path) -> None:
    for name in ("9-ccccccc", "10-bbbbbbb", "010-aaa", "0-6319928"):
        add(scale, f"history/{name}.yaml")
    assert project.load(scale).history == ("aaaaaaa", "6319928", "ccccccc", "aaa", "bbbbbbb")


def test_other_files_in_the_folders_do_not_matter(scale: Path) -> None:
    for name in ("README.md", ".S3.yaml.swp", "S3.yaml~", "._S3.yaml"):
        add(scale, f"experiments/{name}", "not: [yaml")
    assert list(project.load(scale).experiments) == ["S1", "S2", "aaaaaaa"]


def test_an_id_that_is_defined_twice_names_both_places(scale: Path) -> None:
    add(scale, "experiments/S1.yaml")
    add(scale, "history/1-S3.yaml")
    add(scale, "history/2-S3.yaml")
    refuse(scale, "experiments/S1.yaml:1:1: experiments.yaml:16 defines S1 already; ids are unique")
    refuse(scale, "history/2-S3.yaml:1:1: history/1-S3.yaml:1 defines S3 already; ids are unique.")


def test_mistakes_of_all_files_are_reported_with_the_file_they_are_in(scale: Path) -> None:
    add(scale, "experiments/S3.yaml", EXPERIMENT.format(title="a").replace("width: 4", "width: 3"))
    add(scale, "experiments/S4.yaml", EXPERIMENT.format(title="a") + "reason: b\n")
    add(scale, "history/1-b.yaml", "")
    with pytest.raises(ConfigurationError) as caught:
        project.load(scale)
    assert caught.value.faults[:3] == (
        "experiments/S3.yaml:5:13: candidate.width: axis 'width' has no value '3'; known: 1, 2, 4.",
        "experiments/S4.yaml:7:1: reason: unknown key; known: kernel, arch, title, baseline, "
        "candidate, hypothesis, size, sizes, weights, expect, changes, why, decision, notes.",
        "history/1-b.yaml:1:1: 'arch' is missing.",
    )


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("experiments/S3.yml", "experiments/S3.yml:1:1: a project's files end in .yaml"),
        ("experiments/S 3.yaml", "experiments/S 3.yaml:1:1: this file's name is not an id"),
        ("experiments/-x.yaml", "this file's name is not an id"),
        (f"experiments/{'x' * 101}.yaml", "this file's name is not an id"),
        (os.fsdecode(b"experiments/S\xff.yaml"), "experiments/S\\xff.yaml:1:1: this file's name"),
        ("experiments/S\x1b[31m.yaml", "experiments/S\\x1b[31m.yaml:1:1: this file's name is"),
        ("history/aaa.yaml", "the file of a step is named NUMBER-ID.yaml, as in 12-6319928.yaml."),
        ("history/1-.yaml", "the file of a step is named NUMBER-ID.yaml"),
    ],
)
def test_a_file_whose_name_is_no_id_is_refused(scale: Path, file: str, sentence: str) -> None:
    add(scale, file)
    refuse(scale, sentence)


def test_the_schema_of_one_experiment_accepts_such_a_file() -> None:
    import jsonschema

    value = Document(EXPERIMENT.format(title="a"), "S3.yaml").value
    jsonschema.validate(value, shape.schema("experiment"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**value, "reason": "b"}, shape.schema("experiment"))


# ---- git merges them -----------------------------------------------------------------------------


def git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


def commit_on_a_branch(root: Path, branch: str, files: dict[str, str]) -> Project:
    git(root, "checkout", "-q", "-b", branch, "main")
    for file, title in files.items():
        add(root, file, EXPERIMENT.format(title=title))
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", branch)
    return project.load(root)


def test_branches_that_add_experiments_and_steps_merge_without_a_conflict(scale: Path) -> None:
    git(scale, "init", "-q", "-b", "main")
    add(scale, "history/1-first.yaml")
    git(scale, "add", "-A")
    git(scale, "commit", "-q", "-m", "start")
    before = project.load(scale)
    ours = commit_on_a_branch(
        scale, "ours", {"experiments/S3.yaml": "ours", "history/2-ours.yaml": "our step"}
    )
    theirs = commit_on_a_branch(
        scale, "theirs", {"experiments/S4.yaml": "theirs", "history/2-theirs.yaml": "their step"}
    )
    git(scale, "checkout", "-q", "ours")
    git(scale, "merge", "-q", "--no-edit", "theirs")
    merged = project.load(scale)
    assert merged.history == ("aaaaaaa", "first", "ours", "theirs")
    assert list(merged.experiments) == ["S1", "S2", "S3", "S4", *merged.history]
    assert merged.experiments == {**ours.experiments, **theirs.experiments}
    assert {name: merged.experiments[name] for name in before.experiments} == before.experiments
    assert merged.kernels == before.kernels
    # Merged the other way round it is the same project.
    git(scale, "checkout", "-q", "theirs")
    git(scale, "merge", "-q", "--no-edit", "ours")
    assert project.load(scale) == merged


def test_the_same_id_on_two_branches_is_a_conflict_of_git_s_and_no_surprise(scale: Path) -> None:
    git(scale, "init", "-q", "-b", "main")
    git(scale, "add", "-A")
    git(scale, "commit", "-q", "-m", "start")
    commit_on_a_branch(scale, "ours", {"experiments/S3.yaml": "ours"})
    commit_on_a_branch(scale, "theirs", {"experiments/S3.yaml": "theirs"})
    with pytest.raises(subprocess.CalledProcessError):
        git(scale, "merge", "-q", "--no-edit", "ours")
    refuse(scale, "experiments/S3.yaml:4:1: this is not YAML")


# ---- what is not a file of a project ------------------------------------------------------------


def test_what_is_no_regular_file_is_refused_without_waiting_for_it(scale: Path) -> None:
    path = scale / "experiments.yaml"
    path.unlink()
    os.mkfifo(path)
    refuse(scale, "experiments.yaml:1:1: this can't be read: it is not a regular file.")
    path.unlink()
    path.mkdir()
    refuse(scale, "experiments.yaml:1:1: this can't be read: it is a folder.")
    path.rmdir()
    path.symlink_to(path)
    refuse(scale, "experiments.yaml:1:1: this can't be read: Too many levels of symbolic links.")
    path.unlink()
    path.symlink_to("nowhere")
    refuse(scale, "experiments.yaml:1:1: this can't be read: No such file or directory.")


def test_a_device_named_as_the_project_is_refused() -> None:
    refuse(Path("/dev/zero"), "zero:1:1: this can't be read: it is not a regular file.")


def test_an_experiment_s_file_does_not_lead_out_of_the_project(scale: Path) -> None:
    outside = add(scale.parent, "outside.yaml")
    add(scale, "experiments/S3.yaml").unlink()
    (scale / "experiments/S3.yaml").symlink_to(outside)
    refuse(scale, "experiments/S3.yaml:1:1: this is a symbolic link to a file outside of the")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_file_without_permission_is_refused(scale: Path) -> None:
    (scale / "experiments.yaml").chmod(0)
    refuse(scale, "experiments.yaml:1:1: this can't be read: Permission denied.")


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        ("x" * 300, "can't be opened: File name too long."),
        ("nowhere", "there is no file or folder 'nowhere'."),
        (os.fsdecode(b"\xff"), "there is no file or folder '\\udcff'."),
        ("a\0b", "'a\\x00b': embedded null byte."),
    ],
)
def test_a_start_that_can_t_be_looked_at_is_a_sentence(start: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        project.load(Path(start))
    assert str(caught.value).endswith(sentence)


def test_a_project_whose_path_is_not_utf8_is_listed_and_nothing_else(scale: Path, kx: Kx) -> None:
    root = scale.rename(scale.parent / os.fsdecode(b"\xff"))
    assert kx("list", cwd=root).exit_code == 0
    assert json.loads(kx("list", "--json", cwd=root).stdout)["root"].endswith("/\\xff")
    result = kx("run", "S1", cwd=root)
    assert result.exit_code == 2
    assert "/\\xff is not UTF-8, or not in this locale: rename the folder" in result.stderr
