"""kernelexp time: variants against each other, without an experiment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Kx

from kernelexp import project
from kernelexp.model import errors
from kernelexp.model.errors import UsageError
from kernelexp.project import parse_variant
from kernelexp.services.run import lineup


def plan(root: Path, *texts: str):
    loaded = project.load(root)
    return lineup.plan(loaded, [parse_variant(loaded, text) for text in texts])


def test_it_compares_as_run_does_and_leaves_nothing(scale: Path, kx: Kx) -> None:
    before = (scale / "experiments.yaml").read_text()
    result = kx("time", "scale", "scale@sm_90a:width=4", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    assert "time  width=4 against defaults   scale, sm_90a" in result.stdout
    assert "FMUL 1 → 4" in result.stdout
    assert "UNMEASURED (no_gpu). Built and emulated, not timed" in result.stdout
    assert not (scale / "logs").exists()
    assert (scale / "experiments.yaml").read_text() == before


def test_the_first_is_the_baseline(scale: Path) -> None:
    result = plan(scale, "scale:width=4,order=backward", "scale:width=2,order=backward", "scale")
    assert result.baseline == {"width": 4, "order": "backward"}
    assert result.candidate == [{"width": 2}, {"width": 1, "order": "forward"}]


def test_an_experiment_stands_for_its_arms_each_once(scale: Path, kx: Kx) -> None:
    result = kx("time", "S1", "S2", "--no-emulate", "--json", cwd=scale)
    (answer,) = json.loads(result.stdout)
    assert answer["path"] is None
    axes = [candidate["arm"]["axes"]["width"] for candidate in answer["record"]["candidates"]]
    assert answer["record"]["baseline"]["axes"]["width"] == 1
    assert axes == [4, 2]


def test_record_makes_an_experiment_of_it(scale: Path, kx: Kx) -> None:
    result = kx("time", "scale:width=2", "scale", "--record", "--no-emulate", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    loaded = project.load(scale)
    assert result.stderr.startswith(f"added S3, {loaded.place('S3')}\n")
    answer = loaded.experiment("S3")
    assert (answer.baseline, answer.candidate) == ({"width": 2}, {"width": 1})
    assert len(list((scale / "logs/runs/S3").iterdir())) == 1
    assert "S3: width=1 against width=2" in (scale / "logs/EXPERIMENTS.md").read_text()


@pytest.mark.parametrize("texts", [("scale",), ("scale", "scale:width=1")])
def test_a_variant_against_itself_is_refused(scale: Path, texts: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="is compared with itself only: name another variant"):
        plan(scale, *texts)


def test_two_kernels_are_not_timed_together(scale: Path, kx: Kx) -> None:
    text = (scale / "experiments.yaml").read_text()
    target = text[text.index("    title: y =") : text.index("experiments:")]
    (scale / "variants/other").symlink_to(scale / "variants/scale")
    (scale / "experiments.yaml").write_text(
        text.replace("kernels:\n", f"kernels:\n  other:\n{target.rstrip()}\n", 1)
    )
    result = kx("time", "scale", "other", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "name variants of one kernel and one architecture" in result.stderr
