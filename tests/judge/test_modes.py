"""A candidate whose launches take one of two times, in a record."""

from __future__ import annotations

import msgspec
from judge_cases import T1, as_written
from measurements import measurement, worker

from kernelexp.judge import consistency, verdict
from kernelexp.model.measurement import TimedArm, Worker
from kernelexp.model.record import Record

ARMS = (
    TimedArm(name="baseline", role="baseline"),
    TimedArm(name="candidate", role="candidate"),
    TimedArm(name="placebo", role="placebo"),
)
SLOW = 1.1


def process(number: int, every: int) -> Worker:
    """Equal arms, but the candidate is slow in both launches of each `every`-th row."""
    quiet = worker(number, (1.0, 1.0, 1.0), noise=0.001)
    block = quiet.blocks[0]
    rows = [
        msgspec.structs.replace(
            row,
            times_us=tuple(
                us * (SLOW if arm == 1 and place % every == 0 else 1.0)
                for arm, us in zip(row.order, row.times_us, strict=True)
            ),
        )
        for place, row in enumerate(block.rows)
    ]
    changed = msgspec.structs.replace(block, rows=tuple(rows))
    return msgspec.structs.replace(quiet, blocks=(changed,))


def record(every: int) -> Record:
    taken = measurement([process(number, every) for number in range(4)], arms=ARMS)
    usual = as_written(T1)
    judged = msgspec.structs.replace(
        usual.candidates[0], verdict=verdict.measured(taken, "candidate")
    )
    return msgspec.structs.replace(usual, measurement=taken, candidates=(judged,))


def remarks(record: Record) -> list[str]:
    return [words for words in consistency.remarks(record, lambda *_: ()) if "groups" in words]


def test_a_mean_beyond_the_margin_is_reported_beside_a_neutral_median() -> None:
    slow = record(every=4)
    assert slow.candidates[0].verdict.status == "NEUTRAL"
    assert remarks(slow) == [
        "Launches of candidate or of the baseline fall into groups of different times: by the "
        "mean of its pairs, candidate is 2.16% slower; the verdict is by their median."
    ]


def test_a_mean_on_the_median_s_side_of_the_margin_is_no_remark() -> None:
    assert remarks(record(every=20)) == []
