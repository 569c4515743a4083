"""A time that is shown agrees with the change beside it, on every page of every record."""

import msgspec
import pytest
from measurements import measurement, worker
from support import ROOT

from kernelexp.facts import metrics
from kernelexp.judge.statistics.stats import estimate
from kernelexp.logs import records
from kernelexp.model.measurement import Measurement, TimedArm
from kernelexp.model.record import Record
from kernelexp.report.document import figures

ARMS = (
    TimedArm(name="baseline", role="baseline"),
    TimedArm(name="candidate", role="candidate"),
    TimedArm(name="placebo", role="placebo"),
)


def _warming() -> Measurement:
    """Two processes while the card was cool, two when all took 19% longer; the candidate, which is
    3% slower than the baseline, had left by then."""
    cool = [worker(i, (1.0, 1.03, 1.0)) for i in range(2)]
    warm = [worker(i, (1.19, 1.03, 1.19)) for i in range(2, 4)]
    without = [
        msgspec.structs.replace(
            item,
            blocks=tuple(
                msgspec.structs.replace(
                    block,
                    rows=tuple(
                        msgspec.structs.replace(
                            row,
                            order=tuple(arm for arm in row.order if arm != 1),
                            times_us=tuple(
                                time
                                for arm, time in zip(row.order, row.times_us, strict=True)
                                if arm != 1
                            ),
                        )
                        for row in block.rows
                    ),
                )
                for block in item.blocks
            ),
        )
        for item in warm
    ]
    return measurement([*cool, *without], arms=ARMS)


def test_an_arm_that_left_while_the_card_was_cool_is_shown_as_slow_as_its_pairs_say():
    taken = estimate(_warming())
    base, late = taken.shown("baseline"), taken.shown("candidate")
    assert base
    assert late
    assert late.median_us / base.median_us == pytest.approx(1.03, abs=1e-4)
    assert late.low_us < late.median_us < late.high_us


def test_the_median_of_its_own_samples_stays_in_the_estimate():
    by_arm = {times.arm: times.median_us for times in estimate(_warming()).times}
    assert by_arm["candidate"] < by_arm["baseline"]


def _measured() -> list[Record]:
    return list(records.measured(ROOT))


@pytest.fixture(scope="module")
def every() -> list[Record]:
    return _measured()


def test_times_of_all_records_stand_in_the_ratios_that_are_shown(every: list[Record]) -> None:
    compared = 0
    for record in every:
        base = record.baseline.measured
        for arm in record.arms[1:]:
            own = arm.measured
            if base and base.time_us and own and own.time_us and own.effect:
                compared += 1
                assert own.time_us / base.time_us == pytest.approx(own.effect.ratio)
    assert compared > 100


def test_peers_and_placebos_of_all_records_too(every: list[Record]) -> None:
    compared = 0
    for record in every:
        base = record.estimate.shown("baseline") if record.estimate else None
        if base is None or record.estimate is None:
            continue
        placebo = (record.estimate.placebo,) if record.estimate.placebo else ()
        for effect in (*placebo, *record.estimate.peers):
            shown = record.estimate.shown(effect.arm)
            assert shown
            compared += 1
            assert shown.median_us / base.median_us == pytest.approx(effect.ratio)
    assert compared > 100


def test_rounded_as_on_a_page_they_agree_to_the_last_digit(every: list[Record]) -> None:
    for record in every:
        base = metrics.read("time_ms", record.baseline)
        for arm in record.arms[1:]:
            effect = arm.measured.effect if arm.measured else None
            if not isinstance(base, float) or effect is None:
                continue
            shown, one = float(figures.time_of(arm)), float(figures.time_ms(base))
            slack = (0.0005 if base >= 0.1 else 0.00005) * (1 + effect.ratio)
            assert abs(shown - one * effect.ratio) <= 1.001 * slack
