"""Published figures give the values that their document derives from them."""

from __future__ import annotations

import pytest
from project.sections.published import EVIDENCE, FIGURES

from kernelexp.model.arm import ProfiledEvidence, ProfiledInstruction
from kernelexp.project import sections
from kernelexp.project.sections.evaluate import SectionReading, evaluate, gap
from kernelexp.project.sections.given import Run
from kernelexp.report.document.document import Labelled
from kernelexp.report.variants.sections import document

RUN = Run(time_ms=0.579, flops=2 * 928_256 * 768 * 768, dtype="fp8", peer="cuBLAS", peer_ms=0.365)


def _values(reading: SectionReading) -> dict[str, float]:
    return {value.name: value.value for value in reading.values if value.value is not None}


def _text(reading: SectionReading, name: str) -> str:
    return next(value.text for value in reading.values if value.name == name)


@pytest.fixture(params=sections.NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    ("section", "value", "expected"),
    [
        ("tensor", "pair_share", 99.96),
        ("tensor", "sm_active", 97.1),
        ("tensor", "tensor_idle", 51.8),
        ("pipes", "fma_share", 42.9),
        ("pipes", "fmaheavy_share", 29.0),
        ("pipes", "fmalite_share", 13.9),
        ("pipes", "alu_share", 38.7),
        ("pipes", "lsu_share", 10.4),
        ("pipes", "tmem_share", 0.6),
        ("pipes", "tc_share", 0.3),
        ("pipes", "tma_share", 0.2),
        ("conflicts", "load_rate", 32.5),
        ("conflicts", "store_rate", 22.4),
        ("conflicts", "load_cycles", 36_287),
        ("conflicts", "load_overhead", 3.9),
        ("multicast", "multicast_share", 0.0),
        ("tmem", "accumulator_share", 95.8),
        ("tmem", "load_share", 4.2),
        ("tmem", "a_share", 50.0),
        ("tmem", "b_share", 50.0),
        ("icache", "no_instruction", 0.22),
        ("stalls", "long_scoreboard_weight", 3.3),
        ("global", "sectors_per_load", 32.0),
        ("global", "store_percent", 40.0),
    ],
)
def test_a_derived_value_is_the_documents(section: str, value: str, expected: float) -> None:
    reading = evaluate(sections.builtin(section), EVIDENCE)

    decimals = len(str(expected).partition(".")[2])
    assert round(_values(reading)[value], decimals) == expected


@pytest.mark.parametrize(
    ("section", "value", "words"),
    [
        ("tensor", "tensor_idle", "For 51.80% of all cycles no tensor core computes"),
        ("tensor", "pair_share", "Practically all"),
        ("tensor", "sm_active", "idle within active SMs"),
        ("pipes", "other_share", "Almost all instructions are around the MMAs"),
        ("conflicts", "load_rate", "High"),
        ("conflicts", "load_overhead", "Not dominant, but not negligible"),
        ("multicast", "multicast_share", "Every load serves one CTA"),
        ("tmem", "accumulator_share", "Almost all reads are of partial sums"),
        ("tmem", "a_share", "A and B are read alike"),
        ("icache", "no_instruction", "Negligible"),
        ("stalls", "long_scoreboard_weight", "3.28 times as long"),
        ("global", "sectors_per_store", "40.00% of the most"),
    ],
)
def test_an_interpretation_is_the_documents(section: str, value: str, words: str) -> None:
    reading = evaluate(sections.builtin(section), EVIDENCE)

    assert words in _text(reading, value)


def test_percentages_are_distrusted_where_the_view_by_cycles_contradicts_them() -> None:
    caveat = evaluate(sections.builtin("stalls"), EVIDENCE).caveats[0]

    assert "The two views disagree" in caveat
    assert "warp-specialised" in caveat


def test_percentages_alone_come_with_the_caveat_too() -> None:
    figures = {name: item for name, item in FIGURES.items() if "latency" not in name}
    alone = ProfiledEvidence(entry="k", figures=figures, device="B200", capability="10.0")

    (caveat,) = evaluate(sections.builtin("stalls"), alone).caveats

    assert "warp-specialised" in caveat
    assert "not in this profile" in caveat


def test_stalls_are_worked_out_of_samples_where_no_counter_was_collected() -> None:
    samples = {"long_scoreboard": 30.0, "wait": 10.0, "selected": 60.0}
    begin = "smsp__pcsamp_warps_issue_stalled_"
    figures = {f"{begin}{reason}": count for reason, count in samples.items()}
    figures["sm__warps_active.avg.pct_of_peak_sustained_active"] = 50.0
    sampled = ProfiledEvidence(entry="k", figures=figures, device="B200", capability="10.0")
    values = {value.name: value for value in evaluate(sections.builtin("stalls"), sampled).values}
    waits = values["long_scoreboard"]
    assert (waits.value, waits.metric) == (15.0, "stall_long_scoreboard_percent")


def test_a_constant_that_the_tensor_pipe_loads_is_not_called_matrix_work() -> None:
    """ncu counts HFMA2.MMA there; the launch has no MMA."""
    figures = {"smsp__inst_executed.sum": 1e6, "sm__inst_executed_pipe_tensor.sum": 2048.0}
    plain = ProfiledEvidence(entry="k", figures=figures, device="H200", capability="9.0")
    words = _text(evaluate(sections.builtin("pipes"), plain), "other_share")
    assert "an HFMA2.MMA is not an MMA" in words
    assert "around the MMAs" not in words


def _stores(*stores: tuple[str, float]) -> ProfiledEvidence:
    """The published figures with store instructions, each with its excess sectors."""
    instructions = tuple(
        ProfiledInstruction(
            offset=16 * index,
            sass=f"{sass} desc[UR6][R2.64], R4",
            figures={
                "Instructions Executed": 1000.0,
                "L2 Theoretical Sectors Global Excessive": excess,
            },
        )
        for index, (sass, excess) in enumerate(stores)
    )
    return ProfiledEvidence(
        entry="k", figures=FIGURES, device="B200", capability="10.0", instructions=instructions
    )


def test_mixed_widths_without_excess_make_the_uncoalesced_warning_false() -> None:
    evidence = _stores(("STG.E.128", 0.0), ("@P0 STG.E.64", 0.0))

    (caveat,) = evaluate(sections.builtin("global"), evidence).caveats

    assert "stores of 2 widths are mixed" in caveat
    assert "false here" in caveat


def test_stores_with_excess_get_no_such_excuse() -> None:
    reading = evaluate(sections.builtin("global"), _stores(("STG.E.128", 16_000.0)))

    assert reading.caveats == ()
    assert "more sectors than" in _text(reading, "store_excess")


def test_without_a_source_page_a_low_ratio_is_left_open() -> None:
    (caveat,) = evaluate(sections.builtin("global"), EVIDENCE).caveats

    assert "alone does not show uncoalesced stores" in caveat


def test_the_gap_has_the_documents_terms() -> None:
    values = _values(gap(EVIDENCE, RUN))

    assert round(values["expected_flops"] / 1e12) == 2169
    assert round(values["reached_flops"] / 1e12) == 1891  # 1892 of a time with more digits
    assert round(values["active_efficiency"]) == 87
    assert round(values["load_conflict_share"], 1) == 3.9
    assert values["multicast_share"] == 0
    assert values["fetch"] == 0.22


def test_idle_part_lost_part_and_time_at_the_peak_are_the_whole_time() -> None:
    values = _values(gap(EVIDENCE, RUN))

    parts = values["idle_ms"] + values["inefficient_ms"] + values["peak_ms"]
    assert parts == pytest.approx(RUN.time_ms)


def test_what_hides_a_term_is_not_known_without_evidence() -> None:
    reading = gap(EVIDENCE, RUN)

    for name in ("load_conflict_share", "store_conflict_share", "multicast_share"):
        assert "not known" in _text(reading, name)


def test_traffic_needs_counters_that_were_not_published() -> None:
    (traffic,) = (value for value in gap(EVIDENCE, RUN).values if value.name == "traffic")

    assert traffic.value is None
    assert traffic.absent == ("dram_read", "dram_write")


def test_every_section_evaluates_the_published_profile(name: str) -> None:
    reading = evaluate(sections.builtin(name), EVIDENCE, RUN)

    assert reading.family == "gb100"
    assert all(value.missing for value in reading.values if value.value is None)


def test_a_group_without_any_value_is_missing_by_its_title() -> None:
    figures = {name: item for name, item in FIGURES.items() if "latency" not in name}
    alone = ProfiledEvidence(entry="k", figures=figures, device="B200", capability="10.0")
    blocks = list(document(evaluate(sections.builtin("stalls"), alone)))
    missing = {block.label: block.text for block in blocks if isinstance(block, Labelled)}

    assert missing["not in this profile"] == "LG throttle; Weighted by cycles, per warp"
    assert missing["gb100 has no such counter"] == "GMMA"
