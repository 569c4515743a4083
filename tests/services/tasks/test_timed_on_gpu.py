"""The same on a GPU, where a cheat would show as a gain: KX_GPU=1."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import timing_cheats
from support import ROOT, Kx
from timing_cheats import HONEST, IN_A_ROW, IN_ONE_CALL, NO_GAIN, ON_GPU, SLOWER, STALE

from kernelexp.model.arm import Status
from kernelexp.services.tasks import formats
from kernelexp.services.tasks.assessment import CaseTime, TaskEffect
from kernelexp.services.tasks.failing import TaskFailed
from kernelexp.services.tasks.timing import timed
from kernelexp.services.tasks.timing.timed import SolutionBench
from kernelexp.services.tasks.workplace import Workplace
from kernelexp.system import device
from kernelexp.system.toolchain import Toolchain

pytestmark = pytest.mark.skipif(
    os.environ.get("KX_GPU") != "1", reason="times on a GPU: set KX_GPU=1 where one is"
)
PROCESSES = 3


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that a solution's own user can pass, as no folder of pytest's."""
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


def measure(
    solution: tuple[str, str],
    tools: Toolchain,
    folder: Path,
    rows: int = 4096,
    row_calls: int = 256,
    row_s: float = timed.ROW_S,
) -> tuple[tuple[CaseTime, ...], TaskEffect]:
    folder.chmod(0o755)
    paths = timing_cheats.write(folder, solution, rows, 4096)
    task = formats.named("kernelbench").read(*paths, 0)
    place = folder / "place"
    place.mkdir()
    card = device.find()
    bench = SolutionBench(
        device="cuda",
        card=card.name,
        arch=card.arch,
        processes=PROCESSES,
        row_calls=row_calls,
        row_s=row_s,
    )
    times, effect = timed.measure(Workplace(task, tools, folder, place, "", 60), task, bench, 0)
    (time,) = times
    shown = [time.time_us, time.reference_us, effect.low, effect.high, time.overhead_us, time.calls]
    print(json.dumps([round(value, 3) for value in shown]))
    return times, effect


def test_the_reference_against_itself_is_no_difference(tools: Toolchain, tmp_path: Path) -> None:
    (time,), effect = measure(HONEST, tools, tmp_path)
    assert 0.9 < effect.ratio < 1.1
    assert 0 < time.floor_us < time.time_us


@pytest.mark.parametrize("row_calls", [256, 0])
def test_a_short_call_is_no_difference_from_itself(
    row_calls: int, tools: Toolchain, tmp_path: Path
) -> None:
    _, effect = measure(HONEST, tools, tmp_path, 64, row_calls)
    assert 0.8 < effect.ratio < 1.25


def test_three_passes_are_slower_than_one(tools: Toolchain, tmp_path: Path) -> None:
    _, effect = measure(SLOWER, tools, tmp_path)
    assert timed.conclude(effect)[0] is Status.REJECTED


@pytest.mark.parametrize("name", [*STALE, *IN_ONE_CALL])
def test_work_that_is_left_out_is_wrong(name: str, tools: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(TaskFailed) as failed:
        measure({**STALE, **IN_ONE_CALL}[name], tools, tmp_path, 512)
    print(failed.value)
    assert failed.value.status in (Status.INCORRECT, Status.CRASHED)


@pytest.mark.parametrize("name", IN_A_ROW)
def test_calls_of_a_row_are_not_done_together(name: str, tools: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(TaskFailed) as failed:
        # Rows of 64 calls, however quick: right until a row was tried, and then in some of each.
        measure(timing_cheats.honest_for(200)[name], tools, tmp_path, 64, 64, row_s=60)
    print(failed.value)
    assert failed.value.reason in ("wrong_result", "unfinished")


@pytest.mark.parametrize("rows", [64, 4096])
@pytest.mark.parametrize("name", [*NO_GAIN, *ON_GPU])
def test_no_cheat_gains_anything(name: str, rows: int, tools: Toolchain, tmp_path: Path) -> None:
    try:
        _, effect = measure({**NO_GAIN, **ON_GPU}[name], tools, tmp_path, rows)
    except TaskFailed as failed:
        print(failed)
        return
    assert effect.ratio > 0.9 or timed.conclude(effect)[0] is not Status.IMPROVED


@pytest.mark.parametrize(
    ("problem", "solution"),
    [
        ("tests/projects/tasks/kernelbench/problem.py", "kernelbench/solution.py"),
        ("docs/examples/tasks", "leetgpu/solve.cu"),
        ("tests/projects/tasks/gpumode", "gpumode/submission.py"),
    ],
)
def test_a_solution_goes_through_all_stages(
    problem: str, solution: str, kx: Kx, tmp_path: Path
) -> None:
    given = (str(ROOT / problem), str(ROOT / "tests/projects/tasks" / solution))
    result = kx("evaluate", *given, "--schedules", "1", "--json", cwd=tmp_path)
    data = json.loads(result.stdout)
    print(data["sentence"], data["times"], data["not_checked"])
    assert data["stages"][-1]["name"] == "time"
    assert data["stages"][-1]["outcome"] == "passed", data["sentence"]
    assert data["device"]
