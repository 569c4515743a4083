"""Kernels whose runner is a program: a host-only one, built by nvcc and run on this CPU."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from filelock import FileLock
from support import ROOT, Kx, edit

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.services.check import gates
from kernelexp.system import device
from kernelexp.system.toolchain import Toolchain


@pytest.fixture(scope="session")
def linked(hashed: Path, tools: Toolchain, shared: Path) -> Path:
    """The cache of the project `sorting` with the variants of its experiment built."""
    with FileLock(shared / "linked.lock"):
        if (done := shared / "linked").exists():
            return done
        root = _copy(shared, hashed)
        loaded = project.load(root)
        prepare.built(
            loaded,
            list(gates.named_variants(loaded).values()),
            Session(tools=tools),
        )
        return (root / build.CACHE).rename(done)


@pytest.fixture
def sorting(tmp_path: Path, linked: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of the project; other tests time programs on this CPU at the same time."""
    monkeypatch.setattr(device, "LOCKS", tmp_path / "locks")
    return _copy(tmp_path, linked)


def _copy(folder: Path, cache: Path) -> Path:
    root = folder / "sorting"
    shutil.copytree(ROOT / "tests/projects/sorting", root)
    shutil.copytree(cache, root / build.CACHE)
    return root


def run(kx: Kx, root: Path, *arguments: str):
    """The only record of a run."""
    result = kx(*arguments, "--json", cwd=root)
    (answer,) = json.loads(result.stdout)
    return result.exit_code, answer["record"]


def test_run_judges_records_and_logs_what_a_program_prints(sorting: Path, kx: Kx) -> None:
    result = kx("run", "P1", cwd=sorting)
    assert result.exit_code == errors.OK, result.stderr
    assert "Verdict: IMPROVED (better). 96.29% lower comparisons" in result.stdout
    assert "8 pairs in 4 rounds of new processes" in " ".join(result.stdout.split())
    assert "printed too   time, ms   rate, Mkeys/s" in result.stdout
    assert "1,017,619 → 37,753 (-96.29%)   met" in result.stdout
    (record,), _ = records.read(sorting, "P1")
    assert list(record.baseline.files) == ["variants/sorting/sorting.cu"]
    assert record.baseline.measured
    assert record.baseline.measured.time_us is None
    log = (sorting / "logs/EXPERIMENTS.md").read_text()
    assert "**Baseline:** 1,017,619 comparisons (measured, " in log
    assert "**Result:** 37,753 comparisons, -96.29% (-96.29% to -96.29%) (measured, " in log
    rows = list(csv.DictReader(kx("log", "--csv", cwd=sorting).stdout.splitlines()))
    assert [float(row["printed_comparisons"]) for row in rows] == [1017619, 37753]
    shown = kx("show", "P1", cwd=sorting).stdout
    assert "37,753   -96.29% (-96.29% to -96.29%)   IMPROVED" in shown


def test_a_record_is_stale_once_the_program_is_read_otherwise(sorting: Path, kx: Kx) -> None:
    assert kx("run", "P1", cwd=sorting).exit_code == errors.OK
    edit(sorting, "^([0-9]+) comparisons", "([0-9]+) comparisons")
    shown = " ".join(kx("show", "P1", cwd=sorting).stdout.split())
    assert "measured before this changed: how the program is run or read." in shown


def test_time_compares_two_variants_by_their_times(sorting: Path, kx: Kx) -> None:
    edit(sorting, "      gpu: false", "      gpu: false\n      judge: time")
    code, record = run(kx, sorting, "time", "sorting", "sorting:method=heap", "--budget", "2s")
    assert code in (errors.OK, errors.INCONCLUSIVE)
    printed = record["measurement"]["printed"]
    assert (printed["figure"], printed["is_time"]) == ("time", True)
    assert set(printed["also"]) == {"comparisons", "rate"}
    assert record["candidates"][0]["arm"]["measured"]["time_us"] > 0.0
    assert not (sorting / "logs").exists()


def test_a_program_that_needs_a_gpu_is_built_and_not_run(sorting: Path, kx: Kx) -> None:
    edit(sorting, "gpu: false", "gpu: true")
    code, record = run(kx, sorting, "run", "P1")
    assert code == errors.OK
    assert record["candidates"][0]["verdict"]["reason"] == "no_gpu"
    assert "measurement" not in record


def test_an_argument_that_the_program_refuses_is_its_crash(sorting: Path, kx: Kx) -> None:
    edit(sorting, "arguments: ['2000', '{seed}']", "arguments: ['2000']")
    code, record = run(kx, sorting, "run", "P1")
    assert code == errors.INCONCLUSIVE
    verdict = record["candidates"][0]["verdict"]
    assert verdict["status"] == "INVALID"
    assert "The baseline crashed: The program ended with code 2" in verdict["sentence"]


def test_check_compares_its_build_and_says_what_is_not_emulated(sorting: Path, kx: Kx) -> None:
    assert kx("check", "--update", cwd=sorting).exit_code == errors.OK
    result = kx("check", "--emulate", cwd=sorting)
    assert result.exit_code == errors.OK
    assert "2 of 2 variants match" in result.stdout
    assert "note: sorting is a program: it is built, not emulated." in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("emulate", "sorting"),
        ("lines", "sorting"),
        ("inspect", "sorting"),
        ("opportunities", "sorting"),
        ("explain", "P1"),
        ("audit", "sorting:method=heap", "--against", "sorting"),
        ("sweep", "sorting", "method=*", "--strategy", "random"),
    ],
)
def test_what_needs_a_problem_py_is_refused(
    sorting: Path, kx: Kx, command: tuple[str, ...]
) -> None:
    result = kx(*command, cwd=sorting)
    assert result.exit_code == errors.USAGE
    assert "sorting is a program with a main of its own: " in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_size_is_of_problem_py(sorting: Path, kx: Kx) -> None:
    result = kx("run", "P1", "--size", "small", cwd=sorting)
    assert result.exit_code == errors.USAGE
    assert "size small: sorting is a program, which has no problem.py." in result.stderr


def test_list_and_build_show_it(sorting: Path, kx: Kx) -> None:
    assert "sorting@sm_90a  Sorts random keys (a program)" in kx("list", cwd=sorting).stdout
    assert "no code for a GPU" in kx("build", "sorting", cwd=sorting).stdout


@pytest.mark.slow
def test_a_sweep_ranks_programs(sorting: Path, kx: Kx) -> None:
    result = kx("sweep", "sorting", "method=*", cwd=sorting)
    assert result.exit_code == errors.OK, result.stderr
    assert (
        "Best comparisons: row 1 (method=shell) (99%); by its interval every other" in result.stdout
    )
    assert "change of comparisons" in result.stdout


@pytest.mark.slow
def test_a_record_is_run_again_from_its_own_sources(sorting: Path, kx: Kx) -> None:
    assert kx("run", "P1", cwd=sorting).exit_code == errors.OK
    (record,), _ = records.read(sorting, "P1")
    (sorting / "variants/sorting/sorting.cu").write_text("int main() { return 1; }\n")
    edit(sorting, "comparisons: {pattern", "tries: {pattern")
    edit(sorting, "printed_comparisons", "printed_tries")
    result = kx("run", "--record", record.run, cwd=sorting)
    assert result.exit_code == errors.OK, result.stderr
    assert "Reproduces run" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "flags", "code", "words"),
    [
        ("int f(); int main() { return f(); }\n", "[]", errors.BUILD, "undefined reference to `f"),
        ("int f() { return 0; }\n", "[]", errors.BUILD, "undefined reference to `main'"),
        ("int main() {}\n", "[-lnone]", errors.ENVIRONMENT, "cannot find -lnone"),
    ],
)
def test_what_does_not_link_is_said_in_the_linker_s_words(
    sorting: Path, kx: Kx, text: str, flags: str, code: int, words: str
) -> None:
    (sorting / "variants/sorting/sorting.cu").write_text(text)
    edit(sorting, "source: sorting.cu", f"source: sorting.cu\n        flags: {flags}")
    result = kx("build", "sorting", cwd=sorting)
    assert result.exit_code == code
    assert words in " ".join((result.stdout + result.stderr).split())
