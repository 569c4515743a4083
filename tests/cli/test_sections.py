"""kernelexp show, from the command line to its tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Kx

ROOT = Path(__file__).parents[2]
RAW = ROOT / "tests/data/ncu/sections-raw.csv"
PUBLISHED = str(ROOT / "logs/profiles/published-9bf658a.json")

MINE = """
version: 1
name: mine
title: My own table
metrics:
  duration: {metric: gpu__time_duration.sum, label: duration}
"""


def test_a_page_of_ncu_is_shown_as_tables_of_80_columns(kx: Kx, tmp_path: Path) -> None:
    result = kx("sections", f"{RAW}:1", cwd=tmp_path)

    assert result.exit_code == 0
    assert "Shared memory bank conflicts" in result.stdout
    assert "Gap breakdown" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_published_profile_brings_its_time_and_work(kx: Kx, tmp_path: Path) -> None:
    result = kx("sections", PUBLISHED, "--sections", "gap", "--dtype", "fp8", cwd=tmp_path)

    assert result.exit_code == 0
    assert "87.23%" in result.stdout
    assert "time_ms: 0.579 ms, published" in result.stdout


def test_what_is_given_overrules_what_is_known(kx: Kx, tmp_path: Path) -> None:
    result = kx(
        *("sections", PUBLISHED, "--sections", "gap", "--time-ms", "1", "--peer-ms", "0.5"),
        *("--peer", "cuBLAS"),
        cwd=tmp_path,
    )

    assert "= 1.000 ms / 0.500 ms" in result.stdout
    assert "peer_ms: 0.500 ms, cuBLAS" in result.stdout


def test_json_has_each_value_with_its_formula_and_inputs(kx: Kx, tmp_path: Path) -> None:
    result = kx("sections", PUBLISHED, "--sections", "conflicts", "--json", cwd=tmp_path)

    (reading,) = json.loads(result.stdout)
    (rate,) = (value for value in reading["values"] if value["name"] == "load_rate")
    assert round(rate["value"], 1) == 32.5
    assert rate["formula"] == "100 * load_conflicts / load_wavefronts"
    assert rate["inputs"]["load_conflicts"]["value"] == 5_370_403


def test_markdown_can_be_pasted(kx: Kx, tmp_path: Path) -> None:
    result = kx("sections", PUBLISHED, "--sections", "conflicts", "--markdown", cwd=tmp_path)

    assert "## Shared memory bank conflicts" in result.stdout
    assert "| load conflicts of load wavefronts   | 32.53%" in result.stdout


def test_a_users_file_is_shown_beside_kernelexps(kx: Kx, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(MINE)
    result = kx("sections", f"{RAW}:1", "--sections", "mine.yaml, icache", cwd=tmp_path)

    assert result.exit_code == 0
    assert "My own table" in result.stdout
    assert "Instruction cache" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((PUBLISHED, "--sections", "tensr"), "did you mean 'tensor'?"),
        ((PUBLISHED, "--sections", "none.yaml"), "none.yaml can't be opened"),
        ((PUBLISHED, "--dtype", "fp9"), "--dtype fp9: of the B200, known are"),
        ((PUBLISHED, "--time-ms", "0"), "--time-ms 0: give a number above 0"),
        ((PUBLISHED, "--bytes", "nan"), "--bytes nan: give a number above 0"),
    ],
)
def test_a_mistake_ends_in_a_sentence_and_2(
    kx: Kx, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    result = kx("sections", *arguments, cwd=tmp_path)

    assert result.exit_code == 2
    assert sentence in result.stderr


def test_a_file_with_mistakes_lists_them_with_their_places(kx: Kx, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(MINE.replace("label", "lable"))
    result = kx("sections", f"{RAW}:1", "--sections", "mine.yaml", cwd=tmp_path)

    assert result.exit_code == 2
    assert "mine.yaml:6:" in result.stderr
    assert "unknown key; did you mean 'label'?" in result.stderr


def test_an_experiment_without_a_profile_says_how_to_get_one(scale: Path, kx: Kx) -> None:
    kx("run", "S1", "--no-emulate", cwd=scale)
    result = kx("sections", "S1", cwd=scale)

    assert result.exit_code == 2
    assert "has no profile: kernelexp profile takes one" in result.stderr


def test_a_variant_is_answered_with_its_latest_profile(kx: Kx) -> None:
    result = kx("sections", "transpose@sm_90a:layout=plain", cwd=ROOT)

    assert result.exit_code == 2
    assert "the latest of these axes" in result.stderr
    assert "; name that." in result.stderr


def test_what_a_page_that_was_cut_off_has_lost_is_said(kx: Kx, tmp_path: Path) -> None:
    text = RAW.read_text()
    (tmp_path / "cut.csv").write_text(text[: text.rindex('"') - 200])
    count = sum(line.startswith('"') for line in text.splitlines()) - 2
    result = kx("sections", f"cut.csv:{count}", "--sections", "stalls", cwd=tmp_path)

    assert result.exit_code == 0, result.stderr
    assert "of its columns are missing" in result.stdout


def test_editors_get_the_schema_of_section_files(kx: Kx, tmp_path: Path) -> None:
    result = kx("show", "--schema", "section", cwd=tmp_path)

    assert "derived" in json.loads(result.stdout)["$defs"]["Section"]["properties"]
