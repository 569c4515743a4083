"""kernelexp sweep --strategy: a search by a built, an emulated and a measured figure."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_gpu import FakeGpu
from support import Kx

from kernelexp.facts.metrics import read
from kernelexp.judge import sweeps
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.services.run import tune

REGISTERS = "launch__registers_per_thread"
SEARCH = ("sweep", "scale", "--strategy", "tpe")
WIDTHS = "{1: 1.0, 2: 0.97, 4: 1.5}[width]"


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    return FakeGpu(tmp_path / "locks", monkeypatch)


@pytest.fixture(autouse=True)
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "ROUND", 2)


def record_of(root: Path):
    paths = sorted((root / "logs/runs/sweep-scale").iterdir())
    return records.read_file(paths[-1])


def trials(record):
    return [(trial.axes, trial.value) for trial in record.tuning.trials]


def test_the_known_optimum_of_a_built_figure_is_found_and_refusals_are_listed(
    scale: Path, kx: Kx
) -> None:
    result = kx(*SEARCH, "--objective", REGISTERS, cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    record = record_of(scale)
    figures = {n: read(REGISTERS, arm) for n, arm in zip(record.names, record.arms, strict=True)}
    known = [value for value in figures.values() if value is not None]
    assert figures[record.names[sweeps.examine(record).ranking[0]]] == min(known)
    assert record.tuning.space == 6
    assert record.tuning.ended == "Every variant of the space was tried."
    text = " ".join(result.stdout.split())
    assert "5 of 6 variants were tried by launch__registers_per_thread, 1 of them refused" in text
    assert "1 IMPOSSIBLE: width=4, order=backward: order backward exists" in text
    (refused,) = (trial for trial in record.tuning.trials if trial.value is None)
    assert refused.axes == {"width": 4, "order": "backward"}
    assert "order backward exists for widths 1 and 2 only" in refused.why


def test_an_emulated_figure_is_counted_whatever_the_options_say(scale: Path, kx: Kx) -> None:
    objective = "ptx__thread_inst_executed"
    result = kx(*SEARCH, "width=*", "--objective", objective, cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    record = record_of(scale)
    best = record.arms[sweeps.examine(record).ranking[0]]
    assert best.axes["width"] == 4  # a quarter of the threads


def test_what_an_emulation_of_sass_counts_under_ncu_s_name_is_an_emulated_figure() -> None:
    metric = tune.metric_of("memory_l1_wavefronts_shared")
    assert (metric.kind, metric.better) == ("emulated", "less")


@pytest.mark.slow
def test_the_same_seed_makes_the_same_trials_again(scale: Path, kx: Kx) -> None:
    words = (*SEARCH, "--objective", REGISTERS, "--trials", "3", "--seed")
    kx(*words, "5", cwd=scale)
    one = record_of(scale)
    kx(*words, "5", cwd=scale)
    assert trials(record_of(scale)) == trials(one)
    assert len(trials(one)) == 3


@pytest.mark.slow
def test_times_are_relative_to_the_baseline_of_the_round_and_the_best_meet_in_a_final(
    scale: Path, kx: Kx, gpu: FakeGpu
) -> None:
    gpu.takes(WIDTHS)
    result = kx(*SEARCH, cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    record = record_of(scale)
    values = {(axes["width"], axes["order"]): value for axes, value in trials(record)}
    assert values[2, "forward"] == pytest.approx(0.97, rel=0.01)
    assert values[4, "forward"] == pytest.approx(1.5, rel=0.01)
    assert len(record.heats) == 3  # rounds of two
    finalists = [arm.name for arm in record.measurement.arms if arm.role == "candidate"]
    arms = dict(zip(record.names, record.arms, strict=True))
    assert {arms[name].axes["width"] for name in finalists} == {2}
    assert "Fastest: row" in result.stdout
    statuses = {
        candidate.arm.axes["width"]: candidate.verdict.status for candidate in record.candidates
    }
    assert statuses[2] == "IMPROVED"


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on_with_the_same_proposals_and_samples(
    scale: Path, kx: Kx, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu.takes(WIDTHS)
    rounds = []
    real = tune._Tuning._time

    def dies_in_the_third(self, names):
        rounds.append(names)
        if len(rounds) == 3:
            raise errors.EnvironmentFault("the power failed.")
        return real(self, names)

    monkeypatch.setattr(tune._Tuning, "_time", dies_in_the_third)
    assert kx(*SEARCH, cwd=scale).exit_code == errors.ENVIRONMENT
    kept = sorted((scale / ".kernelexp/sweeps").iterdir())
    times = [path.stat().st_size for path in kept]
    assert len(kept) == 2
    assert kx(*SEARCH, cwd=scale).exit_code == errors.OK
    assert rounds[3:5] == rounds[:2]
    assert min(times) > 0
    assert not list((scale / ".kernelexp/sweeps").iterdir())
    assert len(record_of(scale).heats) == 3


@pytest.mark.slow
def test_two_gpus_take_a_round_together(
    scale: Path, kx: Kx, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "ROUND", 3)
    gpu.has("GPU-a", "GPU-b")
    gpu.takes(WIDTHS)
    result = kx(*SEARCH, "--devices", "all", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    cards = [heat.measurement.device.uuid for heat in record_of(scale).heats]
    assert set(cards) == {"GPU-a", "GPU-b"}


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ((*SEARCH, "--objective", "regs"), 2, "no figure is called 'regs'"),
        ((*SEARCH, "--objective", "tflops"), 2, "a search goes by time_ms or by a built"),
        ((*SEARCH, "--objective", "occupancy_limit"), 2, "neither less nor more"),
        (
            (*SEARCH, "--objective", "ptx__inst_executed_typo"),
            2,
            "the baseline has no emulated figure",
        ),
        ((*SEARCH, "width=3", "--objective", REGISTERS), 2, "width"),
        ((*SEARCH, "width=1,2", "--objective", REGISTERS), 2, "too little to search"),
        (("sweep", "scale", "width=*", "--seed", "0"), 2, "--seed goes with --strategy"),
        (("sweep", "scale", "width=*", "--trials", "32"), 2, "--trials goes with --strategy"),
        (SEARCH, 6, "Without a GPU, name a built or emulated figure with --objective"),
    ],
)
def test_a_mistake_is_a_sentence(
    scale: Path, kx: Kx, words: tuple[str, ...], code: int, sentence: str
) -> None:
    result = kx(*words, cwd=scale)
    assert result.exit_code == code
    assert sentence in " ".join(result.stderr.split())


def test_a_dry_run_says_how_large_the_space_is(kx: Kx) -> None:
    result = kx("sweep", "patch_embed_gemm@sm_90a", "--strategy", "genetic", "--dry-run")
    assert result.exit_code == errors.OK
    text = " ".join(result.stdout.split())
    assert "Up to 32 of 870,912 variants, proposed by genetic, compared with" in text


@pytest.mark.slow
def test_bank_conflicts_of_the_transpose_are_searched_away(kx: Kx, tmp_path: Path) -> None:
    import shutil

    from support import ROOT

    shutil.copy(ROOT / "experiments.yaml", tmp_path)
    shutil.copytree(ROOT / "variants", tmp_path / "variants")
    words = ("sweep", "transpose@sm_90a", "--strategy", "tpe", "--trials", "6")
    base = ("--baseline", "layout=plain", "--objective", "memory_l1_wavefronts_shared")
    result = kx(*words, *base, cwd=tmp_path)
    assert result.exit_code == errors.OK, result.stderr
    (path,) = (tmp_path / "logs/runs/sweep-transpose").iterdir()
    record = records.read_file(path)
    best = record.arms[sweeps.examine(record).ranking[0]]
    assert best.axes["layout"] in ("padded", "swizzled")
