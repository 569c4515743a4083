"""inspect --memory: which lanes of a warp touch which banks and sectors."""

from __future__ import annotations

import json

import pytest
from support import Kx

from kernelexp.model import errors

# One worker executes the transpose for all of them.
pytestmark = pytest.mark.xdist_group("transpose")
PLAIN, PADDED = "transpose@sm_90a:layout=plain", "transpose@sm_90a:layout=padded"


def test_a_column_of_a_tile_stands_in_one_bank(kx: Kx) -> None:
    result = kx("inspect", PLAIN, "--memory")
    assert result.exit_code == errors.OK, result.output
    rows = [line.split()[2:] for line in result.stdout.splitlines() if "wave " in line]
    lanes = [[(bank, item) for bank, item in enumerate(row) if item != "."] for row in rows]
    assert all(len(row) == 1 for row in lanes)
    assert [item for ((_, item),) in lanes] == [str(number) for number in range(8)]
    assert len({bank for ((bank, _),) in lanes}) == 1
    assert "LDS: 32 wavefronts, 1 would do" in result.stdout


def test_a_padded_tile_has_nothing_to_draw(kx: Kx) -> None:
    result = kx("inspect", PADDED, "--memory")
    assert "wave 0" not in result.stdout
    assert "loads and stores take no more wavefronts or sectors" in result.stdout


def test_the_drawing_fits_80_columns(kx: Kx) -> None:
    lines = kx("inspect", PLAIN, "--memory").stdout.splitlines()
    assert max(map(len, lines)) <= 80


def test_programs_get_every_address(kx: Kx) -> None:
    (variant,) = json.loads(kx("inspect", PLAIN, "--memory", "--json").stdout)
    assert variant["schema"] == "memory/1"
    access = variant["accesses"][0]
    steps = {b - a for a, b in zip(access["addresses"], access["addresses"][1:], strict=False)}
    assert steps == {128}
    assert (access["cost"], access["ideal"], len(access["rows"])) == (32, 1, 32)


@pytest.mark.parametrize("option", ["--build", "--lines"])
def test_two_modes_are_refused(kx: Kx, option: str) -> None:
    result = kx("inspect", PLAIN, "--memory", option)
    assert result.exit_code == errors.USAGE
    assert "do not go together" in result.stderr


def test_options_of_another_mode_are_refused(kx: Kx) -> None:
    result = kx("inspect", PLAIN, "--memory", "--by", "conflicts")
    assert result.exit_code == errors.USAGE
    assert "--by" in result.stderr
