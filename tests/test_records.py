"""Records: whole or not there, all read, none lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp import records
from kernelexp.model import Arm, Candidate, Record, Status, Verdict

VERDICT = Verdict(status=Status.UNMEASURED, reason="no_gpu", sentence="Nothing was timed.")


def a_record(experiment: str = "S1", **changes: object) -> Record:
    record = Record(
        version=records.VERSION,
        run=records.new_run_name(),
        experiment=experiment,
        provenance="run",
        created="2026-01-01T00:00:00+00:00",
        kernel="scale",
        arch="sm_90a",
        title="A title",
        hypothesis="A hypothesis",
        baseline=Arm(axes={"width": 1}),
        candidates=(Candidate(arm=Arm(axes={"width": 4}), verdict=VERDICT),),
    )
    return msgspec.structs.replace(record, **changes)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = a_record()
    records.write(tmp_path, record)
    assert records.read(tmp_path, "S1") == ([record], [])


@given(
    st.dictionaries(st.text(), st.one_of(st.booleans(), st.integers(-(2**63), 2**63), st.text()))
)
def test_any_axis_values_survive_a_record(axes: dict[str, bool | int | str]) -> None:
    record = a_record(baseline=Arm(axes=axes))
    text = msgspec.json.encode(record)
    assert msgspec.json.decode(text, type=Record) == record


def test_a_record_cut_short_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    kept, cut = a_record(), records.write(tmp_path, a_record())
    records.write(tmp_path, kept)
    cut.write_bytes(cut.read_bytes()[:-40])
    found, unreadable = records.read_all(tmp_path)
    assert found == [kept]
    assert [each.path for each in unreadable] == [cut]
    assert "is not whole JSON" in unreadable[0].why


def test_a_record_of_a_newer_version_is_named_with_its_version(tmp_path: Path) -> None:
    records.write(tmp_path, a_record(version=9))
    _, unreadable = records.read_all(tmp_path)
    assert "has version 9, written by a newer kernelexp" in unreadable[0].why


def test_a_field_of_a_later_version_is_read_over(tmp_path: Path) -> None:
    path = records.write(tmp_path, a_record())
    path.write_text(path.read_text().replace('"version": 1,', '"version": 1, "later": [1, 2],'))
    found, unreadable = records.read_all(tmp_path)
    assert (len(found), unreadable) == (1, [])


def test_published_records_come_first(tmp_path: Path) -> None:
    records.write(tmp_path, a_record())
    records.write(tmp_path, a_record(run="published", provenance="published"))
    found, _ = records.read(tmp_path, "S1")
    assert [each.provenance for each in found] == ["published", "run"]


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_records import a_record
from kernelexp import records
from kernelexp.model import Arm
print("ready", flush=True)
while True:
    records.write(Path(sys.argv[1]), a_record(baseline=Arm(build_log="x" * 2_000_000)))
"""


@pytest.mark.parametrize("after_ms", [1, 3, 7, 12, 20, 33])
def test_a_kill_at_any_moment_leaves_whole_records_only(tmp_path: Path, after_ms: int) -> None:
    argv = [sys.executable, "-c", WRITER, str(tmp_path), str(Path(__file__).parent)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after_ms / 1000)
        process.send_signal(signal.SIGKILL)
    found, unreadable = records.read_all(tmp_path)
    assert unreadable == []
    assert all(len(record.baseline.build_log) == 2_000_000 for record in found)


def measured(root: Path, status: Status, moment: str) -> Record:
    """A record as a measurement leaves it."""
    verdict = msgspec.structs.replace(VERDICT, status=status)
    record = a_record(
        run=f"2026010{moment}T000000Z-00000000",
        candidates=(Candidate(arm=Arm(axes={"width": 4}), verdict=verdict),),
    )
    path = records.write(root, record)
    path.rename(path.with_name(path.name.replace(".build.", ".measured.")))
    return record


def test_the_log_tells_the_latest_measurement_that_decides(tmp_path: Path) -> None:
    records.write(tmp_path, a_record(run="published", provenance="published"))
    measured(tmp_path, Status.REJECTED, "1")
    decided = measured(tmp_path, Status.IMPROVED, "2")
    measured(tmp_path, Status.INVALID, "3")
    records.write(tmp_path, a_record())
    told = records.read_telling(tmp_path, "S1")
    assert (told.record, told.count) == (decided, 5)


def test_the_log_tells_the_latest_run_where_nothing_decides(tmp_path: Path) -> None:
    records.write(tmp_path, a_record(run="20260101T000000Z-00000000"))
    last = a_record(run="20260102T000000Z-00000000")
    records.write(tmp_path, last)
    records.write(tmp_path, a_record(run="20260103T000000Z-00000000", overrides={"width": 2}))
    assert records.read_telling(tmp_path, "S1").record == last


def test_the_log_tells_of_a_broken_record_and_takes_the_next(tmp_path: Path) -> None:
    kept = a_record(run="20260101T000000Z-00000000")
    records.write(tmp_path, kept)
    broken = records.write(tmp_path, a_record(run="20260102T000000Z-00000000"))
    broken.write_text("{")
    told = records.read_telling(tmp_path, "S1")
    assert (told.record, [each.path for each in told.unreadable]) == (kept, [broken])
