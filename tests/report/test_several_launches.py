"""Pages of variants whose job is several launches."""

from __future__ import annotations

import msgspec
import pytest
from support import ROOT

from kernelexp.logs import records
from kernelexp.model.arm import Arm, EmulatedEvidence, EmulatedLaunch, OtherEntry
from kernelexp.report.document.document import Table
from kernelexp.report.runs import page
from kernelexp.report.variants import builds, emulation


@pytest.fixture
def arm() -> Arm:
    """One whose build has another entry of one CTA per SM, and that was emulated."""
    (path, *_) = sorted((ROOT / "logs/runs/T1").glob("*.json"))
    base = records.read_file(path).baseline
    assert base.build
    used = msgspec.structs.replace(base.build.resources, registers=7)
    held = msgspec.structs.replace(base.build.occupancy, ctas_per_sm=1)
    others = {"_Z6add_upPf": OtherEntry(resources=used, occupancy=held)}
    launches = tuple(
        EmulatedLaunch(
            entry=entry,
            ctas=ctas,
            thread_instructions=0,
            counters={"ptx__inst_executed": 10},
        )
        for entry, ctas in (("transpose", 8), ("_Z6add_upPf", 2))
    )
    return msgspec.structs.replace(
        base,
        build=msgspec.structs.replace(base.build, others=others),
        emulated=EmulatedEvidence(size="emulated", launches=launches),
    )


def test_a_build_has_a_row_for_each_entry(arm: Arm) -> None:
    (table, *_) = (item for item in builds.render({"a": arm}) if isinstance(item, Table))
    assert table.rows[1][:2] == ("  and add_up", "7")
    assert table.rows[1][-1] == "1"


def test_each_launch_has_a_row_of_counters(arm: Arm) -> None:
    (table,) = emulation.launches({"one": arm}, True)
    assert isinstance(table, Table)
    assert table.rows[1][:4] == ("launch 2", "add_up", "2", "10")


def test_launches_of_one_entry_share_a_row_until_each_is_asked_for(arm: Arm) -> None:
    assert arm.emulated
    often = msgspec.structs.replace(arm.emulated, launches=3 * arm.emulated.launches)
    arm = msgspec.structs.replace(arm, emulated=often, emulated_sass=None)
    (table, _) = emulation.launches({"one": arm}, False)
    assert isinstance(table, Table)
    assert [row[:4] for row in table.rows] == [
        ("3x", "transpose", "24", "30"),
        ("3x", "add_up", "6", "30"),
    ]
    (table,) = emulation.launches({"one": arm}, True)
    assert isinstance(table, Table)
    assert len(table.rows) == 6


def test_another_entry_s_resources_are_a_difference(arm: Arm) -> None:
    assert arm.build
    same = msgspec.structs.replace(arm, build=msgspec.structs.replace(arm.build, others={}))
    assert page._is_same_code(arm, arm)
    assert not page._is_same_code(arm, same)
