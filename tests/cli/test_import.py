"""kernelexp adopt --log: a log kept by hand becomes a project's history and experiments."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from support import ROOT, Kx

from kernelexp import project
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.model.arm import PublishedResult

LOG = """# Experiment Log

Kernel: `gemm` — a small one.
C = A B, FP32.
Target: SM90a.

## History

| Commit | Change | Time (ms) | Notes |
|---|---|---|---|
| aaaaaa1 | First | 2.0 | |
| 6319928 | Tiles | 1.0 | best |

### Experiment F1: Fewer tiles

**Baseline:** 1.0 ms
**Result:** 1.5 ms
**Verdict:** REJECTED

**Why it failed:** Too few.

## Profiling data

| Stall | Share |
|---|---|
| barrier | 3% |
"""
HAND_KEPT = os.environ.get("KERNELEXP_HAND_KEPT_LOG", "")
"""The log that this repository's published records are from."""


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    (tmp_path / "experiments.yaml").write_text("version: 1  # mine\nkernels: {}\n")
    (tmp_path / "LOG.md").write_text(LOG)
    return tmp_path


def test_the_rendered_log_has_the_history_and_the_experiments(fresh: Path, kx: Kx) -> None:
    result = kx("adopt", "--log", "LOG.md", cwd=fresh)
    assert result.exit_code == errors.OK, result.stderr
    assert result.stdout.splitlines()[0] == "imported 2 steps and 1 experiment of gemm"
    assert "kept as text: line 22: Profiling data" in result.stdout
    shown = (fresh / "logs/EXPERIMENTS.md").read_text()
    assert "| 6319928  | Tiles    | 1.000" in shown
    assert "**Result:** 1.500 ms (published); state=F1" in shown
    assert "**Verdict:** REJECTED (published)" in shown
    assert "**Why:** Too few." in shown


def test_the_whole_log_is_kept_and_the_yaml_keeps_its_lines(fresh: Path, kx: Kx) -> None:
    kx("adopt", "--log", "LOG.md", cwd=fresh)
    assert (fresh / "logs/imported/LOG.md").read_text() == LOG
    assert (fresh / "experiments.yaml").read_text().startswith("version: 1  # mine\n")


def test_records_are_published_with_their_source(fresh: Path, kx: Kx) -> None:
    kx("adopt", "--log", "LOG.md", "--source", "a repository, one H200", cwd=fresh)
    (record,), unreadable = records.read(fresh, "F1")
    assert not unreadable
    assert (record.provenance, record.source) == ("published", "a repository, one H200")
    assert (record.kernel, record.arch, record.device) == ("gemm", "sm_90a", "H200")
    assert record.baseline.axes == {"state": "6319928"}
    assert record.candidates[0].arm.published == PublishedResult(time_ms=1.5)


def test_to_run_it_is_one_sentence_until_its_sources_are_here(fresh: Path, kx: Kx) -> None:
    kx("adopt", "--log", "LOG.md", cwd=fresh)
    result = kx("run", "F1", "--no-gpu", cwd=fresh)
    assert result.exit_code == errors.USAGE
    assert "variants/gemm/problem.py:7: this is blank: the sizes, inputs" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("log", "options", "sentence"),
    [
        ("nothing here\n", (), "has nothing that can be imported"),
        (LOG.replace("Kernel: `gemm`", "About"), (), "name it with --kernel."),
        (LOG.replace("SM90a", "H200"), (), "names no architecture: give it with --arch"),
        (LOG.replace("SM90a", "SM91"), (), "says sm_91, which is none: give it with --arch"),
        (LOG.replace("F1", "aaaaaa1"), (), "has two entries called aaaaaa1: rename one"),
        (LOG, ("--kernel", "a/b"), "name it with --kernel."),
    ],
)
def test_a_mistake_is_a_sentence_and_changes_nothing(
    fresh: Path, kx: Kx, log: str, options: tuple[str, ...], sentence: str
) -> None:
    (fresh / "LOG.md").write_text(log)
    before = (fresh / "experiments.yaml").read_text()
    result = kx("adopt", "--log", "LOG.md", *options, cwd=fresh)
    assert result.exit_code == errors.USAGE
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert (fresh / "experiments.yaml").read_text() == before
    assert {path.name for path in fresh.iterdir()} == {"LOG.md", "experiments.yaml"}


def test_a_second_import_of_the_same_is_a_mistake(fresh: Path, kx: Kx) -> None:
    kx("adopt", "--log", "LOG.md", cwd=fresh)
    result = kx("adopt", "--log", "LOG.md", cwd=fresh)
    assert "there is a kernel gemm already" in result.stderr
    again = kx("adopt", "--log", "LOG.md", "--kernel", "other", cwd=fresh)
    assert "there is an experiment aaaaaa1 already" in again.stderr


def test_a_file_that_is_not_there_is_a_mistake(fresh: Path, kx: Kx) -> None:
    result = kx("adopt", "--log", "NO.md", cwd=fresh)
    assert result.stderr == "error: NO.md can't be read: No such file or directory.\n"


@pytest.mark.skipif(not Path(HAND_KEPT).is_file(), reason="KERNELEXP_HAND_KEPT_LOG names no log")
def test_the_log_of_this_repository_s_kernel_has_the_figures_that_ship(fresh: Path, kx: Kx) -> None:
    assert kx("adopt", "--log", HAND_KEPT, cwd=fresh).exit_code == errors.OK
    imported = project.load(fresh)
    assert [*imported.history] == [*project.load(ROOT).history][: len(imported.history)]
    for name in imported.experiments:
        (ours,), (shipped, *_) = (records.read(root, name)[0] for root in (fresh, ROOT))
        assert shipped.provenance == "published"
        assert (ours.baseline.published or PublishedResult()) == shipped.baseline.published
        assert _outcomes(ours) == _outcomes(shipped), name
        assert ours.commit == shipped.commit


def _outcomes(record: records.Record) -> list[str]:
    return sorted(
        json.dumps([msgspec.to_builtins(candidate.arm.published), candidate.verdict.status.value])
        for candidate in record.candidates
    )
