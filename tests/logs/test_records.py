"""Records: whole or not there, all read, none lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.logs import records
from kernelexp.logs.documents import complete
from kernelexp.model.arm import AccessWidths, Arm, EmulatedEvidence, EmulatedLine, Status, Verdict
from kernelexp.model.errors import UsageError
from kernelexp.model.record import Candidate, Record
from kernelexp.system import disk

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
    return complete(msgspec.structs.replace(record, **changes))


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = a_record()
    records.write(tmp_path, record)
    assert records.read(tmp_path, "S1") == ([record], [])


def test_an_edit_is_noticed_whatever_was_edited(tmp_path: Path) -> None:
    path = records.write(tmp_path, a_record())
    text = path.read_text()
    assert not records.read_file(path).edited
    for before, after in (('"width": 4', '"width": 2'), ("A title", "B title"), ("{", "{ ")):
        path.write_text(text.replace(before, after, 1))
        assert records.read_file(path).edited
    path.write_text(json.dumps(json.loads(text)))
    assert records.read_file(path).edited


def test_a_file_that_git_checked_out_for_windows_or_an_early_version_wrote_is_not_edited(
    tmp_path: Path,
) -> None:
    path = records.write(tmp_path, a_record())
    text = path.read_text()
    path.write_bytes(text.replace("\n", "\r\n").encode())
    assert not records.read_file(path).edited
    values = json.loads(text)
    del values["digest"]
    path.write_text(json.dumps(values))
    assert not records.read_file(path).edited


def test_an_arm_that_was_compiled_with_other_axes_contradicts_itself(tmp_path: Path) -> None:
    wide = Arm(axes={"width": 4, "fast": True}, defines=("KX_WIDTH=4", "KX_FAST=true"))
    for axes in ({"width": 2, "fast": True}, {"width": 4, "fast": False}):
        changed = msgspec.structs.replace(wide, axes=axes)
        records.write(tmp_path, a_record(candidates=(Candidate(arm=changed, verdict=VERDICT),)))
    records.write(tmp_path, a_record(candidates=(Candidate(arm=wide, verdict=VERDICT),)))
    found, unreadable = records.read(tmp_path, "S1")
    assert len(found) == 1
    assert [item.why for item in unreadable] == [
        "contradicts itself: its candidate was not built with KX_WIDTH=2",
        "contradicts itself: its candidate was not built with KX_FAST=false",
    ]


@given(
    st.dictionaries(st.text(), st.one_of(st.booleans(), st.integers(-(2**63), 2**63), st.text()))
)
def test_any_axis_values_survive_a_record(axes: dict[str, bool | int | str]) -> None:
    record = a_record(baseline=Arm(axes=axes))
    assert complete(msgspec.json.decode(records.encode(record), type=Record)) == record


def test_widths_of_accesses_survive_a_record(tmp_path: Path) -> None:
    widths = AccessWidths(
        file="a.cu", line=3, what="shared load", ptx={32: 4}, sass={64: 1, 128: 1}
    )
    evidence = EmulatedEvidence(size="emulated", widths=(widths,))
    record = a_record(baseline=Arm(axes={"width": 1}, emulated=evidence))
    records.write(tmp_path, record)
    ((read,), []) = records.read(tmp_path, "S1")
    assert read.baseline.emulated == evidence


def test_a_record_cut_short_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    kept, cut = a_record(), records.write(tmp_path, a_record())
    records.write(tmp_path, kept)
    cut.write_bytes(cut.read_bytes()[:-40])
    result, unreadable = records.read(tmp_path, "S1")
    assert result == [kept]
    assert [item.path for item in unreadable] == [cut]
    assert "is truncated or invalid JSON" in unreadable[0].why


def test_a_record_that_is_held_is_read_again_only_where_its_file_changed(tmp_path: Path) -> None:
    path = records.write(tmp_path, a_record())
    ((held,), _) = records.read(tmp_path, "S1")
    ((again,), _) = records.read(tmp_path, "S1")
    assert again is held
    path.write_bytes(path.read_bytes()[:-40])
    _, unreadable = records.read(tmp_path, "S1")
    assert [item.path for item in unreadable] == [path]


def test_a_record_of_a_newer_version_is_named_with_its_version(tmp_path: Path) -> None:
    records.write(tmp_path, a_record(version=9))
    _, unreadable = records.read(tmp_path, "S1")
    assert "has version 9, written by a newer kernelexp" in unreadable[0].why


def test_a_field_of_a_later_version_is_read_over(tmp_path: Path) -> None:
    path = records.write(tmp_path, a_record())
    fields = json.loads(path.read_text())
    path.write_text(json.dumps(fields | {"later": [1, 2]}))
    result, unreadable = records.read(tmp_path, "S1")
    assert (len(result), unreadable) == (1, [])


def test_what_version_1_counted_on_ptx_is_read_under_names_of_its_own(tmp_path: Path) -> None:
    name = "memory_l1_wavefronts_shared"
    counters = {name: 7, "ptx__inst_executed": 9}
    line = EmulatedLine(file="scale.cu", line=3, counters=counters)
    emulated = EmulatedEvidence(size="emulated", counters=counters, lines=(line,))
    written = msgspec.structs.replace(
        a_record(),
        version=1,
        baseline=Arm(emulated=emulated),
        expect=({name: "-30%", "time_ms": "-5%", f"{name}.sum": "-30%"},),
    )
    path = tmp_path / "old.json"
    path.write_text(records.encode(written))
    record = records.read_file(path)
    now = {f"ptx__{name}": 7, "ptx__inst_executed": 9}
    assert record.baseline.emulated is not None
    assert record.baseline.emulated.counters == record.baseline.emulated.lines[0].counters == now
    assert record.expect[0].keys() == {f"ptx__{name}", "time_ms", f"{name}.sum"}
    assert record.version == records.VERSION


def test_ncus_names_in_a_record_of_this_version_stay_ncus(tmp_path: Path) -> None:
    emulated = EmulatedEvidence(size="emulated", counters={"memory_l1_wavefronts_shared": 7})
    path = records.write(tmp_path, a_record(baseline=Arm(emulated=emulated)))
    result = records.read_file(path).baseline.emulated
    assert result is not None
    assert result.counters == emulated.counters


def test_published_records_come_first(tmp_path: Path) -> None:
    records.write(tmp_path, a_record())
    records.write(tmp_path, a_record(run="published", provenance="published"))
    result, _ = records.read(tmp_path, "S1")
    assert [item.provenance for item in result] == ["published", "run"]


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_records import a_record
from kernelexp.logs import records
from kernelexp.model.arm import Arm
print("ready", flush=True)
while True:
    records.write(Path(sys.argv[1]), a_record(baseline=Arm(build_log="x" * 2_000_000)))
"""


@pytest.mark.parametrize("after_ms", [1, 3, 7, 12, 20, 33])
def test_a_kill_at_any_moment_leaves_whole_records_only(tmp_path: Path, after_ms: int) -> None:
    argv = [sys.executable, "-c", WRITER, str(tmp_path), str(Path(__file__).parents[1])]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after_ms / 1000)
        process.send_signal(signal.SIGKILL)
    result, unreadable = records.read(tmp_path, "S1")
    assert unreadable == []
    assert all(len(record.baseline.build_log) == 2_000_000 for record in result)


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


def test_measured_records_come_first_then_the_published_one_then_the_latest(tmp_path: Path) -> None:
    records.write(tmp_path, a_record(run="published", provenance="published"))
    measured(tmp_path, Status.REJECTED, "1")
    measured(tmp_path, Status.IMPROVED, "2")
    records.write(tmp_path, a_record(run="20260105T000000Z-00000000"))
    runs = [item.run for item in records.by_weight(tmp_path, "S1") if isinstance(item, Record)]
    assert runs == [
        "20260102T000000Z-00000000",
        "20260101T000000Z-00000000",
        "published",
        "20260105T000000Z-00000000",
    ]


def test_of_many_records_the_last_and_those_that_timed_something_are_read(tmp_path: Path) -> None:
    timed = measured(tmp_path, Status.IMPROVED, "1").run
    later = [f"2026010{day}T000000Z-00000000" for day in (2, 3, 4)]
    for run in later:
        records.write(tmp_path, a_record(run=run))
    known, _ = records.read(tmp_path, "S1", latest=2)
    assert [record.run for record in known] == [timed, *later[1:]]


@pytest.mark.parametrize("text", ["20260101", "20260101T000000Z-00000000"])
def test_a_run_is_found_by_the_beginning_of_its_name(tmp_path: Path, text: str) -> None:
    path = records.write(tmp_path, a_record(run="20260101T000000Z-00000000"))
    records.write(tmp_path, a_record(run="20260201T000000Z-00000000"))
    assert records.find(tmp_path, text) == path


def test_an_experiment_stands_for_its_latest_run(tmp_path: Path) -> None:
    records.write(tmp_path, a_record(run="20260101T000000Z-00000000"))
    path = records.write(tmp_path, a_record(run="20260201T000000Z-00000000"))
    assert records.find(tmp_path, "S1") == path


def test_a_beginning_of_several_runs_names_none(tmp_path: Path) -> None:
    records.write(tmp_path, a_record(run="20260101T000000Z-00000000"))
    records.write(tmp_path, a_record(run="20260102T000000Z-00000000"))
    with pytest.raises(UsageError, match="2 runs start with it"):
        records.find(tmp_path, "2026")


def test_a_link_and_a_pipe_are_no_records(tmp_path: Path) -> None:
    path = records.write(tmp_path, a_record(run="20260101T000000Z-00000000"))
    (path.parent / "20260102T000000Z-00000000.build.json").symlink_to(path)
    os.mkfifo(path.parent / "20260103T000000Z-00000000.build.json")
    result, unreadable = records.read(tmp_path, "S1")
    assert (len(result), len(unreadable)) == (1, 2)


def test_a_full_disk_leaves_the_old_file_and_no_temporary(tmp_path: Path) -> None:
    path = disk.write(tmp_path / "log.md", b"whole\n")
    code = (
        "import resource, signal, sys; from pathlib import Path;"
        "from kernelexp.system import disk;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "disk.write(Path(sys.argv[1]) / 'log.md', b'x' * 10_000)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True)
    assert done.returncode == 1
    assert path.read_text() == "whole\n"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_writer_left_is_swept_after_an_hour(tmp_path: Path) -> None:
    old, young = tmp_path / ".a.0.tmp", tmp_path / ".b.0.tmp"
    for path in (old, young):
        path.touch()
    os.utime(old, (0, 0))
    disk.write(tmp_path / "log.md", b"whole\n")
    assert not old.exists()
    assert young.exists()
