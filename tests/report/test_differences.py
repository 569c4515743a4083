"""Two subjects side by side: warnings, what is shown, and how it reads in 80 columns."""

from __future__ import annotations

import io
import re
from typing import Any

import msgspec
import pytest
from rich.console import Console
from support import ROOT

from kernelexp.dossier import comparability, subjects
from kernelexp.dossier.subjects import Subject
from kernelexp.logs import records
from kernelexp.model.arm import AccessWidths, Arm, EmulatedEvidence, ProfiledEvidence
from kernelexp.model.errors import UsageError
from kernelexp.model.measurement import ArrayResult
from kernelexp.project import load
from kernelexp.report.compared import differences
from kernelexp.report.document import terminal
from kernelexp.report.document.document import as_markdown
from kernelexp.services import comparisons
from kernelexp.services.comparisons import Compared, ComparisonOptions

T3 = ROOT / "logs/runs/T3/20261121T000044Z-485c4d1d.measured.json"
CLOCK = comparisons.CLOCK


def profiled(label: str, figures: dict[str, float | str], **about: Any) -> Subject:
    evidence = ProfiledEvidence(entry="k", figures=figures, **about)
    arm = Arm(profiled=evidence)
    return Subject(label=label, arm=arm, conditions=comparability.conditions(arm))


def compare(
    before: dict[str, float | str],
    after: dict[str, float | str],
    options: ComparisonOptions | None = None,
    **about: tuple[Any, Any],
) -> Compared:
    """Two profiles; `about` has for a condition its two values."""
    one = profiled("A", before, **{name: values[0] for name, values in about.items()})
    other = profiled("B", after, **{name: values[1] for name, values in about.items()})
    return comparisons.compare(one, other, options or ComparisonOptions())


def names(found: Compared) -> list[str]:
    return [finding.metric for group in found.groups for finding in group.findings]


def text(found: Compared) -> str:
    console = Console(width=80, highlight=False, file=io.StringIO())
    for block in terminal.render(differences.render(found)):
        console.print(block)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


# ---- what is shown -------------------------------------------------------------------------------

HIT, STORES = "l1tex__t_sector_hit_rate.pct", "sass__inst_executed_global_stores"


def test_a_change_below_the_floor_is_counted_and_not_shown() -> None:
    before: dict[str, float | str] = {HIT: 100.0, STORES: 100.0}
    after: dict[str, float | str] = {HIT: 96.0, STORES: 110.0}
    result = compare(before, after)
    assert (names(result), result.not_shown.small, result.not_shown.same) == ([STORES], 1, 0)
    assert names(compare(before, after, ComparisonOptions(floor=0.03))) == [STORES, HIT]


def test_counters_of_no_group_are_counted_and_shown_with_every() -> None:
    before: dict[str, float | str] = {"u__new.sum": 1.0, HIT: 50.0}
    after: dict[str, float | str] = {"u__new.sum": 2.0, HIT: 40.0}
    assert compare(before, after).not_shown.others == 1
    assert names(compare(before, after, ComparisonOptions(every=True))) == [HIT, "u__new.sum"]


def test_headlines_are_shown_however_little_they_changed() -> None:
    name = "launch__registers_per_thread"
    assert names(compare({name: 216.0}, {name: 222.0})) == [name]
    assert names(compare({name: 216.0}, {name: 216.0})) == [name]


def test_a_metric_that_is_asked_for_is_shown_though_it_did_not_change() -> None:
    options = ComparisonOptions(metric=re.compile("hit", re.IGNORECASE))
    assert names(compare({HIT: 50.0, STORES: 1.0}, {HIT: 50.0, STORES: 2.0}, options)) == [HIT]


def test_a_view_of_a_counter_can_be_asked_for_by_its_name() -> None:
    views: dict[str, float | str] = {"u__x.sum": 1.0, "u__x.max": 1.0}
    assert names(compare(views, views, ComparisonOptions(metric=re.compile("max")))) == ["u__x.max"]


def test_a_metric_that_neither_has_is_a_sentence() -> None:
    with pytest.raises(UsageError, match="no figure of both has a name in which 'zz' is found"):
        compare({HIT: 1.0}, {HIT: 1.0}, ComparisonOptions(metric=re.compile("zz")))


# ---- what does not compare -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "values", "words"),
    [
        ("device", ("NVIDIA H200", "NVIDIA B200"), "GPU NVIDIA H200 and NVIDIA B200"),
        ("driver", ("580.1", "570.2"), "driver 580.1 and 570.2"),
        ("tool", ("ncu 2025.3", "ncu 2025.1"), "profiler ncu 2025.3 and ncu 2025.1"),
        ("clock_control", ("base", "none"), "clock control base and none"),
        ("cache_control", ("all", "none"), "cache control all and none"),
    ],
)
def test_conditions_that_differ_are_a_warning(field: str, values: Any, words: str) -> None:
    result = compare({HIT: 1.0}, {HIT: 2.0}, **{field: values})
    assert result.warnings == (f"profiled with different conditions: {words}.",)
    assert f"warning: profiled with different conditions: {words}." in " ".join(
        text(result).split()
    )


def test_the_same_conditions_are_no_warning() -> None:
    assert compare({HIT: 1.0}, {HIT: 2.0}, driver=("580", "580")).warnings == ()


def test_what_was_not_recorded_is_named_with_its_side() -> None:
    result = compare({HIT: 1.0}, {HIT: 2.0}, driver=("580", ""), device=("X", "X"))
    assert result.unknown["B"] == ("driver",)
    assert "clock control" in result.unknown["both"]


def test_clocks_that_differ_are_a_warning() -> None:
    result = compare({CLOCK: 1.5e9}, {CLOCK: 1.8e9})
    words = "profiled at different SM clocks: 1.500 and 1.800 GHz; times do not compare."
    assert result.warnings == (words,)
    assert compare({CLOCK: 1.5e9}, {CLOCK: 1.51e9}).warnings == ()


def test_the_clock_is_also_known_from_the_counter_of_hopper() -> None:
    clock = comparisons.GPC_CLOCK
    (warning,) = compare({clock: 1.54e9}, {clock: 1.704e9}).warnings
    assert "1.540 and 1.704 GHz" in warning


def test_another_grid_is_a_warning_where_the_size_is_not_recorded() -> None:
    grids: Any = ((1, 2, 3), (2, 2, 3))
    (warning,) = compare({HIT: 1.0}, {HIT: 2.0}, grid=grids).warnings
    assert warning.startswith("profiled with grids of 1 x 2 x 3 and 2 x 2 x 3 CTAs")
    assert compare({HIT: 1.0}, {HIT: 2.0}, grid=grids, size=("full", "full")).warnings == ()


def test_profiles_of_two_problem_sizes_do_not_compare() -> None:
    with pytest.raises(UsageError, match="problem size full and half"):
        compare({HIT: 1.0}, {HIT: 2.0}, size=("full", "half"))


def test_a_size_that_is_not_known_may_be_any() -> None:
    assert names(compare({HIT: 1.0}, {HIT: 2.0}, size=("full", ""))) == [HIT]


def emulated(label: str, version: str, count: int) -> Subject:
    array = ArrayResult(name="y", elements=4, wrong=0, worst=0.0)
    evidence = EmulatedEvidence(
        size="emulated", arrays=(array,), counters={"ptx__inst_executed": count}, emulator=version
    )
    arm = Arm(emulated=evidence)
    return Subject(label=label, arm=arm, conditions=comparability.conditions(arm))


def test_counters_of_two_emulators_do_not_compare() -> None:
    one, other = emulated("A", "1", 1), emulated("B", "2", 2)
    with pytest.raises(UsageError, match="emulated figures are left out: emulator 1 and 2"):
        comparisons.compare(one, other, ComparisonOptions())


def test_counts_of_ptx_that_cannot_be_the_cards_are_a_warning() -> None:
    widths = AccessWidths(file="a.cu", line=3, what="shared load", ptx={32: 4}, sass={128: 1})
    one, other = emulated("A", "1", 1), emulated("B", "1", 2)
    assert other.arm.emulated is not None
    evidence = msgspec.structs.replace(other.arm.emulated, widths=(widths,))
    merged = msgspec.structs.replace(other, arm=Arm(emulated=evidence))
    assert comparisons.compare(one, other, ComparisonOptions()).warnings == ()
    (warning,) = comparisons.compare(one, merged, ComparisonOptions()).warnings
    assert warning.startswith("B: counted on PTX, and ptxas ")
    assert "shared loads on 1 line (a.cu:3)" in warning


def test_no_evidence_of_the_same_kind_is_a_sentence() -> None:
    one, other = emulated("A", "1", 1), profiled("B", {HIT: 1.0})
    words = "nothing to compare: A has emulated evidence, B has profiled evidence."
    with pytest.raises(UsageError, match=words):
        comparisons.compare(one, other, ComparisonOptions())


# ---- records -------------------------------------------------------------------------------------


def arm_of_t3(part: str) -> Subject:
    return subjects.find(None, f"{T3}:{part}")


def test_a_candidate_has_its_interval_against_the_baseline_of_its_run() -> None:
    result = comparisons.compare(arm_of_t3("baseline"), arm_of_t3("1"), ComparisonOptions())
    assert "time, interleaved in one run: -2.36% (-2.41% to -2.30%)" in text(result)
    assert result.axes == {"rows": (8, 4)}


def test_two_candidates_of_a_run_have_no_interval_of_their_own() -> None:
    assert comparisons.compare(arm_of_t3("1"), arm_of_t3("2"), ComparisonOptions()).effect is None


def test_times_of_two_runs_are_a_warning() -> None:
    other = msgspec.structs.replace(arm_of_t3("1"), run="another")
    result = comparisons.compare(arm_of_t3("baseline"), other, ComparisonOptions())
    assert "measured in different runs: the times were not interleaved." in result.warnings
    assert result.effect is None


def test_what_was_built_compares_with_what_ncu_names_the_same() -> None:
    name = "launch__registers_per_thread"
    result = comparisons.compare(
        arm_of_t3("1"), profiled("B", {name: 24.0, HIT: 5.0}), ComparisonOptions()
    )
    (group,) = result.groups
    (finding,) = group.findings
    assert (finding.before, finding.after) == (32, 24.0)
    assert result.warnings[0].startswith("built on one side and profiled on the other")


def test_an_emulated_counter_never_compares_with_a_profiled_one() -> None:
    record = records.read_file(T3)
    counter = next(iter(record.baseline.emulated.counters))  # type: ignore[union-attr]
    other = profiled("B", {counter: 5.0, "launch__block_size": 128.0})
    result = comparisons.compare(arm_of_t3("baseline"), other, ComparisonOptions(every=True))
    assert names(result) == ["launch__block_size"]


# ---- how it reads --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "unit", "before", "after", "line"),
    [
        (HIT, "%", 61.742, 33.559, "L1 hit rate 61.74 33.56 % -45.6%"),
        (STORES, "inst", 1392384.0, 3480960.0,
         "global store instructions 1,392,384 3,480,960 +150.0%"),
        ("gpu__time_duration.sum", "ns", 1157152.0, 1016928.0,
         "duration under ncu 1.157 1.017 ms -12.1% better"),
        ("gpu__time_duration.sum", "ns", 1157152.0, 1157153.0,
         "duration under ncu 1.157 1.157 ms +0.0%"),
        ("dram__bytes.sum.per_second", "byte/s", 1.807e12, 2.053e12,
         "DRAM bandwidth 1.807 2.053 TB/s +13.6%"),
        ("sass__inst_executed_shared_loads", "inst", 0.0, 5.0, "shared load instructions 0 5 new"),
        ("sass__inst_executed_shared_loads", "inst", 5.0, 0.0, "shared load instructions 5 0 gone"),
        ("sass__inst_executed_shared_loads", "inst", 666.0, 3481626.0,
         "shared load instructions 666 3,481,626 x 5,228"),
        ("launch__registers_per_thread", "register/thread", 216.0, 222.0,
         "registers per thread 216 222 +2.8% worse"),
    ],
)  # fmt: skip
def test_a_row_has_label_values_unit_change_and_direction(
    name: str, unit: str, before: float, after: float, line: str
) -> None:
    result = compare({name: before}, {name: after}, units=({name: unit}, {name: unit}))
    assert line in [" ".join(row.split()) for row in text(result).splitlines()]


def test_every_line_fits_80_columns() -> None:
    long = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld_dest_multicast"
    before: dict[str, float | str] = {
        f"{long}.sum.pct_of_peak_sustained_elapsed": 1.0,
        "derived__memory_l2_theoretical_sectors_global_excessive": 44_556_288_124.0,
        "memory_l2_theoretical_sectors_global": 89_373_648_123.0,
        "smsp__sass_inst_executed_op_shared_st.sum": 1e12,
        "launch__cluster_scheduling_policy": "PolicySpread",
    }
    after = {
        name: 2.5 * value if isinstance(value, float) else "x" for name, value in before.items()
    }
    shown = text(compare(before, after, ComparisonOptions(every=True)))
    assert max(map(len, shown.splitlines())) <= 80
    assert "111,390,720,310" in shown, "numbers are never cut"
    assert long[:60] in shown


def test_markdown_has_the_names_of_ncu() -> None:
    page = as_markdown(differences.render(compare({HIT: 50.0}, {HIT: 25.0}), names=True))
    (row,) = (line for line in page.splitlines() if line.startswith("| L1 hit rate"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["L1 hit rate", "50", "25", "", "-50.0%", "", HIT]


def test_the_values_are_plain_and_complete() -> None:
    result = compare(
        {HIT: 50.0, "u__x.sum": 0.0}, {HIT: 25.0, "u__x.sum": 1.0}, ComparisonOptions(every=True)
    )
    values = msgspec.json.decode(msgspec.json.encode(result))
    (cache, other) = values["groups"]
    assert (cache["group"], cache["kind"]) == ("cache", "profiled")
    assert cache["findings"][0] == {
        "metric": HIT, "label": "L1 hit rate", "unit": "", "better": "", "before": 50.0,
        "after": 25.0, "change": -0.5, "direction": "", "others": [],
    }  # fmt: skip
    assert other["findings"][0]["change"] is None
    assert values["not_shown"] == {"small": 0, "near_zero": 0, "same": 0, "others": 0}


def test_sides_with_the_same_sass_say_so_before_anything_differs() -> None:
    sides = [profiled(name, {HIT: rate}) for name, rate in (("A", 50.0), ("B", 60.0))]
    alike = [msgspec.structs.replace(subject, code="2c26b46b") for subject in sides]
    words = "Both have the same SASS, instruction by instruction."
    assert words in text(comparisons.compare(*alike, ComparisonOptions()))
    assert words not in text(comparisons.compare(*sides, ComparisonOptions()))


def test_a_step_of_the_history_is_compared_by_the_profiles_published_with_it() -> None:
    project = load(ROOT)
    one, other = subjects.find_both(project, "cefc59d", "c32ab7a")
    assert [bool(subject.arm.profiled) for subject in (one, other)] == [True, True]
    assert one.code == other.code == ""
