"""emulate --recount: recorded runs emulated again, their records as they were."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from schemas import validate
from support import ROOT, Kx

from kernelexp.logs import documents, records
from kernelexp.logs.documents import Recount, RecountedArm, Unreadable, with_recount
from kernelexp.model import errors
from kernelexp.model.arm import AccessWidths, EmulatedEvidence

T1 = ROOT / "logs/runs/T1/20261121T000003Z-045af7a9.measured.json"


def ran(root: Path, kx: Kx) -> Path:
    """The record of a run that emulated nothing."""
    result = kx("run", "S1", "--no-emulate", "--no-gpu", "--json", cwd=root)
    (answer,) = json.loads(result.stdout)
    return root / answer["path"]


def test_a_run_without_counters_gets_them_and_its_record_stays_as_it_is(
    scale: Path, kx: Kx
) -> None:
    path = ran(scale, kx)
    before = path.read_bytes()
    assert records.read_file(path).baseline.emulated is None
    result = kx("recount", "S1", "--json", cwd=scale)
    assert result.exit_code == errors.OK, result.output
    validate("recount", result.stdout)
    (answer,) = json.loads(result.stdout)
    assert answer["is_new"]
    assert path.read_bytes() == before
    record = records.read_file(path)
    for arm in record.arms:
        assert arm.emulated
        assert arm.counted
        assert arm.emulated.counters["ptx__inst_executed"]
        assert arm.counted.counters["smsp__inst_executed"]
    shown = " ".join(kx("show", record.run, cwd=scale).stdout.split())
    assert "PTX and SASS were both executed and give the same bits" in shown
    assert "Emulated again after the run:" in shown
    again = kx("recount", record.run, cwd=scale)
    assert "this emulator's counts are there" in " ".join(again.stdout.split())
    assert len(list((scale / documents.RECOUNTS / record.run).iterdir())) == 1


@pytest.mark.slow
def test_a_run_whose_sources_have_changed_is_recounted_from_those_that_it_kept(
    scale: Path, kx: Kx
) -> None:
    path = ran(scale, kx)
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("y[i] = v;", "y[i] = v; __syncthreads();"))
    assert kx("recount", "S1", cwd=scale).exit_code == errors.OK
    counted = records.read_file(path).baseline.counted
    assert counted
    assert "sass__inst_executed_barrier" not in counted.counters


@pytest.mark.slow
def test_a_run_whose_sources_are_lost_is_said_to_be(scale: Path, kx: Kx) -> None:
    path = ran(scale, kx)
    for kept in (scale / "logs/sources").rglob("*.gz"):
        kept.unlink()
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text() + "// changed\n")
    result = kx("recount", "S1", cwd=scale)
    output = " ".join(result.stdout.split())
    assert result.exit_code == errors.USAGE
    assert (
        f"{path.name.partition('.')[0]}: not recounted. variants/scale/scale.cu as it was" in output
    )
    assert not (scale / documents.RECOUNTS).exists()


def test_what_is_neither_a_run_nor_an_experiment_is_a_sentence(kx: Kx) -> None:
    result = kx("recount", "nothing", cwd=ROOT)
    assert result.exit_code == errors.USAGE
    assert "there is no record 'nothing'" in result.stderr


def test_a_recount_is_of_the_builds_of_its_run() -> None:
    record = records.read_file(T1)
    evidence = record.candidates[0].arm.emulated
    assert evidence
    arms = {
        "baseline": RecountedArm(identity=record.baseline.identity, emulated=evidence),
        "candidate": RecountedArm(identity="another", emulated=evidence),
    }
    recount = Recount(
        version=1, run=record.run, experiment="T1", created="2026-11-22", tool="9", compiler="",
        host_files={}, arms=arms,
    )  # fmt: skip
    result = with_recount(record, recount)
    assert result.baseline.emulated is evidence
    assert result.candidates[0].arm.emulated is record.candidates[0].arm.emulated
    assert result.measurement is record.measurement
    assert result.recounted == "2026-11-22, kernelexp 9"
    assert records.encode(result) == records.encode(msgspec.structs.replace(result, recounted=""))


def test_a_recount_that_is_none_is_said_with_the_record(tmp_path: Path) -> None:
    path = tmp_path / records.FOLDER / "T1" / T1.name
    path.parent.mkdir(parents=True)
    path.write_bytes(T1.read_bytes())
    record = records.read_file(path)
    assert record.recounted == ""
    (tmp_path / documents.RECOUNTS / record.run).mkdir(parents=True)
    (tmp_path / documents.RECOUNTS / record.run / "20261122T000000Z-0.json").write_text("{")
    assert "truncated or invalid JSON" in records.read_file(path).recounted


def test_a_recount_of_loads_that_ptxas_merged_is_written_and_read(tmp_path: Path) -> None:
    widths = AccessWidths(
        file="k.cu", line=3, what="shared load", ptx={32: 4}, sass={128: 1}, ratio=0.25
    )
    evidence = EmulatedEvidence(size="emulated", arrays=(), counters={}, widths=(widths,))
    recount = Recount(
        version=documents.RECOUNT_VERSION,
        run="r",
        experiment="e",
        created="",
        tool="",
        compiler="",
        host_files={},
        arms={"baseline": RecountedArm(identity="i", emulated=evidence)},
    )
    documents.write_recount(tmp_path, recount)
    assert documents.latest_recount(str(tmp_path), "r") == recount


def test_a_recount_that_was_edited_is_said_with_the_record_and_not_read(tmp_path: Path) -> None:
    kept = Recount(
        version=1, run="R", experiment="T1", created="2026", tool="1", compiler="nvcc",
        host_files={}, arms={},
    )  # fmt: skip
    path = documents.write_recount(tmp_path, kept)
    assert documents.latest_recount(str(tmp_path), "R") == kept
    path.write_text(path.read_text().replace('"nvcc"', '"other"'))
    found = documents.latest_recount(str(tmp_path), "R")
    assert isinstance(found, Unreadable)
    assert found.why == "was edited after it was written"
