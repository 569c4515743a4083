"""Solutions timed by another process's clock; here on the CPU, where nothing is said of speed."""

from __future__ import annotations

import contextlib
import statistics
from pathlib import Path

import msgspec
import pytest
import timing_cheats
from timing_cheats import DEFERRED, HONEST, IN_A_ROW, IN_ONE_CALL, NO_GAIN, STALE

from kernelexp.facts import chips
from kernelexp.model.arm import Status
from kernelexp.services.tasks import formats
from kernelexp.services.tasks.assessment import CaseTime, TaskEffect
from kernelexp.services.tasks.failing import TaskFailed
from kernelexp.services.tasks.timing import floor, timed
from kernelexp.services.tasks.timing.floor import Moved
from kernelexp.services.tasks.timing.taken import (
    LEAST_US,
    NARROW,
    Taken,
    TurnPlan,
    require_honest,
)
from kernelexp.services.tasks.timing.timed import SolutionBench
from kernelexp.services.tasks.timing.turns import SolutionTurn
from kernelexp.services.tasks.workplace import Workplace
from kernelexp.system.toolchain import Toolchain

pytestmark = pytest.mark.xdist_group("tasks")
CPU = SolutionBench(device="cpu", processes=2, rows=2, calls=4, turn_s=60, row_calls=0)
ROW = SolutionBench(device="cpu", processes=1, rows=4, row_calls=16, short_s=60, row_s=60)


def measure(
    solution: tuple[str, str],
    tools: Toolchain,
    folder: Path,
    bench: SolutionBench = CPU,
    instructions: float = 0.0,
) -> tuple[CaseTime, ...]:
    paths = timing_cheats.write(folder, solution, 64, 64)
    task = formats.named("kernelbench").read(*paths, 0)
    place = folder / "place"
    place.mkdir()
    work = Workplace(task, tools, folder, place, "", 60)
    return timed.measure(work, task, bench, instructions)[0]


def test_each_call_has_inputs_of_its_own_and_answers_are_compared(
    tools: Toolchain, tmp_path: Path
) -> None:
    (time,) = measure(HONEST, tools, tmp_path)
    assert (time.processes, time.calls) == (2, 2 * 2 * 2 * CPU.calls)
    assert time.low <= time.ratio <= time.high
    assert "limits of a CPU are not known" in time.floor


def test_a_turn_has_fewer_calls_where_the_reference_is_slow(
    tools: Toolchain, tmp_path: Path
) -> None:
    bench = msgspec.structs.replace(CPU, processes=1, rows=1, turn_s=1e-9)
    (time,) = measure(HONEST, tools, tmp_path, bench)
    assert time.calls == 2


def test_short_calls_are_made_in_a_row(tools: Toolchain, tmp_path: Path) -> None:
    (time,) = measure(HONEST, tools, tmp_path, ROW)
    assert time.calls == 2 * ROW.rows * ROW.row_calls


def test_one_buffer_for_all_answers_is_right_and_no_row(tools: Toolchain, tmp_path: Path) -> None:
    body = "return KEPT.setdefault(0, torch.empty_like(x)).copy_(torch.softmax(x, 1))"
    bench = msgspec.structs.replace(ROW, calls=4, turn_s=60)
    (time,) = measure(("", body), tools, tmp_path, bench)
    assert time.calls == 2 * bench.rows * bench.calls


@pytest.mark.parametrize(
    "name",
    [
        name if i < 2 else pytest.param(name, marks=pytest.mark.slow)
        for i, name in enumerate(IN_A_ROW)
    ],
)
def test_calls_of_a_row_are_not_done_together(name: str, tools: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(TaskFailed) as failed:
        measure(timing_cheats.honest_for(60)[name], tools, tmp_path, ROW)
    assert failed.value.reason in ("wrong_result", "unfinished")
    print(failed.value)


@pytest.mark.parametrize("name", [next(iter(STALE))])
def test_what_is_kept_across_calls_is_wrong(name: str, tools: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(TaskFailed, match="elements of the result are wrong") as failed:
        measure(STALE[name], tools, tmp_path)
    assert failed.value.status is Status.INCORRECT


@pytest.mark.parametrize(
    "name", [next(iter(IN_ONE_CALL)), pytest.param(list(IN_ONE_CALL)[1], marks=pytest.mark.slow)]
)
def test_calls_are_not_done_together(name: str, tools: Toolchain, tmp_path: Path) -> None:
    bench = msgspec.structs.replace(ROW, rows=2, calls=16, turn_s=60)  # a row is tried first
    with pytest.raises(TaskFailed, match="elements of the result are wrong") as failed:
        measure(IN_ONE_CALL[name], tools, tmp_path, bench)
    assert failed.value.status is Status.INCORRECT


@pytest.mark.slow
@pytest.mark.parametrize("name", list(STALE)[1:])
def test_other_work_that_is_left_out_is_wrong(name: str, tools: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(TaskFailed) as failed:
        measure(STALE[name], tools, tmp_path)
    assert failed.value.status in (Status.INCORRECT, Status.CRASHED)


@pytest.mark.slow
@pytest.mark.parametrize("name", NO_GAIN)
def test_a_clock_of_another_process_is_not_fooled(
    name: str, tools: Toolchain, tmp_path: Path
) -> None:
    try:
        (time,) = measure(NO_GAIN[name], tools, tmp_path)
    except TaskFailed:
        return
    assert time.time_us >= LEAST_US


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFERRED)
def test_deferred_work_is_within_the_clock(name: str, tools: Toolchain, tmp_path: Path) -> None:
    (time,) = measure(DEFERRED[name], tools, tmp_path)
    assert time.time_us > 15_000


@pytest.mark.slow
def test_an_answer_that_changes_after_its_end_was_reported_is_invalid(
    tools: Toolchain, tmp_path: Path
) -> None:
    liar = (
        "import kernelexp.services.tasks.wire as w\n"
        "vars(w)['digests'] = lambda values: [1] * len(values)\n",
        "return torch.softmax(x, 1)",
    )
    with pytest.raises(TaskFailed, match="another one than when its end was reported"):
        measure(liar, tools, tmp_path)


def test_what_is_quicker_than_the_card_allows_is_invalid_with_its_arithmetic(
    tools: Toolchain, tmp_path: Path
) -> None:
    bench = msgspec.structs.replace(CPU, card="NVIDIA H200")
    with pytest.raises(TaskFailed, match=r"less than a call can take: .* x 132 SMs x") as failed:
        measure(HONEST, tools, tmp_path, bench, instructions=1e18)
    assert (failed.value.status, failed.value.reason) == (Status.INVALID, "below_floor")


def test_bytes_of_a_floor_are_inputs_that_matter_and_what_exceeds_l2() -> None:
    chip = chips.CHIPS["H200"]
    least, words = floor.least_us(chip, Moved(read=480e6, written=chip.l2_size.value), 0)
    assert least == pytest.approx(480e6 / chip.dram.value * 1e6)
    assert "4.8 TB/s" in words


def test_a_floor_has_only_the_inputs_that_the_answer_depends_on() -> None:
    torch = pytest.importorskip("torch")
    arguments = {"used": torch.randn(1024), "unused": torch.randn(4096), "n": 3}
    needed = floor.moved(lambda given: given["used"] * 2, arguments, 1)
    assert needed.written == 4096
    assert 0.7 * 4096 < needed.read <= 4096


def test_a_share_is_what_so_many_hits_leave_no_doubt_of() -> None:
    assert floor.least_share(0, 24) == pytest.approx(0, abs=1e-9)
    assert floor.least_share(24, 24) == pytest.approx(floor.RISK ** (1 / 24))


def taken(ready: float = 1e-3, beside: float = 1e-3, alone: float = 1e-3) -> Taken:
    """Twenty rows: the solution's time before the clock, the reference's in it."""

    def turn(ready_s: float, call_s: float) -> SolutionTurn:
        return SolutionTurn(ready_s=ready_s, call_s=call_s, digests=(0,))

    row = [
        ("reference", turn(1e-3, beside)),
        ("solution", turn(ready, 1e-4)),
        ("nothing", turn(1e-3, 1e-5)),
    ]
    return Taken(rows=[row] * 20, alone=[turn(1e-3, alone)] * 3)


def test_what_is_subtracted_is_the_digest_of_an_answer_as_large_as_the_solutions_own() -> None:
    def turn(call_s: float, answer_bytes: int = 0) -> SolutionTurn:
        return SolutionTurn(ready_s=0, call_s=call_s, answer_bytes=answer_bytes)

    row = [
        ("reference", turn(5e-3)),
        ("solution", turn(3e-3, 1 << 30)),
        ("nothing", turn(9e-4)),
        (NARROW, turn(6e-4)),
    ]
    plan = TurnPlan(answer_bytes=2 << 30, own_bytes=1 << 30)
    both = Taken(rows=[row] * 4, plan=plan)
    assert (both.overhead_s(), both.overhead_s("solution")) == (9e-4, 6e-4)
    smaller = [("solution", turn(3e-3, 1 << 29)), *row[2:]]
    assert Taken(rows=[row, smaller], plan=plan).overhead_s("solution") == 3e-4
    wide = TurnPlan(answer_bytes=2 << 30)
    assert Taken(rows=[row[:3]], plan=wide).overhead_s("solution") == 4.5e-4
    scalar = TurnPlan(answer_bytes=256)
    assert Taken(rows=[row[:3]], plan=scalar).overhead_s("solution") == 9e-4


WIDE_REFERENCE = """
import torch


def generate_input(size, seed):
    torch.manual_seed(seed)
    return torch.randn(size)


def ref_kernel(data):
    return data.double().cumsum(0)


def check_implementation(data, output):
    good = torch.allclose(ref_kernel(data), output.double(), rtol=1e-3, atol=1e-3)
    return good, "" if good else "mismatch"
"""
NARROW_SUBMISSION = "import torch\n\n\ndef custom_kernel(data):\n    return data.cumsum(0)\n"


def test_a_narrower_answer_has_turns_of_nothing_of_its_own(
    tools: Toolchain, tmp_path: Path
) -> None:
    files = {
        "task.yml": 'files: [{"name": "reference.py", "source": "reference.py"}]\n'
        'tests: [{"size": 64, "seed": 1}]\nbenchmarks: [{"size": 131072, "seed": 2}]\n',
        "reference.py": WIDE_REFERENCE,
        "submission.py": NARROW_SUBMISSION,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    task = formats.named("gpumode").read(tmp_path, tmp_path / "submission.py", 0)
    (tmp_path / "place").mkdir()
    work = Workplace(task, tools, tmp_path, tmp_path / "place", "", 60)
    timing = timed._Timing(work, task, CPU, contextlib.nullcontext)
    timing.take()
    for taken in timing._taken[0]:
        assert (taken.plan.answer_bytes, taken.plan.own_bytes) == (1 << 20, 512 << 10)
        narrow = [turn.call_s for turn in taken.turns(NARROW)]
        assert taken.overhead_s("solution") == statistics.median(narrow)


def test_work_before_the_clock_is_seen_by_how_long_it_takes() -> None:
    require_honest([taken()])
    with pytest.raises(TaskFailed, match="before the clock it uses 1 ms more"):
        require_honest([taken(ready=2e-3)])


def test_a_reference_that_is_slower_beside_the_solution_is_seen() -> None:
    with pytest.raises(TaskFailed, match=r"2\.99 ms or more beside the solution"):
        require_honest([taken(beside=3e-3)])


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [
        (0.5, 0.9, Status.IMPROVED),
        (0.9, 1.1, Status.NEUTRAL),
        (1.1, 1.3, Status.REJECTED),
    ],
)
def test_a_verdict_takes_the_whole_interval(low: float, high: float, status: Status) -> None:
    effect = TaskEffect(ratio=(low + high) / 2, low=low, high=high)
    assert timed.conclude(effect)[0] is status
