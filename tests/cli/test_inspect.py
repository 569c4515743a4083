"""The command `inspect`: what the compiler made of a variant."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, Kx

from kernelexp.evidence import build
from kernelexp.model import errors

PHASE_3 = "flash_attention@sm_90a:phase=3,block_m=32"


def inspect(kx: Kx, *arguments: str, cwd: Path = ROOT) -> dict[str, Any]:
    result = kx("inspect", *arguments, "--json", cwd=cwd)
    assert result.exit_code == 0, result.stderr
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def widths(found: dict[str, Any], kind: str) -> dict[int, tuple[int, int | None]]:
    """SASS and PTX accesses of a kind, by bits."""
    own = [access for access in found["accesses"] if access["kind"] == kind]
    return {item["bits"]: (item["sass"], item["ptx"]) for item in own}


def test_the_barriers_of_a_tile_are_those_in_the_loop_over_the_keys(kx: Kx) -> None:
    (result,) = inspect(kx, PHASE_3)["variants"]
    barriers = [item for item in result["barriers"] if item["instruction"].startswith("BAR.SYNC")]
    source = (ROOT / "variants/flash_attention/phase3.cuh").read_text().splitlines()
    comments = []
    for barrier in barriers:
        outermost = int(barrier["lines"][-1].partition(":")[2])
        comments.append((source[outermost - 1].strip(), barrier["loop"]))
    (over_keys,) = {loop for _, loop in comments[1:]}
    assert comments == [
        ("__syncthreads();", 0),
        ("sync_tiles();  // K and V are there", over_keys),
        ("sync_rows();  // the scores are there", over_keys),
        ("sync_rows();  // the maxima are there", over_keys),
        ("sync_rows();  // probabilities and sums are there", over_keys),
        ("sync_tiles();  // K and V may be overwritten", over_keys),
    ]
    line = result["loops"][over_keys - 1]["line"].partition(":")[2]
    assert source[int(line) - 1].strip() == "for (uint32_t key = 0; key < keys; key += N) {"


def test_accesses_have_the_widths_of_sass_beside_those_of_ptx(kx: Kx) -> None:
    (result,) = inspect(kx, PHASE_3)["variants"]
    assert set(widths(result, "global load")) == {128}
    merged = widths(result, "shared load")[128]
    assert merged[0] > 0  # which ptxas made of narrower ones
    assert merged[1] == 0
    assert sum(result["counts"]["every"].values()) == result["code"]["instructions"]
    assert result["counts"]["in_loops"]["SHFL.BFLY"] == 80


@pytest.mark.slow
def test_two_variants_are_shown_by_what_differs(kx: Kx) -> None:
    result = kx("inspect", PHASE_3, f"{PHASE_3},sync_policy=2")
    assert result.exit_code == 0
    assert re.search(r"instructions +1 +2\n.*\n BAR.SYNC.DEFER_BLOCKING +6 +3\n", result.stdout)
    assert re.search(r"in loops +1 +2\n.*\n BAR.SYNC.DEFER_BLOCKING +5 +2\n", result.stdout)
    assert "SHFL" not in result.stdout


def test_variants_with_the_same_instructions_are_said_to_be_identical(kx: Kx, scale: Path) -> None:
    result = kx("inspect", "scale@sm_90a", "scale@sm_90a", cwd=scale)
    assert "2 has identical SASS to 1." in result.stdout
    assert "No count differs." in result.stdout
    answer = inspect(kx, "scale@sm_90a", "scale@sm_90a:width=4", cwd=scale)
    assert answer["same_sass_as_first"] == [False]


def test_an_experiment_stands_for_its_baseline_and_its_candidates(kx: Kx, scale: Path) -> None:
    result = kx("inspect", "S2", cwd=scale)
    assert "3: scale@sm_90a: width=4" in result.stdout
    assert re.search(r"global load, 32 bits +1 +- +-\n", result.stdout)
    assert re.search(r"LDG.E.128 +- +- +1\n", result.stdout)


def test_expectations_are_met_or_missed_and_one_that_is_missed_is_a_regression(
    kx: Kx, scale: Path
) -> None:
    met = ("scale@sm_90a:width=4", "--expect", "LDG.128 == 1", "--expect", "STL == 0")
    assert kx("inspect", *met, cwd=scale).exit_code == errors.OK
    missed = kx("inspect", *met, "--expect", "FMUL <= 3", cwd=scale)
    assert missed.exit_code == errors.REGRESSION
    assert re.search(r"FMUL <= 3 +4 +missed +by 1", missed.stdout)
    assert re.search(r"LDG.128 == 1 +1 +met", missed.stdout)


def test_changes_are_expected_of_all_but_the_first_variant(kx: Kx, scale: Path) -> None:
    answer = ("--expect", "FMUL +1", "--expect", "LDG == 1")
    result = kx("inspect", "S2", *answer, "--json", cwd=scale)
    judged = json.loads(result.stdout)["expected"]
    assert [(item["condition"], item["before"], item["actual"]) for item in judged] == [
        ("LDG == 1", None, 1),
        ("FMUL +1", 1, 2),
        ("LDG == 1", 1, 1),
        ("FMUL +1", 1, 4),
        ("LDG == 1", 1, 1),
    ]
    assert result.exit_code == errors.OK


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("LDG.128", "is not a condition on instructions"),
        ("STLL == 0", "did you mean STL?"),
        ("LDG -50%", "name a baseline before it"),
    ],
)
def test_what_is_no_condition_is_refused_before_anything_is_built(
    kx: Kx, cold: Path, condition: str, words: str
) -> None:
    result = kx("inspect", "scale@sm_90a", "--expect", condition, cwd=cold)
    assert result.exit_code == errors.USAGE
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not list((cold / ".kernelexp").glob("build/*/kernel.sass"))


def test_without_a_variant_or_with_two_forms_of_output_the_command_is_refused(kx: Kx) -> None:
    assert kx("inspect").exit_code == errors.USAGE
    assert kx("inspect", "transpose", "--json", "--markdown").exit_code == errors.USAGE


@pytest.mark.slow
def test_barriers_are_counted_where_that_is_asked_for_and_then_kept(kx: Kx, copy: Path) -> None:
    assert inspect(kx, "transpose@sm_90a", cwd=copy)["variants"][0]["executed"] is None
    (result,) = inspect(kx, "transpose@sm_90a", "--emulate", cwd=copy)["variants"]
    executed = result["executed"]
    assert executed["ctas"] == 6
    assert [(line["kind"], line["times"]) for line in executed["lines"]] == [("barrier", 6)]
    assert executed["full"]["times"] == {"barrier": 512 * 256}
    (again,) = inspect(kx, "transpose@sm_90a", cwd=copy)["variants"]
    assert again["executed"] == {**executed, "full": None}


@pytest.fixture
def copy(tmp_path: Path, hashed: Path) -> Path:
    """This repository's kernels, with nothing built."""
    shutil.copytree(hashed, tmp_path / build.CACHE)
    for name in ("variants", "experiments.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "instruction"),
    [
        pytest.param(
            "flash_attention@sm_89:phase=3,block_m=32", "SHFL.BFLY", marks=pytest.mark.slow
        ),
        pytest.param("flash_attention@sm_90a", "HMMA.16816.F32", marks=pytest.mark.slow),
        ("flash_attention_hopper@sm_90a", "HGMMA.64x64x16.F32"),
        ("patch_embed_gemm@sm_90a", "QGMMA.64x192x32.F32.E4M3.E4M3"),
        ("patch_embed_gemm@sm_100a", "UTCQMMA.2CTA"),
    ],
)
def test_a_variant_of_each_architecture_has_its_instructions_in_its_loops(
    kx: Kx, variant: str, instruction: str
) -> None:
    (result,) = inspect(kx, variant)["variants"]
    assert result["counts"]["in_loops"][instruction] > 0
    assert {loop["line"] for loop in result["loops"]} != {"-"}
    assert sum(loop["instructions"] for loop in result["loops"] if loop["depth"] == 1) > 100


@pytest.mark.slow
def test_nothing_is_wider_than_80_columns(kx: Kx) -> None:
    result = kx("inspect", "patch_embed_gemm@sm_100a", "--top", "0")
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.slow
def test_markdown_has_the_same_tables(kx: Kx) -> None:
    result = kx("inspect", "transpose@sm_90a", "--markdown")
    assert re.search(r"\| BAR.SYNC.DEFER_BLOCKING +\| 1 .*\| transpose.cu:55", result.stdout)


def test_a_variant_that_does_not_build_is_said_to_be_so(kx: Kx, scale: Path) -> None:
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("y[i] = v;", "y[i] = u;"))
    result = kx("inspect", "scale@sm_90a", cwd=scale)
    assert result.exit_code == errors.BUILD
    assert "BUILD_FAILED" in result.stdout


@pytest.mark.slow
def test_what_is_not_emulated_is_inspected_and_said_to_be_so_where_it_was_asked_for(
    kx: Kx, scale: Path
) -> None:
    source = scale / "variants/scale/scale.cu"
    source.write_text(
        source.read_text().replace("y[i] = v;", 'asm volatile("pmevent 1;"); y[i] = v;')
    )
    result = kx("inspect", "scale@sm_90a", "--emulate", cwd=scale)
    assert result.exit_code == errors.ENVIRONMENT
    assert "Not emulated." in result.stdout
    assert "global store" in result.stdout
    assert kx("inspect", "scale@sm_90a", cwd=scale).exit_code == errors.OK


def test_where_an_emulation_is_kept_instructions_have_how_often_they_were_executed(
    kx: Kx, scale: Path
) -> None:
    (result,) = inspect(kx, "scale@sm_90a", cwd=scale)["variants"]
    assert result["executed_instructions"]["STG.E"] == 4096 // 32
    assert result["executed_pipes"]["sm__inst_executed_pipe_lsu"] >= 2 * 4096 // 32
    executed = sum(result["executed_instructions"].values())
    assert result["executed_pipes"]["smsp__inst_executed"] == executed
    shown = " ".join(kx("inspect", "scale@sm_90a", cwd=scale).stdout.split())
    assert "access bits SASS in loops PTX executed SASS instructions" in shown
    assert "ncu's counter emulated of all" in shown
