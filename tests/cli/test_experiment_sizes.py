"""Several sizes in one run: a verdict on each, one over all, and where the best variant changes.

The GPU is made up, the processes are real.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import msgspec
import pytest
from fake_gpu import FakeGpu
from support import Kx, edit

from kernelexp.judge import oversizes
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.model.arm import Status
from kernelexp.model.record import Record
from kernelexp.report.runs import dispatch

GROWS = "{1: 1.0, 2: 0.98, 4: 1.1 if size['count'] < 2000 else 0.9}[width] * size['count'] / 1000"


@pytest.fixture(autouse=True)
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    result = FakeGpu(tmp_path / "locks", monkeypatch)
    result.takes(GROWS)
    return result


def write(root: Path, lines: str) -> None:
    title = "    title: Four floats per thread\n"
    edit(root, title, f"{title}    {lines}\n")


def measured(root: Path) -> list[Record]:
    return [records.read_file(path) for path in sorted((root / "logs/runs/S1").glob("*measured*"))]


def test_each_size_has_a_record_and_the_last_has_the_verdict_over_all(scale: Path, kx: Kx) -> None:
    write(scale, "sizes: [1024, 4096, 16384]")
    result = kx("run", "S1", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    answer = measured(scale)
    assert [item.size for item in answer] == ["1024", "4096", "16384"]
    statuses = [item.candidates[0].verdict.status for item in answer]
    assert statuses == [Status.REJECTED, Status.IMPROVED, Status.IMPROVED]
    assert [len(item.sizes) for item in answer] == [0, 0, 3]
    assert answer[-1].sizes[0].parameters == {"count": 1024}
    over_all = answer[-1].candidates[0].over_sizes
    assert over_all is not None
    assert over_all.status is Status.IMPROVED
    assert "It is slower at 1024." in over_all.sentence


def test_the_page_has_a_row_for_each_size_and_names_the_crossover(scale: Path, kx: Kx) -> None:
    page = " ".join(kx("run", "S1", "--size", "count=1024,4096", cwd=scale).stdout.split())
    assert "count=1024" in page
    assert "Crossover: between count=1024 and count=4096, at about count=1,968" in page
    assert "Over all sizes: NEUTRAL" in page
    assert page.count("Verdict: ") == 1


def test_weights_decide_over_all(scale: Path, kx: Kx) -> None:
    write(scale, "sizes: {count: [1024, 4096]}\n    weights: [9, 1]")
    kx("run", "S1", cwd=scale)
    over_all = measured(scale)[-1].candidates[0].over_sizes
    assert over_all is not None
    assert over_all.status is Status.REJECTED


def test_the_experiment_stands_by_the_verdict_over_all(scale: Path, kx: Kx) -> None:
    write(scale, "sizes: [4096, 1024]\n    weights: [9, 1]")
    kx("run", "S1", cwd=scale)
    assert measured(scale)[-1].candidates[0].verdict.status is Status.REJECTED
    (row,) = [line for line in kx("log", cwd=scale).stdout.splitlines() if "| S1 " in line]
    assert "IMPROVED" in row


def test_one_size_of_several_does_not_speak_for_the_experiment(scale: Path, kx: Kx) -> None:
    write(scale, "sizes: [1024, 4096]")
    kx("run", "S1", "--size", "4096", cwd=scale)
    (row,) = [line for line in kx("log", cwd=scale).stdout.splitlines() if "| S1 " in line]
    assert "not run" in row


def test_what_stands_for_it_is_the_change_over_all_and_no_time(scale: Path, kx: Kx) -> None:
    write(scale, "sizes: [4096, 1024]\n    weights: [9, 1]")
    kx("run", "S1", cwd=scale)
    (row,) = [line for line in kx("log", cwd=scale).stdout.splitlines() if "| S1 " in line]
    change = round(100 * (0.9**0.9 * 1.1**0.1 - 1), 1)  # as GROWS has it
    assert f"{change:.1f}"[:4] in row
    assert "ms" not in row
    assert "2 sizes" in row
    kx("run", "S1", "--size", "4096,1024", "--no-record", cwd=scale)
    (arm,) = [
        arm
        for log in json.loads(kx("log", "--json", cwd=scale).stdout)
        for entry in log["experiments"]
        for arm in entry["arms"]
        if arm["arm"] == "candidate" and arm["id"] == "S1"
    ]
    assert arm["change_percent"] == pytest.approx(change, abs=0.1)
    assert arm["size"] == "4096, 1024"
    assert "time_ms" not in arm


def test_a_run_of_other_sizes_or_weights_does_not_speak_for_it(scale: Path, kx: Kx) -> None:
    write(scale, "sizes: [4096, 1024]\n    weights: [9, 1]")
    kx("run", "S1", "--size", "4096,16384", cwd=scale)
    edit(scale, "weights: [9, 1]", "weights: [1, 9]")
    (row,) = [line for line in kx("log", cwd=scale).stdout.splitlines() if "| S1 " in line]
    assert "not run" in row


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("sizes: [1024, 1024]", "a size is listed twice"),
        ("sizes: [1024]\n    size: full", "a size or sizes, not both"),
        ("sizes: [1024, 4096]\n    weights: [1]", "write one for each size (2)"),
        ("sizes: [1024]\n    weights: [0]", "a weight is above 0"),
    ],
)
def test_a_mistake_in_sizes_is_a_sentence_with_its_line(
    scale: Path, kx: Kx, lines: str, words: str
) -> None:
    write(scale, lines)
    result = kx("run", "S1", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "experiments.yaml:" in result.stderr
    assert words in " ".join(result.stderr.split())


def test_a_parameter_that_the_problem_lacks_is_named_with_those_it_has(scale: Path, kx: Kx) -> None:
    result = kx("run", "S1", "--size", "M=1024,2048", cwd=scale)
    assert result.exit_code == errors.USAGE
    output = " ".join(result.stderr.split())
    assert "has no size 'M=1024'; known: full, emulated; or set its parameters (count)" in output


def test_a_size_can_be_emulated_by_what_it_sets(scale: Path, kx: Kx) -> None:
    result = kx("emulate", "scale", "--size", "count=2048", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    assert "2,048 elements" in " ".join(result.stdout.split())


SWEEP = ("sweep", "scale", "width=1,2,4", "--size", "count=1024,4096,16384")


def test_a_sweep_writes_a_table_that_a_program_compiles(scale: Path, kx: Kx) -> None:
    result = kx(*SWEEP, "--dispatch", "table.hpp", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    page = " ".join(result.stdout.split())
    assert "count=1024 width=2" in page
    assert "count=4096 width=4" in page
    main = "constexpr long long width(long long n) { return scale_sm_90a::choose(n).width; }"
    checks = "static_assert(width(1) == 2 && width(1024) == 2 && width(4096) == 4);"
    (scale / "main.cpp").write_text(f'#include "table.hpp"\n{main}\n{checks}\n')
    command = ["g++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", "main.cpp"]
    compiled = subprocess.run(command, cwd=scale, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr


def test_a_table_with_one_variant_for_every_size_compiles_without_a_warning(
    scale: Path, kx: Kx
) -> None:
    kx("sweep", "scale", "width=1,2", *SWEEP[3:], "--dispatch", "table.hpp", cwd=scale)
    (scale / "main.cpp").write_text(
        '#include "table.hpp"\nstatic_assert(scale_sm_90a::choose(7).width == 2);\n'
    )
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "main.cpp"]
    compiled = subprocess.run(command, cwd=scale, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr


def test_one_sweep_writes_a_table_in_both_formats(scale: Path, kx: Kx) -> None:
    kx(*SWEEP, "--dispatch", "table.hpp", "--dispatch", "table.json", cwd=scale)
    assert "constexpr Variant choose(" in (scale / "table.hpp").read_text()
    table = json.loads((scale / "table.json").read_text())
    table = json.loads((scale / "table.json").read_text())
    assert [choice["axes"]["width"] for choice in table["choices"]] == [2, 4, 4]
    assert [choice["parameters"]["count"] for choice in table["choices"]] == [1024, 4096, 16384]
    assert table["choices"][1]["change"] == pytest.approx(-0.1, abs=0.005)


def test_a_table_of_one_size_is_refused(scale: Path, kx: Kx) -> None:
    result = kx("sweep", "scale", "width=1,2", "--dispatch", "table.json", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "needs several sizes" in result.stderr


def test_a_table_of_sizes_in_two_parameters_chooses_by_both(scale: Path, kx: Kx) -> None:
    sizes = "count=1024,4096,16384,1025"
    kx("sweep", "scale", "width=1,2,4", "--size", sizes, "--csv", cwd=scale)
    record = records.read_file(sorted((scale / "logs/runs/sweep-scale").glob("*measured*"))[-1])
    grid = [{"M": 64, "N": 64}, {"M": 64, "N": 256}, {"M": 1024, "N": 256}, {"M": 1024, "N": 64}]
    parts = zip(record.sizes, grid, strict=True)
    results = tuple(msgspec.structs.replace(size, parameters=own) for size, own in parts)
    dispatch.write(msgspec.structs.replace(record, sizes=results), scale / "table.hpp")
    main = "constexpr auto width(int m, int n) { return scale_sm_90a::choose(m, n).width; }"
    checks = "static_assert(width(64, 1) == 2 && width(64, 256) == 4 && width(9999, 64) == 2);"
    (scale / "main.cpp").write_text(f'#include "table.hpp"\n{main}\n{checks}\n')
    command = ["g++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", "main.cpp"]
    compiled = subprocess.run(command, cwd=scale, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr
    found = {(own.parameter, own.after, own.before) for own in oversizes.crossovers(results)}
    assert found == {
        ("N", "count=1024", "count=4096"),
        ("N", "count=1025", "count=16384"),
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("width=1,2", "--size", "M=1 N=1,M=2 N=2", "--dispatch", "t.h"), "all combinations"),
        (("--strategy", "random", "--size", "1024,4096"), "--strategy searches at one size"),
    ],
)
def test_what_makes_no_table_is_refused_before_anything_is_timed(
    scale: Path, kx: Kx, words: tuple[str, ...], sentence: str
) -> None:
    result = kx("sweep", "scale", *words, cwd=scale)
    assert result.exit_code == errors.USAGE
    assert sentence in " ".join(result.stderr.split())
    assert not (scale / "logs/runs/sweep-scale").exists()


def test_a_plan_names_its_sizes(scale: Path, kx: Kx) -> None:
    result = kx(*SWEEP, "--dry-run", cwd=scale)
    assert "at each of the sizes count=1024, count=4096, count=16384" in " ".join(
        result.stdout.split()
    )
