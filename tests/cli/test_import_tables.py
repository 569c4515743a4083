"""kernelexp adopt --log: tables of any shape, of markdown and CSV."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Kx

from kernelexp import project
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.model.arm import Status
from kernelexp.model.record import Record

TABLE = """# Softmax notes

| # | change | ms | verdict | who |
|---|--------|----|---------|-----|
| 1 | first version | 2.10 | base | me |
| 2 | float4 loads | 1.40 | kept | me |
| 3 | unroll by 8 | 1.55 | rejected | you |
| 4 | online max | 1.20 | kept | |
| 5 | idea only | | not tried | |
"""
CSV = "step;what;latency (us);registers\na;first;2100;40\nb;wider;1400;48\n"
KERNEL = ("--kernel", "softmax", "--arch", "sm_90a")


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    (tmp_path / "experiments.yaml").write_text("version: 1\nkernels: {}\n")
    (tmp_path / "notes.md").write_text(TABLE)
    (tmp_path / "notes.csv").write_text(CSV)
    return tmp_path


def published(root: Path, name: str) -> Record:
    (record,), _ = records.read(root, name)
    return record


def test_rows_are_compared_with_the_last_one_that_was_kept(fresh: Path, kx: Kx) -> None:
    result = kx("adopt", "--log", "notes.md", *KERNEL, cwd=fresh)
    assert result.exit_code == errors.OK, result.stderr
    assert "imported 0 steps and 5 experiments of softmax" in result.stdout
    times = {
        name: (
            record.baseline.published and record.baseline.published.time_ms,
            record.candidates[0].verdict.status,
        )
        for name in ("row2", "row3", "row4")
        for record in [published(fresh, name)]
    }
    assert times == {
        "row2": (2.1, Status.IMPROVED),
        "row3": (1.4, Status.REJECTED),
        "row4": (1.4, Status.IMPROVED),
    }


def test_nothing_of_a_row_is_lost(fresh: Path, kx: Kx) -> None:
    result = kx("adopt", "--log", "notes.md", *KERNEL, cwd=fresh)
    entry = project.load(fresh).experiment("row3")
    assert (entry.title, entry.decision) == ("unroll by 8", "rejected")
    assert "who: you" in entry.notes
    assert "row 5 of the table below line 1 has no figure: 5 | idea only | | not tried" in " ".join(
        result.stdout.split()
    )
    assert project.load(fresh).experiment("row5").title == "idea only"
    assert (fresh / "logs/imported/notes.md").read_text() == TABLE


def test_csv_has_its_separator_and_its_unit(fresh: Path, kx: Kx) -> None:
    result = kx("adopt", "--log", "notes.csv", *KERNEL, cwd=fresh)
    assert result.exit_code == errors.OK, result.stderr
    own = published(fresh, "b").candidates[0].arm.published
    assert own is not None
    assert (own.time_ms, own.registers) == (1.4, 48)


def test_a_heading_in_one_word_has_its_unit_and_a_version_is_an_id(fresh: Path, kx: Kx) -> None:
    (fresh / "notes.csv").write_text("version,idea,time_us\nv0,naive,812.5\nv1,tiles,301.2\n")
    result = kx("adopt", "--log", "notes.csv", "--kernel", "gemm", "--arch", "sm_90a", cwd=fresh)
    assert result.exit_code == 0, result.stderr
    log = kx("log", cwd=fresh).stdout
    assert "tiles" in log
    assert "0.812 ms" in log
    assert "0.301 ms" in log


def test_rows_without_ids_of_two_logs_are_told_apart_by_their_kernels(fresh: Path, kx: Kx) -> None:
    for kernel in ("gemm", "scan"):
        (fresh / f"{kernel}.md").write_text(
            "| # | change | ms |\n|---|---|---|\n| 1 | wider | 2.0 |\n"
        )
        result = kx(
            "adopt", "--log", f"{kernel}.md", "--kernel", kernel, "--arch", "sm_90a", cwd=fresh
        )
        assert result.exit_code == 0, result.stderr
    log = kx("log", cwd=fresh).stdout
    assert "| row1 " in log
    assert "| scan-row1 " in log


def test_a_column_that_is_not_known_is_named_on_the_command_line(fresh: Path, kx: Kx) -> None:
    (fresh / "notes.md").write_text(TABLE.replace("| ms |", "| speed |"))
    result = kx("adopt", "--log", "notes.md", *KERNEL, cwd=fresh)
    assert result.exit_code == errors.USAGE
    output = " ".join(result.stderr.split())
    assert "--column time=HEADING, or with tflops=HEADING where it has rates; there are #" in output
    result = kx("adopt", "--log", "notes.md", *KERNEL, "--column", "time=speed", cwd=fresh)
    assert result.exit_code == errors.OK, result.stderr
    assert published(fresh, "row2").candidates[0].verdict.status is Status.IMPROVED


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("tme=ms", "did you mean 'time'"),
        ("time=mss", "there is no such column; did you mean 'ms'"),
    ],
)
def test_a_mistake_in_a_column_is_a_sentence(
    fresh: Path, kx: Kx, column: str, sentence: str
) -> None:
    result = kx("adopt", "--log", "notes.md", *KERNEL, "--column", column, cwd=fresh)
    assert result.exit_code == errors.USAGE
    assert sentence in " ".join(result.stderr.split())


def test_a_time_without_a_unit_is_read_as_ms_and_said_so(fresh: Path, kx: Kx) -> None:
    log = "| # | change | speed |\n|---|---|---|\n| 1 | start | 812 |\n| 2 | pad | 640 |\n"
    (fresh / "notes.md").write_text(log)
    result = kx("adopt", "--log", "notes.md", *KERNEL, "--column", "time=speed", cwd=fresh)
    assert "'speed' has no unit and was read as ms" in " ".join(result.stdout.split())
    (fresh / "other.md").write_text(log.replace("812", "812 us"))
    result = kx(
        "adopt",
        "--log",
        "other.md",
        "--kernel",
        "two",
        *KERNEL[2:],
        "--column",
        "time=speed",
        cwd=fresh,
    )
    assert "no unit" not in result.stdout


RATES = """| # | change | GFLOP/s | kept? |
|---|---|---|---|
| 0 | naive | 309 | yes |
| 1 | tiles | 2,980 | yes |
| 2 | bigger tiles | | crashed |
"""


def test_rates_are_scaled_by_the_unit_of_their_heading(fresh: Path, kx: Kx) -> None:
    (fresh / "rates.md").write_text(RATES)
    result = kx("adopt", "--log", "rates.md", *KERNEL, cwd=fresh)
    assert result.exit_code == errors.OK, result.stderr
    (tiles,) = published(fresh, "row1").candidates
    assert tiles.arm.published
    assert tiles.arm.published.tflops == pytest.approx(2.98)
    assert tiles.verdict.status is Status.IMPROVED
    assert published(fresh, "row2").candidates[0].verdict.status is Status.CRASHED


def test_rates_in_another_unit_are_refused(fresh: Path, kx: Kx) -> None:
    (fresh / "rates.md").write_text(RATES.replace("GFLOP/s", "GB/s"))
    result = kx("adopt", "--log", "rates.md", "--column", "tflops=GB/s", *KERNEL, cwd=fresh)
    assert result.exit_code == errors.USAGE
    assert "'GB/s' does not say in which unit its rates are" in result.stderr


DECIDED = """# SGEMM diary

| Kernel | What | TFLOP/s | Decision |
|--------|------|--------:|----------|
| v0 | naive | 0.3 | baseline |
| v1 | coalesced | **2.1** | ✅ |
| v2 | vectors | ~2.0 (-5%) | ❌ |
| v3 | tiles | 3.0 | ✅ |
| v4 | two buffers | crash | ❌ |
"""


def test_rows_that_were_decided_on_are_no_candidates_against_the_first(fresh: Path, kx: Kx) -> None:
    (fresh / "notes.md").write_text(DECIDED)
    result = kx("adopt", "--log", "notes.md", *KERNEL, cwd=fresh)
    assert result.exit_code == errors.OK, result.stderr
    statuses = {
        name: (record.title, record.candidates[0].verdict.status)
        for name in ("v2", "v3", "v4")
        for record in [published(fresh, name)]
    }
    assert statuses == {
        "v2": ("vectors", Status.REJECTED),
        "v3": ("tiles", Status.IMPROVED),
        "v4": ("two buffers", Status.CRASHED),
    }
    base = published(fresh, "v3").baseline.published
    assert base
    assert base.tflops == 2.1


@pytest.mark.parametrize(
    ("written", "ms"), [("1.31e-2", 13.1), ("1,310.5", 1_310_500.0), ("2,10", None), (".5", None)]
)
def test_a_number_is_read_as_it_is_written_or_not_at_all(
    written: str, ms: float | None, fresh: Path, kx: Kx
) -> None:
    (fresh / "notes.csv").write_text(f"id;runtime [s]\na;1\nb;{written}\n")
    result = kx("adopt", "--log", "notes.csv", *KERNEL, cwd=fresh)
    assert result.exit_code == errors.OK, result.stderr
    figures = published(fresh, "b").candidates[0].arm.published
    assert (figures.time_ms if figures else None) == ms
    assert ("has no figure: b" in result.stdout) is (ms is None)


def test_rates_that_an_option_names_are_teraflops_and_it_is_said(fresh: Path, kx: Kx) -> None:
    (fresh / "notes.csv").write_text("id,speed\na,100\nb,120\n")
    result = kx("adopt", "--log", "notes.csv", *KERNEL, "--column", "tflops=speed", cwd=fresh)
    assert "'speed' has no unit and was read as TFLOPS" in result.stdout
    assert "IMPROVED" in (fresh / "logs/EXPERIMENTS.md").read_text()
