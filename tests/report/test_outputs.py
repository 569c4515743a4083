"""Each command's --json, against the schema that `kernelexp show --schema project` prints of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import jsonschema
import msgspec
import pytest
from repositories import commit, repository
from schemas import validate
from support import ROOT, Kx

from kernelexp.judge.statistics import rates
from kernelexp.model import errors
from kernelexp.model.measurement import Measurement
from kernelexp.report import outputs
from kernelexp.services.calibration import Calibrated

PAGE = ROOT / "tests/data/ncu/raw.csv"
SWEEP = ("sweep", "scale", "width=1,2", "--no-gpu", "--no-record", "--json")

OF_RECORDS = {
    "log": ("log", "--json"),
    "list": ("list", "--json"),
    "show": ("show", "H1", "--json"),
    "record": ("show", "20261121T015301Z-85251654", "--json"),
    "diff": ("diff", "H1", "H2", "--json"),
    "compare": ("compare", "H1", "--json"),
    "verdict": ("verdict", "T2", "--json"),
    "sections": ("sections", "published-9bf658a", "--json"),
    "doctor": ("doctor", "--json"),
    "plot": ("plot", "history", "--json"),
}
OF_VARIANTS = {
    "run": ("run", "S2", "--no-record", "--no-gpu", "--json"),
    "build": ("build", "S1", "--json"),
    "emulate": ("emulate", "scale", "--json"),
    "explain": ("explain", "S1", "--json"),
    "opportunities": ("opportunities", "scale", "--json"),
    "inspect": ("inspect", "S1", "--emulate", "--expect", "STL == 0", "--json"),
    "lines": ("lines", "scale", "--source", "--json"),
    "memory": ("inspect", "scale", "--memory", "--json"),
    "modelled": ("inspect", "scale", "--modelled", "--json"),
    "sweep-plan": ("sweep", "scale", "width=*", "order=*", "--dry-run", "--json"),
    "sweep": SWEEP,
    "profile": (*("profile", "--import", str(PAGE), "--variant", "S1", "--launch", "1", "--json"),),
    "check": ("check", "--emulate", "--json"),
    "decisions": ("accept", "S1", "--json"),
    "audit": ("audit", "S1", "--against", "aaaaaaa", "--json"),
}

OF_REVISIONS = {
    "bisect": ("bisect", "S1", "--good", "HEAD~1", "--bad", "HEAD", "--by", "build", "--json"),
    "history": ("history", "S1", "--revisions", "HEAD~1..", "--no-gpu", "--json"),
}


@pytest.mark.parametrize("kind", OF_RECORDS)
def test_json_of_records_is_as_its_schema_says(kind: str, kx: Kx) -> None:
    validate(kind, kx(*OF_RECORDS[kind]).stdout)


@pytest.mark.parametrize("kind", OF_VARIANTS)
def test_json_of_variants_is_as_its_schema_says(kind: str, scale: Path, kx: Kx) -> None:
    if kind == "check":
        assert kx("check", "--update", cwd=scale).exit_code == errors.OK
    result = kx(*OF_VARIANTS[kind], cwd=scale)
    assert result.exit_code == errors.OK, result.output
    validate(kind, result.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OF_REVISIONS)
def test_json_of_revisions_is_as_its_schema_says(kind: str, scale: Path, kx: Kx) -> None:
    repository(scale)
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("each *= factor", "each *= factr"))
    commit(scale, "break")
    result = kx(*OF_REVISIONS[kind], cwd=scale)
    assert result.exit_code == errors.OK, result.output
    validate(kind, result.stdout)


def test_json_of_a_calibration_is_as_its_schema_says() -> None:
    same = (ROOT / "tests/data/samples/h200-gemm.json").read_bytes()
    recorded = msgspec.json.decode(same, type=Measurement)
    of_same_arms = rates.of_same_arms(recorded, processes=4, count=5)
    values = Calibrated(device="H200", driver="", margin=0.01, rates={"0": of_same_arms})
    validate("calibrate", outputs.encode("calibrate", values))


def test_every_kind_is_tried_above() -> None:
    # In cli/test_modelled.py, test_evaluation.py, test_recount.py, test_recompile.py, test_exec.py,
    # test_capture.py and tasks/test_assessing.py.
    elsewhere = {
        "model-refit",
        "model-validation",
        "time",
        "recount",
        "recompile",
        "exec",
        "assessment",
        "capture",
        "replay",
    }
    every = {*OF_RECORDS, *OF_VARIANTS, *OF_REVISIONS, "calibrate", *elsewhere}
    assert every == set(outputs.types())


FIELDS = {
    "run": "experiment path record expectations error",
    "sweep": "record ranking front race axes plateau path",
    "list": "root kernels experiments history best",
    "show": "id experiment standing expectations hypothesis_since records profiles",
    "log": "kernel arch title problem device best history experiments sweeps",
    "compare": "before after floor warnings unknown axes same_code effect groups not_shown",
    "audit": "date kernel arch experiment before after time_ratio time_ratio_how peers smem_budget "
    "groups",
    "explain": "experiment candidate verdict run changed_since same_code_since conclusion "
    "expectations differences uses nearest counters power profiles warnings undecided modelled",
    "opportunities": "variant conclusion opportunities suppressed uses accounts "
    "changed_since_measured profile profile_changed_since",
    "inspect": "variants same_sass_as_first expected",
    "lines": "variant size isa profile profile_is_of_this_build refused by roles lines",
}
"""Of documents at the top, in the order in which they are written."""


@pytest.mark.parametrize("kind", FIELDS)
def test_a_document_has_its_fields_in_their_order(kind: str) -> None:
    every = outputs.types()[kind]
    struct = next((one for one in get_args(every) if hasattr(one, "__struct_fields__")), every)
    assert " ".join(struct.__struct_encode_fields__) == FIELDS[kind]


def test_a_schema_refuses_what_lacks_a_field(kx: Kx) -> None:
    values = json.loads(kx("diff", "H1", "H2", "--json").stdout)
    del values["files"]
    with pytest.raises(jsonschema.ValidationError, match="'files' is a required property"):
        validate("diff", json.dumps(values))


def test_the_command_prints_a_schema_or_says_which_there_are(kx: Kx) -> None:
    assert json.loads(kx("show", "--schema", "log").stdout)["title"] == "log/1"
    result = kx("show", "--schema", "lgo")
    assert result.exit_code == errors.USAGE
    assert "--schema 'lgo': there is no such schema; did you mean 'log'?" in result.stderr
