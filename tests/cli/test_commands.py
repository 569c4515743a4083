"""Commands, from the command line to their exit code."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from support import Kx, edit

from kernelexp import project
from kernelexp.cli.common import chosen
from kernelexp.model import errors
from kernelexp.system.toolchain import Toolchain

PROGRAM = [sys.executable, "-m", "kernelexp"]


def test_run_says_evidence_difference_and_verdict(scale: Path, kx: Kx) -> None:
    result = kx("run", "S1", "--no-emulate", cwd=scale)
    assert result.exit_code == 0
    assert "registers per thread" in result.stdout
    assert "FMUL 1 → 4" in result.stdout
    assert "Verdict: UNMEASURED" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_run_leaves_a_record_and_renders_the_log(scale: Path, kx: Kx) -> None:
    kx("run", "S1", "--no-emulate", cwd=scale)
    (record,) = (scale / "logs/runs/S1").glob("*.build.json")
    values = json.loads(record.read_text())
    assert values["candidates"][0]["verdict"]["status"] == "UNMEASURED"
    assert values["compiler"].startswith("13.0.")
    assert set(values["baseline"]["files"]) == {
        "variants/include/export.cuh",
        "variants/include/vector.cuh",
        "variants/scale/scale.cu",
    }
    assert "#### S1: Four floats per thread" in (scale / "logs/EXPERIMENTS.md").read_text()


def test_run_without_a_record_writes_nothing(scale: Path, kx: Kx) -> None:
    kx("run", "S1", "--no-emulate", "--no-record", cwd=scale)
    assert not (scale / "logs").exists()


def test_run_all_runs_experiments_and_history(scale: Path, kx: Kx) -> None:
    values = json.loads(kx("run", "--all", "--no-emulate", "--json", cwd=scale).stdout)
    assert [value["record"]["experiment"] for value in values] == ["S1", "S2", "aaaaaaa"]


def test_set_changes_the_candidate_and_is_kept_in_the_record(scale: Path, kx: Kx) -> None:
    result = kx("run", "S1", "--no-emulate", "--set", "width=2", "--json", cwd=scale)
    (ran,) = json.loads(result.stdout)
    assert ran["record"]["candidates"][0]["arm"]["axes"]["width"] == 2
    assert ran["record"]["overrides"] == {"width": 2}


def test_a_candidate_that_a_constraint_refuses_is_impossible_and_not_built(
    scale: Path, kx: Kx
) -> None:
    (ran,) = json.loads(
        kx("run", "S1", "--no-emulate", "--set", "order=backward", "--json", cwd=scale).stdout
    )
    verdict = ran["record"]["candidates"][0]["verdict"]
    assert verdict["status"] == "IMPOSSIBLE"
    assert verdict["sentence"] == "order backward exists for widths 1 and 2 only."
    assert "identity" not in ran["record"]["candidates"][0]["arm"]


def test_a_candidate_beyond_a_limit_is_impossible_with_the_limit(scale: Path, kx: Kx) -> None:
    problem = scale / "variants/scale/problem.py"
    problem.write_text(problem.read_text().replace("THREADS, dynamic", "2048, dynamic"))
    result = kx("run", "S1", "--no-emulate", cwd=scale)
    assert result.exit_code == 0
    output = " ".join(result.stdout.split())
    assert "Threads: 2,048 threads needed, 1,024 is the most that sm_90a has" in output


def test_a_compiler_error_is_shown_recorded_and_ends_with_3(scale: Path, kx: Kx) -> None:
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("y[i] = v;", "y[i] = w;"))
    result = kx("run", "S1", "--no-emulate", cwd=scale)
    assert result.exit_code == errors.BUILD
    assert 'identifier "w" is undefined' in result.stdout
    assert "y[i] = w;" in result.stdout
    (record,) = (scale / "logs/runs/S1").glob("*.json")
    assert '"BUILD_FAILED"' in record.read_text()


def test_a_budget_that_the_source_contradicts_refuses_that_variant_alone(
    scale: Path, kx: Kx
) -> None:
    problem = scale / "variants/scale/problem.py"
    foretold = 'THREADS // 2 if axes["width"] == 4 else THREADS, dynamic'
    problem.write_text(problem.read_text().replace("THREADS, dynamic", foretold))
    result = kx("run", "S2", "--no-emulate", "--json", cwd=scale)
    assert result.exit_code == errors.BUILD
    (ran,) = json.loads(result.stdout)
    right, wrong = (candidate["verdict"] for candidate in ran["record"]["candidates"])
    assert right["status"] == "UNMEASURED"
    assert (wrong["status"], wrong["reason"]) == ("BUILD_FAILED", "contradiction")
    assert "budget() says 128 threads" in wrong["sentence"]
    assert "scale.cu exports 256" in wrong["sentence"]


@pytest.mark.parametrize(
    ("written", "instead", "sentence"),
    [
        ('exports["threads"], 1, 1', "128, 1, 1", "asks for 128 threads at size 'full'"),
        ("block=", "dynamic_smem_bytes=512, block=", "asks for 512 dynamic_smem_bytes at size"),
    ],
)
def test_a_launch_that_is_not_of_its_build_refuses_the_variant(
    scale: Path, kx: Kx, written: str, instead: str, sentence: str
) -> None:
    problem = scale / "variants/scale/problem.py"
    problem.write_text(problem.read_text().replace(written, instead))
    result = kx("build", "scale:width=2", "--json", cwd=scale)
    assert result.exit_code == errors.BUILD
    (arm,) = json.loads(result.stdout).values()
    assert arm["refused"]["reason"] == "contradiction"
    assert f"variants/scale/problem.py: launch() {sentence}" in arm["refused"]["sentence"]
    assert "scale.cu exports" in arm["refused"]["sentence"]


def test_a_problem_that_raises_is_a_sentence_with_its_line(scale: Path, kx: Kx) -> None:
    problem = scale / "variants/scale/problem.py"
    problem.write_text(problem.read_text().replace('axes["order"]', 'axes["odrer"]'))
    result = kx("run", "S1", "--no-emulate", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert (
        "error: S1: variants/scale/problem.py:31: there is no key 'odrer' (KeyError)"
        in result.stderr
    )


def test_an_earlier_verdict_is_compared_with_the_new_one(scale: Path, kx: Kx) -> None:
    kx("run", "S1", "--no-emulate", cwd=scale)
    (path,) = (scale / "logs/runs/S1").glob("*.json")
    path.write_text(path.read_text().replace("UNMEASURED", "REJECTED"))
    result = kx("run", "S1", "--no-emulate", cwd=scale)
    assert "Neither confirms nor contradicts run" in result.stdout


def test_an_unreadable_record_is_a_warning_and_nothing_else_is_lost(scale: Path, kx: Kx) -> None:
    kx("run", "--all", "--no-emulate", cwd=scale)
    (path,) = (scale / "logs/runs/S1").glob("*.json")
    path.write_text(path.read_text()[:100])
    result = kx("log", cwd=scale)
    assert result.exit_code == 0
    assert (
        f"warning: skipped logs/runs/S1/{path.name}: it is truncated or invalid JSON"
        in result.stderr
    )
    assert "S2" in result.stdout


@pytest.mark.slow
def test_eight_runs_at_once_lose_no_record(scale: Path) -> None:
    argv = [*PROGRAM, "run", "S1", "--no-emulate", "--json"]
    runs = [subprocess.Popen(argv, cwd=scale, stdout=subprocess.PIPE) for _ in range(8)]
    paths = {json.loads(run.communicate()[0])[0]["path"] for run in runs}
    assert [run.returncode for run in runs] == [0] * 8
    assert {str(path) for path in (scale / "logs/runs/S1").iterdir()} == paths
    assert len(paths) == 8


def test_an_interrupted_build_ends_with_130_and_leaves_no_record(
    scale: Path, tools: Toolchain
) -> None:
    slow = scale / "nvcc"
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *-version*|*-dryrun*) exec {tools.nvcc} "$@";; esac\n'
        f"touch {scale}/compiling\nexec sleep 60\n"
    )
    slow.chmod(0o755)
    argv = [*PROGRAM, "run", "S1", "--nvcc", str(slow)]
    with subprocess.Popen(argv, cwd=scale, stderr=subprocess.PIPE, text=True) as process:
        while not (scale / "compiling").exists():
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        assert "interrupted" in process.communicate()[1]
    assert process.returncode == errors.INTERRUPTED
    assert not (scale / "logs").exists()


def test_build_takes_a_variant_as_text(scale: Path, kx: Kx) -> None:
    values = json.loads(
        kx("build", "scale@sm_90a:width=2,order=backward", "--json", cwd=scale).stdout
    )
    (arm,) = values.values()
    assert arm["defines"] == ["KX_WIDTH=2", "KX_ORDER=backward"]


def test_build_of_an_unknown_value_says_what_there_is(scale: Path, kx: Kx) -> None:
    result = kx("build", "scale:width=3", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "axis 'width' has no value '3'; known: 1, 2, 4." in result.stderr


def test_an_axis_that_is_given_twice_is_a_mistake(scale: Path, kx: Kx) -> None:
    result = kx("build", "scale:width=2,width=4", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "axis 'width' is given twice." in result.stderr


def test_build_shows_the_table_in_80_columns(scale: Path, kx: Kx) -> None:
    result = kx("build", "S1", cwd=scale)
    first, *rest = result.stdout.splitlines()
    assert first == "scale@sm_90a"
    assert any(line.split()[:1] == ["width=4"] for line in rest)
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_build_of_an_impossible_variant_ends_with_3(scale: Path, kx: Kx) -> None:
    result = kx("build", "scale:width=4,order=backward", cwd=scale)
    assert result.exit_code == errors.BUILD
    assert "IMPOSSIBLE" in result.stdout


def test_the_only_experiment_needs_no_name(cold: Path) -> None:
    loaded = project.load(cold)
    alone = msgspec.structs.replace(loaded, experiments={"S1": loaded.experiments["S1"]})
    assert chosen(alone, [], every=False) == ["S1"]


def test_run_of_nothing_says_what_to_name(scale: Path, kx: Kx) -> None:
    result = kx("run", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "name the experiments to run, or use --all" in result.stderr


def test_show_tells_all_and_every_record(scale: Path, kx: Kx) -> None:
    kx("run", "S1", "--no-emulate", cwd=scale)
    result = kx("show", "S1", cwd=scale)
    assert "Wider accesses need fewer instructions." in result.stdout
    assert "width=4 14 0 UNMEASURED" in " ".join(result.stdout.split())


def test_show_verbose_has_the_page_of_each_record(scale: Path, kx: Kx) -> None:
    kx("run", "S1", "--no-emulate", cwd=scale)
    assert "spill stores" not in kx("show", "S1", cwd=scale).stdout
    assert "spill stores" in kx("show", "S1", "--verbose", cwd=scale).stdout


def test_list_marks_the_default_of_each_axis(scale: Path, kx: Kx) -> None:
    assert "1*, 2, 4" in kx("list", cwd=scale).stdout


def test_many_experiments_are_a_row_per_kernel_and_what_waits(kx: Kx) -> None:
    shown = kx("show").stdout
    assert len(shown.splitlines()) < 45
    assert max(map(len, shown.splitlines())) <= 80
    words = " ".join(shown.split())
    assert "patch_embed_gemm@sm_100a 0.579 ms" in words
    assert "No experiments: transpose@sm_100a (not emulated, not timed)" in words


def test_a_kernel_is_shown_with_its_axes_and_experiments(kx: Kx) -> None:
    shown = kx("show", "transpose@sm_90a").stdout
    assert "plain, padded*, swizzled" in shown
    assert " T3 " in shown
    assert " F3 " not in shown
    refused = kx("show", "transpose@sm_10")
    assert refused.exit_code == errors.USAGE
    assert "sm_10" in refused.stderr


def test_a_kernel_without_axes_is_listed_without_a_table(tmp_path: Path, kx: Kx) -> None:
    target = "{source: fixed.cu, device: H200, axes: {}}"
    kernel = f"{{title: of one kind, problem: small, targets: {{sm_90a: {target}}}}}"
    (tmp_path / "experiments.yaml").write_text(f"version: 1\nkernels:\n  fixed: {kernel}\n")
    assert kx("list", cwd=tmp_path).stdout.strip() == "fixed@sm_90a  of one kind"


def test_log_as_csv_has_a_line_for_each_arm(scale: Path, kx: Kx) -> None:
    rows = list(csv.DictReader(io.StringIO(kx("log", "--csv", cwd=scale).stdout)))
    assert [(row["id"], row["arm"], row["variant"]) for row in rows] == [
        ("aaaaaaa", "baseline", "defaults"),
        ("aaaaaaa", "candidate", "width=2"),
        ("S1", "baseline", "defaults"),
        ("S1", "candidate", "width=4"),
        ("S2", "baseline", "defaults"),
        ("S2", "candidate", "width=2"),
        ("S2", "candidate", "width=4"),
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--check", "--write"), "--write and --check do not go together: choose one."),
        (("--csv", "--json"), "--json and --csv do not go together: choose one."),
        (("--force",), "--force goes with --write."),
    ],
)
def test_options_of_log_that_exclude_each_other_are_a_mistake(
    scale: Path, kx: Kx, options: tuple[str, ...], sentence: str
) -> None:
    result = kx("log", *options, cwd=scale)
    assert result.exit_code == errors.USAGE
    assert result.stderr == f"error: {sentence}\n"


def test_another_compiler_that_is_none_is_a_sentence(scale: Path, kx: Kx) -> None:
    result = kx("run", "S1", "--no-emulate", "--nvcc", "/nowhere/nvcc", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "--nvcc names /nowhere/nvcc, which is not a program that can be run." in result.stderr


def test_the_environment_can_name_another_compiler(
    scale: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELEXP_NVCC", "/nowhere/nvcc")
    assert "KERNELEXP_NVCC names /nowhere/nvcc" in kx("run", "S1", "--no-emulate", cwd=scale).stderr


def test_version_is_the_package_s(kx: Kx) -> None:
    assert kx("--version").stdout.startswith("kernelexp 0.")


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["check", "--help"]])
def test_help_fits_80_columns(words: list[str]) -> None:
    environment = {**os.environ, "COLUMNS": "200"}
    result = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, env=environment)
    assert result.returncode == 0
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_help_names_every_exit_code(kx: Kx) -> None:
    text = kx("--help").stdout
    assert all(meaning in text for meaning in errors.EXIT_CODES.values())


@pytest.mark.parametrize(
    ("words", "completed"),
    [("kernelexp run S", "S1"), ("kernelexp run S1 --set wid", "width=4")],
)
def test_the_shell_completes_experiments_and_axes(scale: Path, words: str, completed: str) -> None:
    environment = {
        **os.environ,
        "_KERNELEXP_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    result = subprocess.run(PROGRAM, capture_output=True, text=True, env=environment, cwd=scale)
    assert completed in result.stdout.split()


def test_a_misspelt_file_ends_doctor_no_earlier(scale: Path, kx: Kx) -> None:
    edit(scale, "version: 1", "version: 2")
    assert kx("doctor", cwd=scale).exit_code in (errors.OK, errors.ENVIRONMENT)


_SHIFTED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec* now) {
    int (*real)(clockid_t, struct timespec*) = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += atoll(getenv("SHIFT_S"));
    return result;
}
"""


def test_a_clock_that_is_centuries_ahead_is_a_sentence(scale: Path, tmp_path: Path) -> None:
    library = tmp_path / "clock.so"
    gcc = ["gcc", "-shared", "-fPIC", "-xc", "-", "-o", str(library), "-ldl"]
    subprocess.run(gcc, input=_SHIFTED, text=True, check=True)
    for years in (500, 9000):  # past what Python counts in 64 bits, and past its last date
        shifted = {"LD_PRELOAD": str(library), "SHIFT_S": str(years * 31_557_600)}
        environment = {**os.environ, **shifted}
        result = subprocess.run(
            [*PROGRAM, "log"], capture_output=True, text=True, env=environment, cwd=scale
        )
        assert result.returncode == errors.ENVIRONMENT
        assert result.stderr == "error: this machine's clock is centuries ahead: set it.\n"
