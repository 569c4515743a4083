"""A job of two launches, described by a problem.py with what is required and no more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support import ROOT, Kx

from kernelexp.evidence import build
from kernelexp.facts.counters import PIPE

GLOBAL_LOADS = "ptx__sass__inst_executed_global_loads"


@pytest.fixture
def splits(tmp_path: Path, hashed: Path) -> Path:
    root = tmp_path / "splits"
    shutil.copytree(ROOT / "tests/projects/splits", root)
    shutil.copytree(hashed, root / build.CACHE)
    return root


def test_two_launches_are_one_job_and_need_no_exports(splits: Path, kx: Kx) -> None:
    result = kx("emulate", "sums:splits=4", "--schedules", "2", "--json", cwd=splits)
    assert result.exit_code == 0, result.stderr
    (answer,) = json.loads(result.stdout)
    build, shown = answer["arm"]["build"], answer["arm"]["emulated"]
    assert (build["entry"], list(build["others"])) == ("_Z12partial_sumsPKfPdi", ["_Z6add_upPKdPf"])
    assert (build["exports"], build["resources"]["threads"]) == ({}, 32)
    assert [array["wrong"] for array in shown["arrays"]] == [0]
    first, second = shown["launches"]
    assert (first["ctas"], second["ctas"]) == (4 * 32, 1)
    # A warp loads an element per lane of its part, then each row's thread those of four parts.
    assert (first["counters"][GLOBAL_LOADS], second["counters"][GLOBAL_LOADS]) == (4 * 32, 4)
    assert shown["counters"][GLOBAL_LOADS] == 4 * 32 + 4


@pytest.mark.slow
def test_the_full_problem_is_counted_launch_by_launch(splits: Path, kx: Kx) -> None:
    result = kx("emulate", "sums:splits=4", "--full", "--json", cwd=splits)
    assert result.exit_code == 0, result.stderr
    (answer,) = json.loads(result.stdout)
    loads = [
        (launch["isa"], counter["full"])
        for launch in answer["scaled"]
        for counter in launch["counters"]
        if counter["counter"].removeprefix("ptx__") == "sass__inst_executed_global_loads"
    ]
    assert loads == [(isa, count) for isa in ("ptx", "sass") for count in (4 << 16, 4 << 11)]
    sass = [
        {counter["counter"]: counter["full"] for counter in launch["counters"]}
        for launch in answer["scaled"]
        if launch["isa"] == "sass"
    ]
    for item in sass:
        pipes = {name: count for name, count in item.items() if name.startswith(PIPE)}
        assert {f"{PIPE}alu", f"{PIPE}fma", f"{PIPE}lsu"} <= pipes.keys()
        assert item["sass__inst_executed_global_loads"] < pipes[f"{PIPE}lsu"]
        assert all(count < item["smsp__inst_executed"] for count in pipes.values())
