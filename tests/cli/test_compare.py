"""kernelexp compare: from the words of a command line to a page, JSON, markdown, or a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import ROOT, Kx

from kernelexp.model import errors

PAGE = ROOT / "tests/data/ncu/raw.csv"
T3, H1 = "20261121T000044Z-485c4d1d", "20261121T015301Z-85251654"
PADDED, CONFLICTS = f"{PAGE}:3", f"{PAGE}:4"


def test_two_pages_of_ncu_compare_without_a_project(kx: Kx, tmp_path: Path) -> None:
    result = kx("compare", PADDED, CONFLICTS, cwd=tmp_path)
    assert result.exit_code == errors.OK, result.stderr
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == "raw.csv:3 → raw.csv:4"
    assert "duration under ncu 293 654.2 us +123.3% worse" in lines
    assert "bank conflicts, shared ld 123,534 130,832,778 x 1,059 worse" in lines


@pytest.mark.parametrize("words", [(PADDED, CONFLICTS, "--all"), (f"{T3}:2",), ("F3",), (H1,)])
def test_a_page_fits_80_columns(kx: Kx, words: tuple[str, ...]) -> None:
    result = kx("compare", *words)
    assert result.exit_code == errors.OK, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_launches_of_kernels_with_different_names_are_warned_of(kx: Kx) -> None:
    result = kx("compare", f"{PAGE}:1", PADDED)
    assert "warning: different kernels: patch_embed_gemm and transpose." in result.stdout


def test_the_makers_name_is_no_difference_between_gpus(kx: Kx, tmp_path: Path) -> None:
    other = tmp_path / "raw.csv"
    other.write_text(PAGE.read_text().replace("NVIDIA H200", "H200"))
    result = kx("compare", f"{other}:3", PADDED)
    assert result.exit_code == errors.OK, result.stderr
    assert "different conditions" not in result.stdout


def test_a_record_alone_is_its_baseline_against_its_candidate(kx: Kx) -> None:
    values = json.loads(kx("compare", H1, "--json").stdout)
    assert (values["before"]["label"], values["after"]["label"]) == ("H1 baseline", "H1 candidate")
    assert values["axes"] == {"stages": [6, 4]}
    assert [group["kind"] for group in values["groups"]] == [
        "measured",
        "built",
        "built",
        "emulated",
    ]


def test_arms_with_as_many_of_each_instruction_are_said_to_have_them(kx: Kx) -> None:
    words = "both have as many of each SASS instruction"
    assert words in " ".join(kx("compare", "20261121T014751Z-ba4e6d3d").stdout.split())
    assert words not in " ".join(kx("compare", H1).stdout.split())


def test_a_record_compares_with_a_page(kx: Kx) -> None:
    result = kx("compare", f"{T3}:1", PADDED)
    assert "registers per thread       32      24      -25.0%   better" in result.stdout


@pytest.mark.slow
def test_variants_are_built_and_compared(cold: Path, kx: Kx) -> None:
    result = kx("compare", "scale@sm_90a:width=1", "scale@sm_90a:width=4", cwd=cold)
    assert result.exit_code == errors.OK, result.stderr
    assert "SASS instructions" in result.stdout
    assert "not emulated (--emulate does it)" in " ".join(result.stdout.split())


def test_a_variant_that_does_not_build_ends_with_its_exit_code(scale: Path, kx: Kx) -> None:
    (scale / "variants/scale/scale.cu").write_text("this is not CUDA")
    result = kx("compare", "scale:width=1", "scale:width=4", cwd=scale)
    assert result.exit_code == errors.BUILD
    assert result.stderr.startswith("error: scale@sm_90a: ")


def test_markdown_is_a_document(kx: Kx) -> None:
    lines = kx("compare", PADDED, CONFLICTS, "--markdown").stdout.splitlines()
    assert lines[0] == "# raw.csv:3 → raw.csv:4"
    assert any("gpc__cycles_elapsed.max" in line for line in lines)


def test_a_metric_is_shown_by_a_part_of_its_name(kx: Kx) -> None:
    shown = kx("compare", PADDED, CONFLICTS, "--metric", "HIT").stdout
    assert "l1tex__t_sector_hit_rate.pct" in shown
    assert "gpc__cycles" not in shown


def test_the_floor_is_in_percent(kx: Kx) -> None:
    def shown(floor: str) -> int:
        values = json.loads(kx("compare", PADDED, CONFLICTS, "--floor", floor, "--json").stdout)
        return sum(len(group["findings"]) for group in values["groups"])

    assert shown("1000") < shown("5") <= shown("0")


def test_a_report_without_ncu_says_how_to_print_its_pages(
    kx: Kx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "report.ncu-rep"
    report.write_bytes(b"NVR\0")
    monkeypatch.setenv("PATH", str(tmp_path))
    result = kx("compare", str(report), PADDED)
    assert result.exit_code == errors.ENVIRONMENT
    assert result.stderr.startswith("error: report.ncu-rep is a report, which only ncu can read")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("F3", "nosuch"), "'nosuch' is not a file, an experiment, a kernel"),
        ((str(PAGE), PADDED), "raw.csv has 4 launches: name one, raw.csv:1 to raw.csv:4."),
        ((PADDED,), "is one side of a comparison: name the other one too"),
        ((PADDED, CONFLICTS, "--metric", "("), "--metric '(' is not a regular expression"),
        (("transpose@sm_90a:rows=5", "F3"), "rows"),
    ],
)
def test_a_mistake_is_a_sentence(kx: Kx, words: tuple[str, ...], sentence: str) -> None:
    result = kx("compare", *words)
    assert result.exit_code == errors.USAGE
    assert result.stderr.startswith("error: ")
    assert sentence in result.stderr


def test_two_source_pages_compare_by_the_totals_of_their_columns(kx: Kx) -> None:
    page = ROOT / "tests/data/ncu/source-sass.csv"
    shown = kx("compare", f"{page}:3", f"{page}:4").stdout
    assert "mio throttle" in shown
    assert "11,829" in shown
