"""Several GPUs at once: what goes where, and that no comparison is torn apart. Needs no GPU.

The GPUs are made up, the processes are real.
"""

from __future__ import annotations

import threading
import uuid
from pathlib import Path

import msgspec
import pytest
from fake_gpu import FakeGpu
from measurements import DEVICE, measurement, worker
from support import TOKEN, Kx, alive, wait_until

from kernelexp.dossier.session import Local
from kernelexp.evidence.measure.job import ArmJob, Job
from kernelexp.evidence.measure.measured import MeasurementQuestion
from kernelexp.judge import consistency
from kernelexp.judge.statistics import racing
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.model.errors import UsageError
from kernelexp.model.measurement import Options, TimedArm
from kernelexp.model.record import Record, final_reference
from kernelexp.report.document.arms import measurement_lines
from kernelexp.report.document.document import Table, text_of
from kernelexp.system import device

GRID = ("sweep", "scale", "width=*", "order=*")


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    result = FakeGpu(tmp_path / "locks", monkeypatch)
    result.has("GPU-a", "GPU-b")
    return result


def records_of(root: Path, name: str):
    paths = sorted((root / "logs/runs" / name).glob("*.measured.json"))
    return [records.read_file(path) for path in paths]


# ---- which GPUs ----------------------------------------------------------------------------------


def test_all_gpus_are_those_that_the_batch_system_shows(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [item.uuid for item in device.find_all("all")] == ["GPU-a", "GPU-b"]
    assert [item.uuid for item in device.find_all("1,GPU-a")] == ["GPU-b", "GPU-a"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [item.uuid for item in device.find_all("all")] == ["GPU-b"]


@pytest.mark.parametrize(
    ("selector", "sentence"),
    [
        ("0,0", "name one GPU twice"),
        ("0,GPU-a", "name one GPU twice"),
        ("0,", "should be all, or indices and UUIDs"),
        ("0,7", "there is no GPU '7' here"),
    ],
)
def test_a_wrong_selection_is_a_sentence(gpu: FakeGpu, selector: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        device.find_all(selector)


def test_two_ways_to_name_gpus_do_not_go_together(scale: Path, kx: Kx) -> None:
    result = kx("run", "S1", "--device", "0", "--devices", "all", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "--device and --devices do not go together" in result.stderr


def test_a_gpu_measures_one_comparison_at_a_time(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = ArmJob(arm=TimedArm(name="baseline", role="baseline"), arch=DEVICE.arch)
    job = Job(problem="", size={}, arms=(arm,))
    question = MeasurementQuestion(job=job, options=Options(), margin=0.01, goal="verdicts")
    both, used = threading.Barrier(2), []

    def answer(uuid, *_):
        used.append(uuid)
        both.wait(60)  # passes only where two are measured at once
        return uuid

    monkeypatch.setattr("kernelexp.evidence.measure.measured.answer_on", answer)
    local = Local("all")
    threads = [
        threading.Thread(target=local.measure, args=(question, None, None)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(used) == ["GPU-a", "GPU-a", "GPU-b", "GPU-b"]
    at_second = msgspec.structs.replace(question, place=3)
    monkeypatch.setattr("kernelexp.evidence.measure.measured.answer_on", lambda uuid, *_: uuid)
    assert local.measure(at_second, None, None) == "GPU-b"


# ---- run -----------------------------------------------------------------------------------------


def test_experiments_are_spread_over_the_gpus_each_on_one(
    scale: Path, kx: Kx, gpu: FakeGpu
) -> None:
    gpu.takes("{1: 1.0, 2: 0.97, 4: 1.2}[width]")
    result = kx("run", "S1", "S2", "--devices", "all", "--no-emulate", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    taken = [record.measurement for name in ("S1", "S2") for record in records_of(scale, name)]
    assert {item.device.uuid for item in taken} == {"GPU-a", "GPU-b"}
    assert "Times of two GPUs do not compare." in " ".join(result.stdout.split())


# ---- sweep ---------------------------------------------------------------------------------------


def test_a_sweep_has_heats_with_the_baseline_on_each_gpu_and_a_final_on_one(
    scale: Path, kx: Kx, gpu: FakeGpu
) -> None:
    gpu.takes("{1: 1.0, 2: 0.97, 4: 60.0}[width]")
    result = kx(*GRID, "--devices", "0,1", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    (record,) = records_of(scale, "sweep-scale")
    played = [heat.measurement for heat in record.heats]
    assert {item.device.uuid for item in played} == {"GPU-a", "GPU-b"}
    arms = [{arm.name for arm in item.arms} for item in played]
    assert arms[0] & arms[1] == {"baseline", "placebo"}
    assert arms[0] | arms[1] == {"baseline", "placebo", *(f"candidate {n}" for n in range(1, 5))}
    finalists = {arm.name for arm in record.measurement.arms if arm.role == "candidate"}
    assert finalists == {"candidate 2", "candidate 3"}  # width 2
    words = {
        candidate.arm.axes["width"]: candidate.verdict.status for candidate in record.candidates[:4]
    }
    assert words == {1: "NEUTRAL", 2: "IMPROVED", 4: "REJECTED"}
    lines = [line.replace("*", " ").split() for line in result.stdout.splitlines()]
    assert ["2", "2", "forward", "0.0970"] in [line[:4] for line in lines]
    (slow,) = [float(line[3]) for line in lines if line[:3] == ["4", "4", "forward"]]
    assert slow == pytest.approx(6.0, rel=0.01)
    text = " ".join(result.stdout.split())
    assert "Fastest: row" in text
    assert "each time in the table above is that of the baseline in the final" in text
    assert max(map(len, result.stdout.splitlines())) <= 80


SLOW_BASELINE = "{1: 75.0, 2: 1.02, 4: 1.0}[width] * (0.99 if order == 'backward' else 1.0)"


@pytest.fixture
def carried(scale: Path, kx: Kx, gpu: FakeGpu) -> tuple[Record, str]:
    """A sweep on two GPUs whose baseline takes 75 times as long as the best, and its page."""
    gpu.takes(SLOW_BASELINE)
    result = kx(*GRID, "--devices", "all", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    (record,) = records_of(scale, "sweep-scale")
    return record, result.stdout


def test_a_baseline_that_is_many_times_slower_is_not_in_the_final(
    carried: tuple[Record, str],
) -> None:
    record, page = carried
    final = {arm.name: arm.role for arm in record.measurement.arms}
    assert "baseline" not in final
    reference = final_reference(record)
    assert final[reference] == "baseline"
    assert len(final) >= 3
    text = " ".join(page.split())
    assert "Fastest: row" in text
    assert f"the others were compared with {reference}" in text
    assert f"placebo of {reference}" in text
    assert max(map(len, page.splitlines())) <= 80


def test_times_and_changes_of_a_final_without_its_baseline_agree(
    carried: tuple[Record, str],
) -> None:
    record, _ = carried
    base = record.baseline.measured.time_us
    assert base == pytest.approx(7500, rel=0.005)
    timed = [arm for arm in record.arms[1:] if arm.measured]
    assert len(timed) == 4
    for arm in timed:
        assert arm.measured.time_us == pytest.approx(base * arm.measured.effect.ratio)
    best = {arm.axes["width"]: arm.measured.time_us for arm in timed}
    assert best[4] == pytest.approx(100, rel=0.01)
    fast = [
        candidate.verdict.status for candidate in record.candidates if candidate.arm in timed[1:]
    ]
    assert fast == ["IMPROVED"] * 3


def test_the_placebo_of_such_a_final_has_a_time_beside_that_of_its_reference(
    carried: tuple[Record, str],
) -> None:
    record, _ = carried
    name = final_reference(record)
    place = int(name.rpartition(" ")[2])
    slower = [  # than in its heat: a card that has grown warm
        msgspec.structs.replace(item, median_us=1.1 * item.median_us)
        for item in record.estimate.times
    ]
    estimate = msgspec.structs.replace(record.estimate, times=tuple(slower))
    blocks = measurement_lines(msgspec.structs.replace(record, estimate=estimate))
    rows = next(block for block in blocks if isinstance(block, Table)).rows
    shown = next(row for row in rows if text_of(row[0]) == f"placebo of {name}")
    ratio = float(text_of(shown[1])) / (record.arms[place].measured.time_us / 1000)
    assert ratio == pytest.approx(record.estimate.placebo.ratio, rel=0.01)


def test_a_record_of_such_a_final_is_judged_the_same_again(
    scale: Path, kx: Kx, carried: tuple[Record, str]
) -> None:
    record, _ = carried
    assert not [
        doubt for candidate in record.candidates for doubt in consistency.doubts(record, candidate)
    ]
    shown = kx("show", "sweep-scale", cwd=scale)
    assert shown.exit_code == errors.OK, shown.stderr
    assert kx("log", "--csv", cwd=scale).exit_code == errors.OK
    assert kx("plot", "run", record.run, cwd=scale).exit_code == errors.OK


@pytest.mark.slow
def test_a_record_with_heats_reads_back_as_it_was(scale: Path, kx: Kx, gpu: FakeGpu) -> None:
    gpu.takes("{1: 1.0, 2: 0.97, 4: 60.0}[width]")
    page = kx(*GRID, "--devices", "all", cwd=scale).stdout
    shown = kx("show", "sweep-scale", cwd=scale).stdout
    cards = [line for line in page.splitlines() if "GPU-a" in line or "GPU-b" in line]
    assert len(cards) == 3
    assert [line for line in shown.splitlines() if "GPU-a" in line or "GPU-b" in line] == cards
    (path,) = (scale / "logs/runs/sweep-scale").iterdir()
    assert kx("verdict", str(path), cwd=scale).exit_code == errors.OK


def test_a_heat_that_fails_ends_the_other_with_its_processes(
    scale: Path, kx: Kx, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = uuid.uuid4().hex
    monkeypatch.setenv(TOKEN, token)
    gpu.takes("(__import__('time').sleep(600) if job['device']['uuid'] == 'GPU-a' else 1 / 0)")
    result = kx(*GRID, "--devices", "all", cwd=scale)
    assert result.exit_code == errors.ENVIRONMENT
    assert "ZeroDivisionError" in result.stderr
    wait_until(lambda: not alive(token))


# ---- who meets in the final ----------------------------------------------------------------------


def heat(uuid: str, **ratios: float):
    """Four processes of a baseline, its placebo and candidates with these ratios to it."""
    arms = (
        TimedArm(name="baseline", role="baseline"),
        TimedArm(name="placebo", role="placebo"),
        *(TimedArm(name=name, role="candidate") for name in ratios),
    )
    workers = [
        worker(item, (1.0, 1.0, *ratios.values()), noise=0.001, seed=item) for item in range(4)
    ]
    taken = measurement(workers, arms=arms)
    return msgspec.structs.replace(taken, device=msgspec.structs.replace(DEVICE, uuid=uuid))


def test_the_best_of_each_heat_meet_but_for_those_that_another_heat_has_beaten() -> None:
    slow, fast = heat("GPU-a", a=1.3, b=1.31), heat("GPU-b", c=0.9, d=0.95)
    assert racing.finalists([slow, fast], 0.01) == ["c"]


def test_a_difference_within_the_margin_between_two_cards_decides_nothing() -> None:
    assert racing.finalists([heat("GPU-a", a=0.9), heat("GPU-b", b=0.905)], 0.01) == ["a", "b"]


def test_one_candidate_plays_the_final_even_if_the_baseline_beats_all() -> None:
    assert racing.finalists([heat("GPU-a", a=1.2), heat("GPU-b", b=1.5)], 0.01) == ["a"]


def test_a_heat_that_others_disturbed_sends_nobody() -> None:
    disturbed = msgspec.structs.replace(heat("GPU-a", a=0.5), invalid="Another process.")
    assert racing.finalists([disturbed, heat("GPU-b", b=0.9)], 0.01) == ["b"]


def test_every_candidate_is_dealt_once_and_no_heat_is_of_one() -> None:
    for cards in range(1, 9):
        for candidates in range(1, 40):
            dealt = racing.deal(range(candidates), racing.count(candidates, cards))
            assert sorted(item for hand in dealt for item in hand) == list(range(candidates))
            assert len(dealt) == 1 or min(map(len, dealt)) > 1
