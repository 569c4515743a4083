"""Programs run in rounds of new processes: real processes, of a line of shell each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from measurements import DEVICE, STATE

from kernelexp.evidence.measure.programs import rounds
from kernelexp.evidence.measure.programs.rounds import ProgramArm, ProgramJob, measure
from kernelexp.judge import verdict
from kernelexp.judge.statistics import racing
from kernelexp.model.errors import ConfigurationError, EnvironmentFault
from kernelexp.model.experiment import PrintedFigure, Program
from kernelexp.model.measurement import DeviceState, Measurement, Options, Role, TimedArm
from kernelexp.system import device

TIME = PrintedFigure(pattern="time: (\\S+) ms")
RATE = PrintedFigure(pattern="rate: (\\S+) GB/s", unit="GB/s", better="more")


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests time programs on this machine's CPU at the same time."""
    monkeypatch.setattr(device, "LOCKS", tmp_path / "locks")


def run(
    tmp_path: Path,
    baseline: str,
    *candidates: str,
    figures: dict[str, PrintedFigure] | None = None,
    correct: str = "",
    run_s: float = 60.0,
    processes_max: int = 16,
    journal: Path | None = None,
    gpu: bool = False,
) -> Measurement:
    """What comes of these lines of shell, run as the arms of a measurement."""

    def arm(name: str, role: Role, script: str) -> ProgramArm:
        return ProgramArm(arm=TimedArm(name=name, role=role), argv=("/bin/sh", "-c", script))

    program = Program(figures=figures or {"time": TIME}, correct=correct, gpu=gpu)
    arms = [arm("baseline", "baseline", baseline), arm("placebo", "placebo", baseline)]
    arms += [arm(f"candidate {n}", "candidate", item) for n, item in enumerate(candidates, 1)]
    job = ProgramJob(
        kernel="k", folder=str(tmp_path), program=program, arms=tuple(arms), run_s=run_s
    )
    return measure(
        job,
        Options(race=len(candidates) > 1, processes_max=processes_max, seed=1),
        DEVICE if gpu else device.cpu("sm_90a"),
        look=lambda so_far: racing.look(so_far, 0.01, "verdicts"),
        journal=journal,
    )


def judged(taken: Measurement, candidate: str = "candidate 1"):
    return verdict.measured(taken, candidate)


def test_every_arm_runs_twice_in_a_round_in_one_order_and_back(tmp_path: Path) -> None:
    taken = run(tmp_path, "echo $$ >> base; echo time: 2 ms", "echo $$ >> other; echo time: 1 ms")
    assert len(taken.workers) == 4
    for worker in taken.workers:
        there, back = (block.rows[0].order for block in worker.blocks)
        assert sorted(there) == [0, 1, 2]
        assert back == there[::-1]
    runs = [(tmp_path / name).read_text().split() for name in ("base", "other")]
    assert [len(item) for item in runs] == [2 * (4 * 2) + 1, 4 * 2 + 1]  # and a first run of each
    assert max(Counter(runs[0] + runs[1]).values()) == 1  # each a process of its own


def test_a_time_is_in_microseconds_whatever_its_unit(tmp_path: Path) -> None:
    seconds = {"time": PrintedFigure(pattern="(\\S+) s", unit="s")}
    taken = run(tmp_path, "echo 0.25 s", "echo 0.5 s", figures=seconds)
    samples = {item for block in taken.workers[0].blocks for item in block.rows[0].times_us}
    assert samples == {250_000.0, 500_000.0}
    assert judged(taken).status == "REJECTED"


def test_more_of_a_rate_is_better(tmp_path: Path) -> None:
    taken = run(tmp_path, "echo rate: 100 GB/s", "echo rate: 125 GB/s", figures={"rate": RATE})
    assert judged(taken).status == "IMPROVED"
    assert judged(taken).reason == "better"
    assert judged(taken).sentence.startswith("25.00% higher GB/s, 99.5% interval +25.00% to")


def test_further_figures_are_kept_by_arm(tmp_path: Path) -> None:
    lines = ("echo time: 1 ms, rate: 100 GB/s", "echo time: 1 ms, rate: 125 GB/s")
    taken = run(tmp_path, *lines, figures={"time": TIME, "rate": RATE})
    assert taken.printed is not None
    values = taken.printed.also["rate"].values
    assert values["candidate 1"] == (125.0,) * 8
    assert values["placebo"] == (100.0,) * 8
    assert judged(taken).status == "NEUTRAL"


@pytest.mark.parametrize(
    ("candidate", "status", "sentence"),
    [
        ("echo broken >&2; exit 3", "CRASHED", "ended with code 3; its last words: 'broken'."),
        ("kill -SEGV $$", "CRASHED", "was ended by SIGSEGV; its last words: nothing."),
        ("exec sleep 60", "TIMED_OUT", "ran past the limit of 3 s for a run"),
        ("yes", "CRASHED", "printed more than 16 MiB in a run, and was ended."),
        ("echo hello", "INCORRECT", "matches nothing; last: 'hello'."),
        ("echo time: nan ms", "INCORRECT", "printed 'nan' as time: it is not a number."),
        ("echo time: 1 ms; echo time: 1 ms", "INCORRECT", "printed time 2 times in a run"),
    ],
)
def test_a_candidate_that_fails_has_a_verdict_of_its_own(
    tmp_path: Path, candidate: str, status: str, sentence: str
) -> None:
    limit = 3.0 if "sleep" in candidate else 60.0
    taken = run(tmp_path, "echo time: 2 ms", candidate, "echo time: 1 ms", run_s=limit)
    assert judged(taken).status == status
    assert sentence in judged(taken).sentence
    assert judged(taken, "candidate 2").status == "IMPROVED"


def test_a_wrong_result_is_what_the_program_does_not_say_is_right(tmp_path: Path) -> None:
    lines = ("echo time: 2 ms; echo PASSED", "echo time: 1 ms; echo FAILED")
    taken = run(tmp_path, *lines, correct="PASSED")
    assert judged(taken).status == "INCORRECT"
    assert "nothing that matches 'PASSED'; last: 'FAILED'." in judged(taken).sentence


def test_without_a_baseline_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    taken = run(tmp_path, "exit 1", "echo time: 1 ms")
    assert judged(taken).status == "INVALID"
    assert judged(taken).reason == "baseline_failed"
    assert not taken.workers


def test_a_pattern_that_does_not_fit_the_baseline_is_the_project_s_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"kernels\.k\.program does not fit what the base"):
        run(tmp_path, "echo 2 ms", "echo time: 1 ms")


def test_a_program_that_is_killed_from_outside_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="ended from outside by SIGKILL"):
        run(tmp_path, "echo time: 1 ms", "kill -KILL $$")


def test_noise_beyond_the_margin_is_inconclusive(tmp_path: Path) -> None:
    noisy = 'n=$(cat n || echo 3); echo $((n * 7 % 11)) > n; echo "time: 1$n ms"'
    taken = run(tmp_path, noisy, noisy, processes_max=6)
    assert len(taken.workers) == 6
    assert judged(taken).status == "INCONCLUSIVE"


def test_two_at_once_on_one_cpu_are_refused(tmp_path: Path) -> None:
    cpu = device.cpu("sm_90a")
    with (
        device.hold(cpu.uuid),
        pytest.raises(EnvironmentFault, match="another run of kernelexp is timing on"),
    ):
        run(tmp_path, "echo time: 1 ms", "echo time: 1 ms")


def test_a_measurement_that_was_killed_goes_on_from_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "journal.json"
    lines = ("echo time: 2 ms", "echo x >> n; echo time: 2.001 ms")
    first = run(tmp_path, *lines, journal=journal)
    counted = len((tmp_path / "n").read_text())
    again = run(tmp_path, *lines, journal=journal)
    assert again.workers == first.workers
    assert len((tmp_path / "n").read_text()) == counted + 2  # the first run alone


class Card:
    """A GPU as NVML describes it, with other processes on it while the file `company` is there."""

    company = Path()

    def __init__(self, uuid: str) -> None:
        assert uuid == DEVICE.uuid

    def computing(self) -> int:
        return int(self.company.exists())

    def read(self) -> DeviceState:
        return STATE


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Card, "company", tmp_path / "company")
    monkeypatch.setattr(device, "Monitor", Card)
    monkeypatch.setattr(rounds, "GOING_S", 0.0)


def test_a_program_sees_its_own_gpu_alone(tmp_path: Path, card: None) -> None:
    line = "echo $CUDA_VISIBLE_DEVICES >> seen; echo time: 1 ms"
    taken = run(tmp_path, line, line, gpu=True)
    assert set((tmp_path / "seen").read_text().split()) == {DEVICE.uuid}
    assert judged(taken).status == "NEUTRAL"
    state = taken.workers[0].blocks[0].before
    assert (state.sm_clock_mhz, state.temperature_c) == (0, STATE.temperature_c)


def test_another_process_on_the_gpu_makes_it_invalid(tmp_path: Path, card: None) -> None:
    taken = run(tmp_path, "echo time: 1 ms", "touch company; echo time: 1 ms", gpu=True)
    assert judged(taken).status == "INVALID"
    assert judged(taken).reason == "gpu_shared"
