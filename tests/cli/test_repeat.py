"""Runs repeated from their records: the variants as they were, whatever has changed since."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support import Kx, edit

from kernelexp.logs import sources
from kernelexp.model import errors

pytestmark = pytest.mark.usefixtures("shared_builds")


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture(
    params=[
        pytest.param("no git", marks=pytest.mark.slow),
        "dirty",
        pytest.param("clean", marks=pytest.mark.slow),
    ]
)
def ran(request: pytest.FixtureRequest, scale: Path, kx: Kx) -> tuple[Path, str]:
    """A project with one run of S1, and the run's name."""
    source = scale / "variants/scale/scale.cu"
    if request.param != "no git":
        git(scale, "init", "-q")
        git(scale, "add", ".", ":!.kernelexp")
        git(scale, "commit", "-q", "-m", "first")
    if request.param == "dirty":
        source.write_text(source.read_text() + "// dirty\n")
    return scale, run(scale, kx, "S1")["record"]["run"]


def run(root: Path, kx: Kx, *words: str) -> dict:  # type: ignore[type-arg]
    result = kx("run", *words, "--no-emulate", "--json", cwd=root)
    assert result.exit_code == errors.OK, result.stderr
    (outcome,) = json.loads(result.stdout)
    return outcome  # type: ignore[no-any-return]


def test_a_run_is_repeated_after_its_sources_and_its_axes_have_changed(
    ran: tuple[Path, str], kx: Kx
) -> None:
    root, name = ran
    first = json.loads(next((root / "logs/runs/S1").glob("*.json")).read_text())
    source = root / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("y[i] = v;", "y[i] = v; __syncthreads();"))
    shutil.rmtree(root / "variants/include")
    edit(root, "candidate: {width: 4}", "candidate: {width: 2}")
    again = run(root, kx, "--record", name)["record"]
    assert again["repeats"] == name
    assert again["baseline"]["identity"] == first["baseline"]["identity"]
    for now, then in zip(again["candidates"], first["candidates"], strict=True):
        assert now["arm"]["axes"] == then["arm"]["axes"]
        assert now["arm"]["identity"] == then["arm"]["identity"]
    assert again["candidates"][0]["reproduces"] is True


@pytest.mark.slow
def test_a_header_of_the_repository_around_is_part_of_a_run(scale: Path, kx: Kx) -> None:
    git(scale.parent, "init", "-q")
    header = scale.parent / "common/figure.cuh"
    header.parent.mkdir()
    header.write_text("constexpr float figure = 2.0f;\n")
    source = scale / "variants/scale/scale.cu"
    source.write_text(f'#include "../../../common/figure.cuh"\n{source.read_text()}')
    first = run(scale, kx, "S1")["record"]
    assert "../common/figure.cuh" in first["baseline"]["files"]
    header.write_text("constexpr float figure = 3.0f;\n")
    assert "run before this changed: ../common/figure.cuh" in kx("log", cwd=scale).stdout
    again = run(scale, kx, "--record", first["run"])["record"]
    assert again["baseline"]["identity"] == first["baseline"]["identity"]
    assert again["baseline"]["files"] == first["baseline"]["files"]


@pytest.mark.slow
def test_its_variants_are_built_again_without_a_record(ran: tuple[Path, str], kx: Kx) -> None:
    root, name = ran
    (root / "variants/scale/scale.cu").write_text("broken\n")
    result = kx("build", "--record", name, cwd=root)
    assert result.exit_code == errors.OK
    assert "width=4" in result.stdout
    assert len(list((root / "logs/runs/S1").iterdir())) == 1


def test_a_run_that_kept_no_problem_py_is_a_sentence(scale: Path, kx: Kx) -> None:
    run(scale, kx, "S1")
    (path,) = (scale / "logs/runs/S1").iterdir()
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "host_files": {}}))
    result = kx("run", "--record", "S1", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "does not say which problem.py it was made with" in result.stderr


def test_files_that_are_nowhere_any_more_are_a_sentence(ran: tuple[Path, str], kx: Kx) -> None:
    root, name = ran
    shutil.rmtree(root / "logs/sources", ignore_errors=True)
    shutil.rmtree(root / ".git", ignore_errors=True)
    (root / "variants/scale/scale.cu").write_text("broken\n")
    result = kx("run", "--record", name, cwd=root)
    assert result.exit_code == errors.USAGE
    assert "variants/scale/scale.cu as it was in run" in result.stderr


def test_a_damaged_source_is_not_believed(scale: Path, kx: Kx) -> None:
    name = run(scale, kx, "S1")["record"]["run"]
    for path in (scale / "logs/sources").rglob("*.gz"):
        path.write_bytes(path.read_bytes()[:-20])
    (scale / "variants/scale/scale.cu").write_text("broken\n")
    result = kx("run", "--record", name, cwd=scale)
    assert result.exit_code == errors.USAGE
    assert ".gz is damaged, it is not in the run's commit" in result.stderr


@pytest.mark.parametrize("damage", [b"", b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + bytes(40)])
def test_a_damaged_source_is_stored_again(scale: Path, kx: Kx, damage: bytes) -> None:
    run(scale, kx, "S1")
    stored = {path: path.read_bytes() for path in (scale / "logs/sources").rglob("*.gz")}
    for path in stored:
        path.write_bytes(damage)
    run(scale, kx, "S1")
    assert {path: path.read_bytes() for path in stored} == stored


def test_a_stored_file_that_is_larger_than_any_is_not_unpacked(tmp_path: Path) -> None:
    content = bytes(sources.STORED_MAX + 1)
    digest = sources.sha256(content)
    place = tmp_path / sources.FOLDER / digest[:2] / f"{digest[2:]}.gz"
    place.parent.mkdir(parents=True)
    place.write_bytes(gzip.compress(content))
    assert sources._stored(tmp_path, digest) is None


@pytest.mark.slow
def test_data_that_problem_py_reads_is_part_of_a_run(scale: Path, kx: Kx) -> None:
    problem, data = (scale / "variants/scale" / name for name in ("problem.py", "factor.txt"))
    read = (
        "FACTOR = float((__import__('pathlib').Path(__file__).parent / 'factor.txt').read_text())"
    )
    problem.write_text(problem.read_text().replace("FACTOR = 3.0", read))
    data.write_text("3.0")
    name = run(scale, kx, "S1")["record"]["run"]
    data.write_text("4.0")
    assert "variants/scale/factor.txt" in kx("show", "S1", cwd=scale).stdout
    data.unlink()
    again = run(scale, kx, "--record", name)["record"]
    assert "variants/scale/factor.txt" in again["host_files"]


def test_a_clean_commit_needs_no_copies(scale: Path, kx: Kx) -> None:
    git(scale, "init", "-q")
    git(scale, "add", ".", ":!.kernelexp")
    git(scale, "commit", "-q", "-m", "first")
    run(scale, kx, "S1")
    assert not (scale / "logs/sources").exists()


def test_records_and_the_log_do_not_make_a_tree_dirty(scale: Path, kx: Kx) -> None:
    git(scale, "init", "-q")
    git(scale, "add", ".", ":!.kernelexp")
    git(scale, "commit", "-q", "-m", "first")
    assert [run(scale, kx, "S1")["record"]["git"]["dirty"] for _ in range(2)] == [False, False]


@pytest.mark.slow
def test_diff_shows_axes_sources_and_figures(scale: Path, kx: Kx) -> None:
    first = run(scale, kx, "S1")["record"]["run"]
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("y[i] = v;", "y[i] = v;\n    __syncthreads();"))
    second = run(scale, kx, "S1", "--set", "width=2")["record"]["run"]
    result = kx("diff", first, second, cwd=scale)
    words = " ".join(result.stdout.split())
    assert "candidate: width 4 2" in words
    assert "+ __syncthreads();" in words
    assert "SASS instructions" in words
    values = json.loads(kx("diff", first, second, "--json", cwd=scale).stdout)
    assert list(values["files"]) == ["variants/scale/scale.cu"]


def test_diff_does_not_take_a_file_that_was_not_recorded_for_a_deleted_one(
    scale: Path, kx: Kx
) -> None:
    early, late = (run(scale, kx, "S1")["record"]["run"] for _ in range(2))
    (path,) = (scale / "logs/runs/S1").glob(f"{early}*")
    record = json.loads(path.read_text())
    del record["host_files"]
    path.write_text(json.dumps(record))
    result = kx("diff", early, late, cwd=scale)
    assert f"run {early} did not record this file." in " ".join(result.stdout.split())
    assert "@@" not in result.stdout


def test_diff_of_a_run_with_itself_says_so(scale: Path, kx: Kx) -> None:
    run(scale, kx, "S1")
    assert "The same variants from the same files" in kx("diff", "S1", "S1", cwd=scale).stdout


def test_reproduce_ends_with_1_where_a_figure_differs(scale: Path, kx: Kx) -> None:
    run(scale, kx, "S1")
    assert kx("run", "S1", "--no-emulate", "--reproduce", cwd=scale).exit_code == errors.OK
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("y[i] = v;", "y[i] = v; __syncthreads();"))
    result = kx("run", "S1", "--no-emulate", "--reproduce", cwd=scale)
    assert result.exit_code == errors.REGRESSION
    assert "Built figures differ from those of run" in " ".join(result.stdout.split())
