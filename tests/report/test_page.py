"""The page of a run with many candidates: read at a glance in 80 columns."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from support import ROOT

from kernelexp.logs import records
from kernelexp.model.arm import Arm
from kernelexp.model.record import Record
from kernelexp.report.document import matrix, terminal
from kernelexp.report.document.document import Document
from kernelexp.report.runs import page

(T3,) = sorted((ROOT / "logs/runs/T3").glob("*.json"))[-1:]
CANDIDATES = 12


def shown(document: Document) -> list[str]:
    console = Console(width=80, record=True, file=io.StringIO())
    for renderable in terminal.render(document):
        console.print(renderable)
    return console.export_text().splitlines()


def with_registers(arm: Arm, registers: int) -> Arm:
    assert arm.build
    resources = msgspec.structs.replace(arm.build.resources, registers=registers)
    return msgspec.structs.replace(
        arm,
        axes={**arm.axes, "rows": registers},
        build=msgspec.structs.replace(arm.build, resources=resources),
    )


@pytest.fixture
def many() -> Record:
    """A baseline with 24 registers, and candidates that differ from it in registers alone."""
    record = records.read_file(Path(T3))
    one = record.candidates[0]
    bare = msgspec.structs.replace(record.baseline, measured=None)
    return msgspec.structs.replace(
        record,
        baseline=bare,
        candidates=tuple(
            msgspec.structs.replace(one, arm=with_registers(bare, 30 + number))
            for number in range(CANDIDATES)
        ),
        measurement=None,
        estimate=None,
    )


def test_many_candidates_have_a_row_each_below_the_baseline(many: Record) -> None:
    (table,) = matrix.render({f"rows={number}": arm for number, arm in enumerate(many.arms)})
    assert table.header == ("", "registers")
    assert len(table.rows) == 1 + CANDIDATES
    assert table.rows[0] == ("rows=0", "24")


def test_their_page_fits_80_columns_and_leaves_out_what_is_equal(many: Record) -> None:
    lines = shown(page.render(many))
    assert max(map(len, lines)) <= 80
    assert any(line.split() == ["rows=41", "41"] for line in lines)
    assert not any("threads" in line for line in lines)
    assert any("are equal in all arms" in line for line in lines)


def test_columns_that_do_not_fit_go_into_another_table(many: Record) -> None:
    base = many.baseline
    assert base.build
    used = base.build.resources
    other = msgspec.structs.replace(
        used,
        registers=255,
        spill_store_bytes=123456,
        static_smem_bytes=1,
        dynamic_smem_bytes=232448,
        threads=1024,
        cluster=16,
    )
    arm = msgspec.structs.replace(base, build=msgspec.structs.replace(base.build, resources=other))
    tables = list(matrix.render({"baseline": base, "a label of some length, b=1": arm}))
    assert len(tables) == 2
    assert max(map(len, shown(tables))) <= 80
