"""Which differences come first, and which are one finding."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.facts import counters
from kernelexp.facts.metrics import Metric
from kernelexp.judge import ranking
from kernelexp.judge.ranking import Difference, between, factor
from kernelexp.model.arm import Arm, ProfiledEvidence

Figures = dict[str, float | str]
NUMBERS = st.floats(min_value=1e-6, max_value=1e12)


def profile(figures: Figures, units: dict[str, str] | None = None) -> Arm:
    return Arm(profiled=ProfiledEvidence(entry="k", figures=figures, units=units or {}))


def differences(before: Figures, after: Figures, unit: str = "") -> tuple[Difference, ...]:
    units = dict.fromkeys((*before, *after), unit)
    return between(profile(before, units), profile(after, units), "profiled", same=True)


def difference(before: float | str, after: float | str, unit: str = "") -> Difference:
    metric = Metric(name="x", label="x", kind="profiled", unit=unit, read=lambda arm: None)
    return Difference(metric=metric, before=before, after=after)


# ---- relative change -----------------------------------------------------------------------------


@given(NUMBERS, NUMBERS)
def test_the_factor_is_the_same_in_both_directions(one: float, other: float) -> None:
    assert difference(one, other).factor == difference(other, one).factor >= 1


@given(NUMBERS, NUMBERS)
def test_the_change_leads_from_the_one_value_to_the_other(one: float, other: float) -> None:
    change = difference(one, other).change
    assert change is not None
    assert one * (1 + change) == pytest.approx(other, rel=1e-6, abs=1e-9 * one)


@given(NUMBERS)
def test_what_appears_has_no_relative_change_and_comes_before_all_others(value: float) -> None:
    assert difference(0.0, value).change is None
    assert difference(0.0, value).factor == math.inf
    assert ranking.is_large(difference(0.0, value), 1000.0)


@given(NUMBERS)
def test_what_disappears_changes_by_all_of_it(value: float) -> None:
    assert difference(value, 0.0).change == -1
    assert difference(value, 0.0).factor == math.inf


def test_a_rise_from_a_negative_value_is_a_positive_change() -> None:
    assert difference(-2.0, -1.0).change == 0.5


@pytest.mark.parametrize(("one", "other"), [("a", "b"), (1.0, "b"), ("a", 1.0)])
def test_texts_that_differ_are_large_without_a_change(one: float | str, other: float | str) -> None:
    result = difference(one, other)
    assert result.change is None
    assert ranking.is_large(result, 1000.0)


@given(NUMBERS, NUMBERS, st.floats(min_value=0, max_value=10), st.floats(min_value=0, max_value=10))
def test_a_higher_floor_never_shows_more(one: float, other: float, a: float, b: float) -> None:
    low, high = sorted((a, b))
    result = difference(one, other)
    assert ranking.is_large(result, low) or not ranking.is_large(result, high)


@given(st.one_of(NUMBERS, st.text()))
def test_what_is_the_same_is_never_large(value: float | str) -> None:
    assert not ranking.is_large(difference(value, value), 0.0)


def test_a_share_near_zero_is_large_only_where_it_is_asked_for() -> None:
    result = difference(0.001, 0.49, "%")
    assert not ranking.is_large(result, 0.05)
    assert ranking.is_large(result, 0.05, near_zero=True)
    assert ranking.is_large(difference(0.001, 0.51, "%"), 0.05)


def test_nan_is_no_figure() -> None:
    assert differences({"a__b.sum": math.nan}, {"a__b.sum": math.nan}) == ()
    assert differences({"a__b.sum": math.nan}, {"a__b.sum": 1.0}) == ()


def test_a_metric_that_one_profile_lacks_is_no_difference() -> None:
    assert differences({"a__b.sum": 1.0}, {}) == ()


# ---- one finding per counter ---------------------------------------------------------------------


def test_rollups_and_the_share_of_the_peak_are_one_finding() -> None:
    views = ("avg", "max", "min", "sum", "sum.pct_of_peak_sustained_elapsed")
    before: Figures = {f"x__sectors.{view}": 1.0 for view in views}
    (result,) = ranking.collapse(differences(before, dict.fromkeys(before, 2.0)))
    assert result.difference.metric.name == "x__sectors.sum"
    assert len(result.others) == 4


def test_a_count_that_is_the_same_has_not_changed_because_its_rate_has() -> None:
    before: Figures = {"x__sectors.sum": 8.0, "x__sectors.sum.per_second": 1.0}
    after: Figures = {"x__sectors.sum": 8.0, "x__sectors.sum.per_second": 2.0}
    (result,) = ranking.collapse(differences(before, after))
    assert not ranking.is_large(result.difference, 0.05)


def test_a_view_without_the_one_that_its_label_is_of_goes_by_its_own_name() -> None:
    name = "sm__warps_active.max.per_cycle_active"
    (result,) = ranking.collapse(differences({name: 1.0}, {name: 2.0}))
    assert result.difference.metric.label == name


@given(st.dictionaries(st.sampled_from([f"u__{c}.sum" for c in "abcdefgh"]), NUMBERS, min_size=1))
def test_no_metric_is_lost_or_doubled(before: dict[str, float]) -> None:
    views: Figures = {**before, **{f"{name}.per_second": 1.0 for name in before}}
    findings = ranking.collapse(differences(views, views))
    names = [
        name for finding in findings for name in (finding.difference.metric.name, *finding.others)
    ]
    assert sorted(names) == sorted(views)


# ---- order ---------------------------------------------------------------------------------------


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_in_a_group_no_larger_factor_follows_a_smaller_one(
    pairs: list[tuple[float, float]],
) -> None:
    before: Figures = {f"u__c{i}.sum": pair[0] for i, pair in enumerate(pairs)}
    after: Figures = {f"u__c{i}.sum": pair[1] for i, pair in enumerate(pairs)}
    (group,) = ranking.rank(ranking.collapse(differences(before, after)))
    factors = [factor(finding.before, finding.after) for finding in group.findings]
    assert factors == sorted(factors, reverse=True)


@given(st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_the_columns(random: object) -> None:
    names = ["launch__registers_per_thread", "u__a.sum", "l1tex__t_sector_hit_rate.pct", "u__b.sum"]
    shuffled = [*names]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    results = [
        ranking.rank(
            ranking.collapse(differences(dict.fromkeys(order, 1.0), dict.fromkeys(order, 2.0)))
        )
        for order in (names, shuffled)
    ]
    assert results[0] == results[1]


def test_groups_come_in_the_order_of_an_audit() -> None:
    names = [
        "u__a.sum",
        "l1tex__t_sector_hit_rate.pct",
        "stall_wait_percent",
        "gpu__time_duration.sum",
    ]
    result = differences(dict.fromkeys(names, 1.0), dict.fromkeys(names, 2.0))
    groups = [group.group for group in ranking.rank(ranking.collapse(result))]
    assert groups == ["time", "stalls", "cache", counters.OTHER]


def test_a_doubling_ranks_with_a_halving() -> None:
    before: Figures = {"u__a.sum": 1.0, "u__b.sum": 2.0, "u__c.sum": 2.0}
    after: Figures = {"u__a.sum": 1.9, "u__b.sum": 1.0, "u__c.sum": 3.9}
    (group,) = ranking.rank(ranking.collapse(differences(before, after)))
    assert [finding.metric[3] for finding in group.findings] == ["b", "c", "a"]
