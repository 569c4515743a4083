"""kernelexp sweep: its grid, its page, its record, and that it goes on after a kill."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import msgspec
import pytest
import yaml
from fake_gpu import FakeGpu
from schemas import validate
from support import ROOT, Kx
from typer.testing import CliRunner

from kernelexp.cli import app
from kernelexp.evidence import build
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.model.experiment import Experiment
from kernelexp.report import export

GRID = ("scale", "width=*", "order=*")
WIDTH_MATTERS = "{1: 1.0, 2: 0.97, 4: 60.0}[width]"


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    return FakeGpu(tmp_path / "locks", monkeypatch)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory, warm: Path) -> Path:
    """A project with the record of a sweep in which the width matters; tests only read it."""
    folder = tmp_path_factory.mktemp("swept")
    root = folder / "scale"
    shutil.copytree(ROOT / "tests/projects/scale", root)
    shutil.copytree(warm, root / build.CACHE)
    with pytest.MonkeyPatch.context() as patch:
        gpu = FakeGpu(folder / "locks", patch)
        gpu.takes(WIDTH_MATTERS)
        patch.chdir(root)
        result = CliRunner().invoke(app, ["sweep", *GRID])
    assert result.exit_code == errors.OK, result.output
    (folder / "output").write_text(result.stdout)
    return root


def sweep_of(root: Path):
    (path,) = (root / "logs/runs/sweep-scale").iterdir()
    return records.read_file(path)


def test_the_record_of_a_sweep_is_named_from_the_project_s_root(swept: Path) -> None:
    assert "Record: logs/runs/sweep-scale/2" in (swept.parent / "output").read_text()


def test_a_dry_run_counts_variants_and_groups_refusals(scale: Path, kx: Kx) -> None:
    result = kx("sweep", *GRID, "--dry-run", cwd=scale)
    assert result.exit_code == errors.OK
    assert "5 of 6 variants, compared with width=1, order=forward." in result.stdout
    assert "1 IMPOSSIBLE: width=4, order=backward: order backward exists for" in result.stdout
    assert not (scale / "logs/runs").exists()


def test_a_dry_run_lists_the_variants_that_would_be_built(scale: Path, kx: Kx) -> None:
    words = " ".join(kx("sweep", *GRID, "--dry-run", cwd=scale).stdout.split())
    planned = json.loads(kx("sweep", *GRID, "--dry-run", "--json", cwd=scale).stdout)
    assert len(planned["sweep"]["candidates"]) == 5
    for width, order in ((1, "backward"), (2, "forward"), (2, "backward"), (4, "forward")):
        assert f" width={width}, order={order}" in words


def test_a_dry_run_estimates_from_the_latest_run_that_was_timed(kx: Kx) -> None:
    grid = ("transpose@sm_90a", "rows=*", "layout=padded,swizzled", "--dry-run")
    timing = json.loads(kx("sweep", *grid, "--json").stdout)["timing"]
    record = next(ROOT.glob(f"logs/runs/*/{timing['run']}.measured.json"))
    measurement = json.loads(record.read_text())["measurement"]
    assert timing["run_seconds"] == measurement["elapsed_s"]
    assert timing["seconds"] == pytest.approx(6 * timing["run_seconds"] / timing["run_arms"])
    assert f"about {timing['seconds']:.0f} s on a GPU" in kx("sweep", *grid).stdout


def test_a_dry_run_without_any_timed_run_says_that_the_time_is_not_known(
    scale: Path, kx: Kx
) -> None:
    words = " ".join(kx("sweep", *GRID, "--dry-run", cwd=scale).stdout.split())
    assert "How long timing takes is not known" in words


def test_refusals_that_differ_in_figures_only_share_a_paragraph(kx: Kx) -> None:
    result = kx("sweep", "patch_embed_gemm@sm_90a", "stages=*", "--dry-run")
    (refused,) = (line for line in result.stdout.splitlines() if "IMPOSSIBLE" in line)
    assert refused.startswith("4 IMPOSSIBLE, all with stages=7 or 8 or 12 or 15: Shared memory:")


def test_refusals_that_no_values_of_their_axes_tell_apart_are_listed(kx: Kx) -> None:
    grid = ("patch_embed_gemm@sm_90a", "stages=6,8,15", "tile_n=128,192")
    output = " ".join(kx("sweep", *grid, "--dry-run").stdout.split())
    assert ", all with " not in output
    assert " Also " in output


@pytest.mark.parametrize("name", ["flash_attention_hopper", "patch_embed_gemm"])
def test_no_word_of_a_sweep_s_table_is_broken(kx: Kx, name: str) -> None:
    lines = kx("show", f"sweep-{name}").stdout.splitlines()
    header = next(line.split() for line in lines if line.split()[:1] == ["row"])
    assert {"flash_attention_hopper": "schedule", "patch_embed_gemm": "prefetch"}[name] in header
    assert max(map(len, lines)) <= 80


def test_an_axis_that_helps_here_and_hurts_there_is_said_to_depend(kx: Kx) -> None:
    output = kx("show", "sweep-flash_attention_hopper").stdout
    (row,) = (line for line in output.splitlines() if "96 → 128" in line and "(" in line)
    assert row.endswith("depends")
    words = " ".join(output.split())
    assert (
        "block_n 96 → 128 depends on the other axes: from -6.38% with block_m=128, "
        "schedule=pingpong to +32.31% with block_m=64" in words
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("scale",), "name the axes to sweep, as in width=*"),
        (("scale", "width"), "'width' should be AXIS=VALUE,VALUE or AXIS=*"),
        (("scale", "widht=*"), "unknown axis 'widht'; did you mean 'width'?"),
        (("scale", "width=3"), "width"),
        (("scale", "width=1", "width=2"), "axis 'width' is given twice"),
        (("scale", "width=1"), "this sweep has the baseline only"),
        (("scale@sm_100a", "width=*"), "kernel scale has no sm_100a"),
        ((*GRID, "--by", "width"), "--by 'width' should be two of the axes width, order"),
        ((*GRID, "--by", "width,with"), "--by: 'with' is not swept; did you mean 'width'?"),
        ((*GRID, "--json", "--csv"), "--json and --csv do not go together"),
        (("scale", "--experiment", "1"), "there is no sweep of scale@sm_90a yet"),
    ],
)
def test_a_mistake_is_a_sentence(
    scale: Path, kx: Kx, words: tuple[str, ...], sentence: str
) -> None:
    result = kx("sweep", *words, cwd=scale)
    assert result.exit_code == errors.USAGE
    assert sentence in result.stderr


def test_without_a_gpu_builds_are_compared_and_recorded(scale: Path, kx: Kx) -> None:
    result = kx("sweep", *GRID, cwd=scale)
    assert result.exit_code == errors.OK
    assert "Registers per thread" in result.stdout
    assert "UNMEASURED" in result.stdout
    assert "1 IMPOSSIBLE: width=4, order=backward: order backward exists" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    record = sweep_of(scale)
    assert record.experiment == "sweep-scale"
    assert len(record.candidates) == 5


def test_the_fastest_is_found_and_hopeless_variants_leave(swept: Path) -> None:
    output = (swept.parent / "output").read_text()
    text = " ".join(output.split())
    assert "Fastest: row 3 (width=2, order=backward); row 2 may be faster, by 1% at most" in text
    assert output.splitlines()[1].startswith("Fastest: ")
    assert max(map(len, output.splitlines())) <= 80
    record = sweep_of(swept)
    assert record.measurement.departures[0].arm == "candidate 4"
    assert record.measurement.departures[0].processes == 2
    words = {
        candidate.arm.axes["width"]: candidate.verdict.status for candidate in record.candidates[:4]
    }
    assert words == {1: "NEUTRAL", 2: "IMPROVED", 4: "REJECTED"}
    assert "Stopped early: 1 variant after 2, " in " ".join(text.split())


@pytest.mark.slow
def test_a_variant_that_is_outrun_before_its_own_verdict_is_an_answer(
    scale: Path, kx: Kx, gpu: FakeGpu
) -> None:
    gpu.takes("{1: 1.0, 2: 0.5, 4: 1.01}[width]")
    result = kx("sweep", *GRID, cwd=scale)
    assert result.exit_code == errors.OK
    assert "outrun" in result.stdout
    assert "outrun: known to be slower than the fastest" in result.stdout
    reasons = {candidate.verdict.reason for candidate in sweep_of(scale).candidates}
    assert "outrun" in reasons


def test_axes_are_told_apart_from_those_that_do_nothing(swept: Path) -> None:
    lines = (swept.parent / "output").read_text().splitlines()
    assert any(line.split()[0:1] == ["width"] and line.endswith("matters") for line in lines)
    assert any(line.split()[0:1] == ["order"] and line.endswith("% at most") for line in lines)


@pytest.mark.slow
def test_variants_that_are_all_equal_are_a_plateau(scale: Path, kx: Kx, gpu: FakeGpu) -> None:
    gpu.takes("1.0")
    result = kx("sweep", *GRID, "--emulate", cwd=scale)
    assert result.exit_code == errors.OK
    text = " ".join(result.stdout.split())
    assert "Plateau: none of the 5 variants differs from the fastest by more than 1%" in text
    assert "What they share:" in text


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on(scale: Path, kx: Kx, gpu: FakeGpu) -> None:
    gpu.takes(WIDTH_MATTERS, killed_at=3)
    assert kx("sweep", *GRID, cwd=scale).exit_code == errors.ENVIRONMENT
    (journal,) = (scale / ".kernelexp/sweeps").iterdir()
    assert not (scale / "logs/runs").exists()
    first = json.loads(journal.read_bytes())
    gpu.takes(WIDTH_MATTERS)
    assert kx("sweep", *GRID, cwd=scale).exit_code == errors.OK
    record = sweep_of(scale)
    assert record.measurement.seed == first["seed"]
    assert [worker.seed for worker in record.measurement.workers[:3]] == [
        worker["seed"] for worker in first["workers"]
    ]
    assert not journal.exists()


def test_show_prints_the_page_of_the_latest_sweep_again(swept: Path, kx: Kx) -> None:
    assert "Fastest: row 3" in kx("show", "sweep-scale", cwd=swept).stdout


def test_the_log_has_a_row_per_sweep_and_experiments_as_before(
    scale: Path, swept: Path, kx: Kx
) -> None:
    before = kx("log", cwd=scale).stdout
    after = kx("log", cwd=swept).stdout
    assert after.startswith(before.rstrip())
    (row,) = (line for line in after.splitlines() if "width=1,2,4 order=forward,backward" in line)
    assert "0.0970" in row
    assert "width=2, order=backward" in row or "order=backward, width=2" in row
    assert kx("log", "--check", cwd=swept).exit_code == errors.OK


@pytest.mark.slow
def test_a_row_is_an_experiment_to_paste(scale: Path, kx: Kx, gpu: FakeGpu) -> None:
    gpu.takes(WIDTH_MATTERS)
    kx("sweep", *GRID, "--baseline", "order=backward", cwd=scale)
    text = kx("sweep", "scale", "--experiment", "3", cwd=scale).stdout
    written = msgspec.convert(yaml.safe_load(text), Experiment)
    assert written.baseline == {"order": "backward"}
    (scale / "experiments").mkdir()
    (scale / "experiments/S3.yaml").write_text(text)
    assert "S3" in kx("list", cwd=scale).stdout
    missing = kx("sweep", "scale", "--experiment", "9", cwd=scale)
    assert missing.exit_code == errors.USAGE


def test_csv_has_a_row_per_arm_in_the_order_of_the_ranking(swept: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(export.sweep(sweep_of(swept)))))
    assert len(rows) == 6
    assert rows[0]["width"] == "2"
    assert rows[0]["verdict"] == "IMPROVED"
    assert rows[-1]["verdict"] == "IMPOSSIBLE"


def test_json_has_race_axes_and_front(swept: Path, kx: Kx) -> None:
    output = validate("sweep", kx("show", "sweep-scale", "--json", cwd=swept).stdout)
    assert output["race"]["is_decided"] is True
    assert output["ranking"][0] in (2, 3)
    assert {axis["axis"] for axis in output["axes"]} == {"width", "order"}


def test_a_variant_that_could_not_be_examined_leaves_the_others(scale: Path, kx: Kx) -> None:
    problem = scale / "variants/scale/problem.py"
    slow = '    if axes["width"] == 2: 1 / 0\n    count = size["count"]'
    problem.write_text(problem.read_text().replace('    count = size["count"]', slow, 1))
    result = kx("sweep", "scale", "width=*", "--emulate", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert result.stderr.count("error: ") == 1
    assert [candidate.arm.axes["width"] for candidate in sweep_of(scale).candidates] == [4]


def test_ids_of_sweeps_are_not_for_experiments(scale: Path, kx: Kx) -> None:
    file = scale / "experiments.yaml"
    file.write_text(file.read_text().replace("  S1:", "  sweep-1:"))
    result = kx("list", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "ids that begin with sweep- are those of sweeps" in result.stderr
