"""Which variants no other beats in time and resources at once."""

from hypothesis import given
from hypothesis import strategies as st

from kernelexp.judge.sweeps import Cost, front

COSTS = st.dictionaries(
    st.text(min_size=1, max_size=3),
    st.builds(
        Cost,
        time=st.floats(0.1, 100.0),
        resources=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    ),
    min_size=1,
)


def of(**costs: tuple[float | None, int]) -> tuple[str, ...]:
    result = {name: Cost(time=time, resources=(own,)) for name, (time, own) in costs.items()}
    return front(result, 0.01)


def test_a_faster_variant_of_the_same_resources_takes_the_place() -> None:
    assert of(slow=(1.02, 8), fast=(1.0, 8)) == ("fast",)


def test_a_variant_with_fewer_registers_keeps_a_place_though_it_is_slower() -> None:
    assert of(lean=(1.5, 4), fast=(1.0, 8), neither=(1.6, 9)) == ("lean", "fast")


def test_noise_neither_wins_nor_loses_a_place() -> None:
    assert of(one=(1.0, 8), other=(1.005, 8)) == ("one", "other")
    assert of(lean=(1.005, 4), fast=(1.0, 8)) == ("lean",)


def test_without_times_resources_decide() -> None:
    assert of(lean=(None, 4), fat=(None, 8)) == ("lean",)


@given(COSTS)
def test_nothing_on_the_front_costs_less_in_everything_than_another_on_it(costs) -> None:
    names = front(costs, 0.01)
    assert names
    for one in names:
        for other in names:
            cheaper = all(
                mine < others
                for mine, others in zip(costs[one].resources, costs[other].resources, strict=True)
            )
            assert not (cheaper and costs[one].time <= costs[other].time)
