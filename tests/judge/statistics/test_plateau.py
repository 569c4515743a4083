"""Sweeps with planted effects: 24 equal variants, and one axis that matters by 3%."""

from __future__ import annotations

import random
from itertools import product

import msgspec
import pytest

from kernelexp.judge.statistics import plateau, racing
from kernelexp.model.arm import (
    Arm,
    BuildEvidence,
    EmulatedEvidence,
    EmulatedLine,
    Occupancy,
    Resources,
)
from kernelexp.model.measurement import ArrayResult

AXES = {"vec": (2, 4, 8), "reduce": ("serial", "warp"), "warps": (4, 8), "tile": (32, 64)}
POINTS = {
    "baseline" if number == 0 else f"candidate {number}": dict(zip(AXES, values, strict=True))
    for number, values in enumerate(product(*AXES.values()))
}
RISK, MARGIN = 0.0035, 0.01
CONFLICTS = "ptx__l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"


def processes(effect=lambda point: 0.0, count=6, noise=0.0006, seed=3):
    """Scores of a sweep of 24 whose log times are `effect`."""
    rng = random.Random(seed)
    base = effect(POINTS["baseline"])
    return [
        {
            arm: 0.0 if arm == "baseline" else effect(point) - base + rng.gauss(0.0, noise)
            for arm, point in POINTS.items()
        }
        for _ in range(count)
    ]


def findings(taken):
    return {finding.axis: finding for finding in plateau.findings(taken, POINTS, RISK, MARGIN)}


def result(taken, risk=RISK / 23):
    standing = racing.race(taken, list(POINTS), risk, MARGIN)
    behind = {
        arm: racing.between(taken, arm, standing.leader, risk)
        for arm in POINTS
        if arm != standing.leader
    }
    contenders = (standing.leader, *standing.tied, *standing.open)
    return racing.RaceResult(
        leader=standing.leader, contenders=contenders, is_decided=not standing.open, behind=behind
    )


def arm(point, barriers=40, opcode="HMMA", line=171):
    return Arm(
        axes=point,
        build=BuildEvidence(
            entry="k",
            resources=Resources(
                registers=64,
                spill_store_bytes=0,
                spill_load_bytes=0,
                stack_bytes=0,
                static_smem_bytes=0,
                dynamic_smem_bytes=0,
                threads=128,
                cluster=1,
                sass_bytes=4096,
            ),
            occupancy=Occupancy(
                ctas_per_sm=8, warps_per_sm=32, warps_limit=64, limited_by=("registers",)
            ),
            pipes={},
            opcodes={opcode: 12},
            exports={},
        ),
        emulated=EmulatedEvidence(
            size="emulated",
            arrays=(ArrayResult(name="y", elements=1, wrong=0, worst=0.0),),
            counters={"ptx__inst_executed_barrier": barriers},
            lines=(
                EmulatedLine(file="fa.cu", line=line, counters={CONFLICTS: 900}),
                EmulatedLine(file="fa.cu", line=5, counters={CONFLICTS: 2}),
            ),
        ),
    )


def arms(**changes):
    return {name: arm(point, **changes) for name, point in POINTS.items()}


def test_of_24_equal_variants_no_axis_makes_a_difference() -> None:
    seen = findings(processes())
    assert set(seen) == set(AXES)
    assert all(item.is_idle and not item.matters for item in seen.values())
    assert all(0.0 < item.largest.bound < MARGIN for item in seen.values())


@pytest.mark.parametrize("seed", range(5))
def test_one_axis_that_matters_by_3_percent_is_the_only_one_named(seed: int) -> None:
    taken = processes(lambda point: 0.03 if point["reduce"] == "serial" else 0.0, seed=seed)
    seen = findings(taken)
    assert [axis for axis, item in seen.items() if item.matters] == ["reduce"]
    assert all(seen[axis].is_idle for axis in AXES if axis != "reduce")
    (effect,) = seen["reduce"].from_best()
    assert (effect.before, effect.after) == ("warp", "serial")
    assert effect.change.low < 0.03 < effect.change.high
    assert effect.pairs == 12


def test_an_axis_is_compared_within_the_same_values_of_the_others() -> None:
    taken = processes(lambda point: {2: 0.0, 4: 0.01, 8: 0.5}[point["vec"]], noise=1e-5)
    effects = {(x.before, x.after): x for x in findings(taken)["vec"].effects}
    assert effects["2", "8"].change.center == pytest.approx(0.5, abs=1e-3)
    assert [x.after for x in findings(taken)["vec"].from_best()] == ["4", "8"]


def test_a_change_that_the_other_axes_turn_round_depends_on_them() -> None:
    taken = processes(
        lambda point: {2: 0.0, 4: -0.05 if point["warps"] == 8 else 0.4, 8: 0.5}[point["vec"]]
    )
    effects = {(x.before, x.after): x for x in findings(taken)["vec"].effects}
    turns = effects["2", "4"]
    assert turns.depends(MARGIN)
    assert turns.is_proved
    assert POINTS[turns.least.before]["warps"] == 8
    assert turns.most.change == pytest.approx(0.4, abs=0.01)
    assert turns.turned().least == turns.most.turned()
    assert not effects["2", "8"].depends(MARGIN)


def test_variants_that_left_early_still_count_in_the_processes_that_timed_them() -> None:
    taken = processes(lambda point: 0.03 if point["reduce"] == "serial" else 0.0)
    slow = [name for name, point in POINTS.items() if point["reduce"] == "serial"]
    late = [
        {a: v for a, v in item.items() if a not in slow or a == "baseline"} for item in taken[3:]
    ]
    seen = findings([*taken[:3], *late])
    assert seen["reduce"].matters
    assert seen["vec"].is_idle


def test_two_values_of_a_single_axis_differ_by_what_the_race_says() -> None:
    points = {name: {"version": name} for name in ("baseline", "v1", "v2", "v3")}
    steps = {"baseline": 0.0, "v1": -1.0, "v2": -1.15, "v3": -0.5}
    rng = random.Random(5)
    taken = [{name: step + rng.gauss(0.0, 0.002) for name, step in steps.items()} for _ in range(3)]
    behind = {name: racing.between(taken, name, "v2", RISK) for name in points if name != "v2"}
    raced = racing.RaceResult(leader="v2", contenders=("v2",), is_decided=True, behind=behind)
    (axis,) = plateau.findings(taken, points, RISK, MARGIN, raced)
    shown = {effect.after: effect.change for effect in axis.shown() if effect.before == "v2"}
    assert shown == behind
    between_others = next(
        effect for effect in axis.effects if {effect.before, effect.after} == {"v1", "v3"}
    )
    (without_race,) = plateau.findings(taken, points, RISK, MARGIN)
    assert between_others in without_race.effects


def test_a_plateau_names_what_all_variants_share() -> None:
    taken = processes()
    flat = plateau.plateau(
        result(taken), plateau.findings(taken, POINTS, RISK, MARGIN), arms(), MARGIN
    )
    assert flat.shared["ptx__inst_executed_barrier"] == 40
    assert flat.shared["occupancy_limit"] == "registers"
    assert flat.same_code == 24
    assert flat.hot_line == "fa.cu:171"


def test_counts_on_sass_go_before_those_on_ptx_where_every_variant_has_them() -> None:
    conflicts = CONFLICTS.removeprefix("ptx__")
    sass = msgspec.structs.replace(
        arm(POINTS["baseline"]).emulated,
        isa="sass",
        counters={"sass__inst_executed_barrier": 20, conflicts: 700},
        lines=(EmulatedLine(file="fa.cu", line=33, counters={conflicts: 700}),),
    )
    own = {name: msgspec.structs.replace(item, emulated_sass=sass) for name, item in arms().items()}
    taken = processes()
    axes = plateau.findings(taken, POINTS, RISK, MARGIN)
    flat = plateau.plateau(result(taken), axes, own, MARGIN)
    assert (flat.shared["sass__inst_executed_barrier"], flat.shared[conflicts]) == (20, 700)
    assert not any(name.startswith("ptx__") for name in flat.shared)
    assert flat.hot_line == "fa.cu:33"
    own["candidate 3"] = arm(POINTS["candidate 3"])  # ptxas made something that is not covered
    flat = plateau.plateau(result(taken), axes, own, MARGIN)
    assert "ptx__inst_executed_barrier" in flat.shared
    assert flat.hot_line == "fa.cu:171"


def test_what_differs_is_named_apart() -> None:
    own = arms()
    own["candidate 3"] = arm(POINTS["candidate 3"], barriers=80, opcode="FFMA", line=99)
    taken = processes()
    flat = plateau.plateau(
        result(taken), plateau.findings(taken, POINTS, RISK, MARGIN), own, MARGIN
    )
    assert "CTA and named barriers (PTX)" in flat.differing
    assert flat.same_code == 23
    assert flat.hot_line == ""


def test_an_axis_that_matters_is_no_plateau() -> None:
    taken = processes(lambda point: 0.03 if point["reduce"] == "serial" else 0.0)
    axes = plateau.findings(taken, POINTS, RISK, MARGIN)
    assert plateau.plateau(result(taken), axes, arms(), MARGIN) is None


def test_samples_that_could_hide_more_than_the_margin_are_no_plateau() -> None:
    taken = processes(noise=0.02, count=4)
    axes = plateau.findings(taken, POINTS, RISK, MARGIN)
    assert not any(axis.is_idle for axis in axes)
    assert plateau.plateau(result(taken), axes, arms(), MARGIN) is None


def test_equal_variants_are_called_different_in_at_most_one_sweep_of_100() -> None:
    wrong = sum(
        any(item.matters for item in findings(processes(seed=seed)).values()) for seed in range(200)
    )
    assert wrong <= 2


def test_counts_alone_tell_of_a_plateau_where_nothing_was_timed() -> None:
    flat = plateau.counted([*arms().values()])
    assert flat
    assert flat.is_likely
    assert "ptx__inst_executed_barrier" in {item.metric.name for item in flat.shared}
    assert flat.spreads == {}


def test_counts_that_differ_are_named_with_their_spread() -> None:
    own = arms()
    own["candidate 3"] = arm(POINTS["candidate 3"], barriers=80)
    flat = plateau.counted([*own.values()])
    assert flat
    assert not flat.is_likely
    assert flat.spreads["CTA and named barriers (PTX)"] > 0.5


def test_the_axis_that_moves_a_count_is_told_from_those_that_move_none() -> None:
    own = {
        name: arm(point, barriers=80 if point["reduce"] == "serial" else 40)
        for name, point in POINTS.items()
    }
    flat = plateau.counted([*own.values()])
    assert flat
    assert flat.axes["reduce"] == ("CTA and named barriers (PTX)", 1.0)
    assert {axis: most for axis, (_, most) in flat.axes.items() if axis != "reduce"} == {
        axis: 0.0 for axis in flat.axes if axis != "reduce"
    }
    assert len(flat.axes) > 1


def test_of_one_variant_no_plateau_is_told() -> None:
    assert plateau.counted([arm(POINTS["baseline"])]) is None
