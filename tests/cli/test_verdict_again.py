"""Verdicts again, from the samples of committed records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import ROOT, Kx

from kernelexp.model import errors
from kernelexp.services.run.again import judge

RECORDS = sorted(ROOT.glob("logs/runs/*/*.measured.json"))
LARGE = 150_000
"""Bytes of a record with so many variants that judging it takes a second."""
T2 = next((path for path in RECORDS if path.parent.name == "T2"), Path())


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=f"{path.parent.name}-{path.stem}",
            marks=[pytest.mark.slow] * (path.stat().st_size > LARGE),
        )
        for path in RECORDS
    ],
)
def test_a_committed_record_says_what_its_samples_say(path: Path) -> None:
    result = judge(path, None)
    kept = [candidate.verdict.status for candidate in result.record.candidates]
    assert [verdict.status for verdict in result.verdicts] == kept


def test_another_margin_gives_another_verdict(kx: Kx) -> None:
    result = kx("verdict", str(T2), "--margin", "0.1")
    assert result.exit_code == errors.OK
    assert "Verdict at a margin of 0.1%: REJECTED (slower)." in result.stdout
    assert "The record's own: NEUTRAL." in result.stdout


@pytest.mark.parametrize("margin", ["nan", "inf", "-1", "0"])
def test_a_margin_is_a_number_within_bounds(kx: Kx, margin: str) -> None:
    assert kx("verdict", str(T2), f"--margin={margin}").exit_code == errors.USAGE


def test_a_record_without_samples_is_a_sentence(kx: Kx) -> None:
    result = kx("verdict", str(ROOT / "logs/runs/F3/published.json"))
    assert result.exit_code == errors.USAGE
    assert "holds no samples: nothing was timed in it; kernelexp run " in result.stderr


def test_a_file_that_is_no_record_is_a_sentence(tmp_path: Path, kx: Kx) -> None:
    path = tmp_path / "x.json"
    path.write_text("[]")
    result = kx("verdict", str(path))
    assert result.exit_code == errors.USAGE
    assert "is not a record" in result.stderr


def test_the_verdict_as_json_has_the_estimate(kx: Kx) -> None:
    values = json.loads(kx("verdict", str(T2), "--json").stdout)
    (effect,) = values["record"]["estimate"]["effects"]
    assert effect["low"] <= effect["ratio"] <= effect["high"]
