"""A race on a GPU: the best of many arms, with a slow one that must not eat the time; a sweep."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest
from gpu_kernels import needs_gpu
from support import ROOT, Kx

from kernelexp.evidence.measure import measure
from kernelexp.judge.statistics import racing
from kernelexp.model import errors
from kernelexp.model.measurement import Options
from kernelexp.services import calibration

EXTRA = {"double": 1000, "five": 50, "three": 30, "two": 20, "one": 10, "same": 0}
SLOW = {"sixty times": 59_000, "sixty times too": 59_000}


@pytest.fixture(scope="module")
def knob():
    with calibration._built_knob(None, None) as built:
        yield built


def raced(knob, extra, goal="fastest", budget_s=90.0):
    """The baseline does 5% more than the best arm does."""
    points = [("baseline", "baseline", 50), ("placebo", "placebo", 50)]
    points += [(name, "candidate", own) for name, own in extra.items()]
    options = Options(race=True, peers=False, budget_s=budget_s)
    return measure.measure(
        knob.job(points), options, look=lambda so_far: racing.look(so_far, 0.01, goal)
    )


@needs_gpu
def test_the_fastest_is_found_among_near_ones_and_hopeless_ones(knob) -> None:
    result = raced(knob, {**EXTRA, **SLOW})
    came = racing.result(result, 0.01)
    assert came.is_decided
    assert "same" in came.contenders
    assert not {"two", "five", "double", *SLOW} & set(came.contenders)
    assert {departure.arm for departure in result.departures if departure.processes <= 3} >= {
        *SLOW,
        "double",
    }


@needs_gpu
def test_slow_arms_sit_out_rows(knob) -> None:
    result = raced(knob, {**EXTRA, **SLOW})
    names = [arm.name for arm in result.arms]
    slow = [names.index(name) for name in SLOW]
    rows = [row for block in result.workers[0].blocks for row in block.rows]
    with_slow = sum(slow[0] in row.order for row in rows)
    assert 2 <= with_slow <= len(rows) / 4


@needs_gpu
def test_24_arms_are_raced_within_90_s(knob) -> None:
    extra = {f"c{i}": round(10 * 5900 ** (i / 22)) for i in range(22)} | {"best": 0}
    result = raced(knob, extra)
    came = racing.result(result, 0.01)
    assert came.is_decided
    assert "best" in came.contenders
    assert result.elapsed_s < 90.0


@needs_gpu
def test_equal_arms_end_as_a_tie(knob) -> None:
    result = raced(knob, {f"c{i}": 50 for i in range(11)})
    came = racing.result(result, 0.01)
    assert came.is_decided
    assert len(came.contenders) == 12


@needs_gpu
def test_a_sweep_of_the_transpose_names_fastest_axes_and_front(tmp_path: Path, kx: Kx) -> None:
    for name in ("experiments.yaml", "variants"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    words = ("sweep", "transpose@sm_90a", "rows=*", "layout=*")
    result = kx(*words, "--csv", cwd=tmp_path)
    assert result.exit_code == errors.OK, result.output
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 9
    # How many warps are fastest depends on the card; that bank conflicts take time does not.
    changes = [float(row["change_percent"] or 0) for row in rows]
    assert changes == sorted(changes)
    order = [(row["layout"], row["rows"]) for row in rows]
    assert order.index(("padded", "8")) < order.index(("plain", "8"))
    assert rows[-1]["verdict"] == "REJECTED"
    page = kx("show", "sweep-transpose", cwd=tmp_path).stdout
    assert "Fastest: row" in page
    assert "matters" in page
