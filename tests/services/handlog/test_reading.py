"""A log that was kept by hand, read into steps and experiments."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies

from kernelexp.model.arm import PublishedResult, Status
from kernelexp.services.handlog import figures, reading, sections
from kernelexp.services.handlog.reading import Log, Read


def read(text: str) -> Log:
    return reading.read(sections.read(text))


def one(body: str) -> Read:
    (result,) = read(f"### Experiment X1: A title\n\n{body}\n").experiments
    return result


@pytest.mark.parametrize(
    ("text", "time", "upper", "tflops", "registers", "approximate"),
    [
        ("0.630 ms / 222 regs", 0.63, None, None, 222, False),
        ("0.663-0.665 ms (5% worse), 213 regs", 0.663, 0.665, None, 213, False),
        ("~0.722 ms (at 4 warps)", 0.722, None, None, None, True),
        ("1099.78 μs, 1,739 TFLOPS", 1.09978, None, 1739.0, None, False),
        ("~500 TFLOPS", None, None, 500.0, None, True),
        ("32 registers per thread", None, None, None, 32, False),
        ("Not attempted; 1024 columns, SM100a", None, None, None, None, False),
    ],
)
def test_figures_are_read_from_words(
    text: str,
    time: float | None,
    upper: float | None,
    tflops: float | None,
    registers: int | None,
    approximate: bool,
) -> None:
    assert figures.parse(text) == PublishedResult(
        time_ms=time,
        time_ms_to=upper,
        tflops=tflops,
        registers=registers,
        approximate=approximate,
    )


@given(strategies.integers(1, 10**6), strategies.sampled_from(["ms", "us", "μs"]))
def test_a_time_is_the_same_in_a_text_and_in_a_cell(thousandths: int, unit: str) -> None:
    text = f"{thousandths / 1000:.3f}"
    assert figures.parse(f"{text} {unit}").time_ms == figures.cell(text, unit)[0]


@given(strategies.floats(0.01, 100), strategies.floats(0.01, 100))
def test_figures_judge_by_a_margin_of_a_percent(before: float, after: float) -> None:
    status = figures.judge(PublishedResult(time_ms=before), PublishedResult(time_ms=after)).status
    ratio = after / before
    assert (status is Status.IMPROVED) == (ratio < 0.99)
    assert (status is Status.REJECTED) == (ratio > 1.01)


def test_a_history_compares_each_step_with_the_one_before() -> None:
    text = """## History
| Commit | Change | Time (us) | TFLOPS | Regs | Spills | Notes |
|---|---|---|---|---|---|---|
| aaaaaa1 | **First** | — | ~10 | — | — | |
| `bbbbbb2` | Second | 800.0 | 20 | 64 | 3 | odd |
| **now** | Third | 700 | — | — | — | |
"""
    first, second, third = read(text).steps
    assert (first.id, first.title, first.baseline.state) == ("aaaaaa1", "First", "before")
    assert first.candidates[0].figures == PublishedResult(tflops=10.0, approximate=True)
    assert second.candidates[0].figures == PublishedResult(time_ms=0.8, tflops=20.0, registers=64)
    assert (second.notes, second.commit) == ("odd; Spills: 3", "bbbbbb2")
    assert third.baseline.figures == second.candidates[0].figures
    assert (third.id, third.commit) == ("now", "")
    verdicts = [step.candidates[0].verdict for step in (first, second, third)]
    assert [verdict.status.value for verdict in verdicts if verdict] == [
        "INCONCLUSIVE",
        "IMPROVED",
        "IMPROVED",
    ]


@pytest.mark.parametrize("heading", ["time (us)", "time [us]", "time_us", "time (us, median)"])
def test_a_history_s_times_have_the_unit_of_their_heading(heading: str) -> None:
    (step,) = read(f"| commit | {heading} |\n|---|---|\n| abc1234 | 1500 |\n").steps
    assert step.candidates[0].figures.time_ms == 1.5


def test_an_experiment_has_its_labelled_texts() -> None:
    result = one(
        "**Date:** 2026-01-02\n**Baseline:** 1.00 ms\n**Result:** 1.20 ms, 40 regs\n"
        "**Verdict:** REJECTED\n\n**Hypothesis**: It is `a*b`.\n\n**Changes:**\n\n1. one\n2. two\n"
        "\n```\nsome code\n```\n\n"
        "**Why it failed:** Because.\n\n**Lesson:** None.\n\nSomething else.\n"
    )
    assert (result.title, result.hypothesis, result.changes) == (
        "A title",
        "It is `a*b`.",
        ("one", "two"),
    )
    assert (result.why, result.decision, result.date) == (
        "Because.\n\nLesson: None.",
        "REJECTED",
        "2026-01-02",
    )
    verdict = result.candidates[0].verdict
    assert verdict
    assert (verdict.status, verdict.reason) == (Status.REJECTED, "published")
    assert verdict.sentence == "Published: 1.200 ms against 1.000 ms."
    assert "Something else." in result.notes
    assert "some code" in result.notes
    assert "Result: 1.20 ms, 40 regs" in result.notes


@given(
    strategies.lists(
        strategies.tuples(
            strategies.sampled_from(["Result", "SMEM budget", "Odd", "Reason", "Verdict", ""]),
            strategies.text("abcxyz 0123456789", min_size=1, max_size=30).filter(str.strip),
        ),
        min_size=1,
        unique_by=lambda pair: pair[0],
    )
)
def test_no_word_of_an_experiment_is_lost(parts: list[tuple[str, str]]) -> None:
    parts = [*parts, ("Hypothesis", "some words")]
    body = "\n\n".join(f"**{label}:** {text}" if label else text for label, text in parts)
    result = one(body)
    answer = " ".join(
        [result.hypothesis, result.why, result.decision, result.notes, *result.changes]
    )
    assert all(word in answer for _, text in parts for word in text.split())


def test_figures_after_a_change_are_the_candidate_s() -> None:
    result = one(
        "**Result:** 0.722 ms\n**After reducing to 4:** 0.700 ms\n**Verdict:** 6 REJECTED\n\n"
        "**Findings:** Good. 5 stages also tested (0.715 ms, 236 regs)."
    )
    assert result.baseline.figures.time_ms == 0.722
    assert [candidate.figures.time_ms for candidate in result.candidates] == [0.7, 0.715]
    assert [candidate.title for candidate in result.candidates] == [
        "After reducing to 4",
        "5 stages",
    ]


def test_what_replaced_it_is_compared_with_and_that_is_named_as_unclear() -> None:
    text = "### Experiment X1: T\n\n**Result:** ~500 TFLOPS → replaced by b at 1043 TFLOPS\n"
    log = read(text)
    (result,) = log.experiments
    assert (result.baseline.figures.tflops, result.candidates[0].figures.tflops) == (1043.0, 500.0)
    assert log.doubts == (
        "X1 has no baseline: of the two figures in its result, the second is taken for it.",
    )


def test_a_result_without_a_baseline_is_unclear() -> None:
    log = read("### Experiment X1: T\n\n**Result:** 1.0 ms\n")
    assert log.doubts == ("X1 has no baseline: its result is compared with nothing.",)


def test_a_table_of_variants_is_compared_with_its_first_row() -> None:
    text = """## Results
| Kernel | Time (μs) | Speedup | Notes |
|---|---|---|---|
| small | 2870 | 1x | slow |
| phase 3 (guarded) | **1100** | 2.6x | |
| not yet | — | | |

| Component | Time (μs) |
|---|---|
| barriers | 600 |
"""
    log = read(text)
    (result,) = log.experiments
    assert (result.id, result.title, result.baseline.title) == ("T1", "Results", "small")
    (candidate,) = result.candidates
    assert (candidate.state, candidate.figures.time_ms) == ("T1_phase_3_guarded", 1.1)
    assert "small: slow; Speedup: 1x" in result.notes


def test_what_became_no_entry_is_listed_with_its_line() -> None:
    text = "# Log\n\nWords.\n\n## Stalls\n\n| Reason | % |\n|---|---|\n| wait | 3 |\n"
    assert read(text).kept == ("line 1: Log", "line 5: Stalls")


@given(strategies.text("#*|-: \n`ab1.~>(→)", max_size=120))
def test_any_text_is_read_without_a_traceback(text: str) -> None:
    read(text)


def test_a_time_or_a_rate_of_zero_is_compared_with_nothing() -> None:
    for nothing in (PublishedResult(time_ms=0.0), PublishedResult(tflops=0.0)):
        for other in (PublishedResult(time_ms=1.0), PublishedResult(tflops=1.0)):
            assert figures.judge(nothing, other).status is Status.INCONCLUSIVE
            assert figures.judge(other, nothing).status is Status.INCONCLUSIVE


def test_a_cell_with_more_digits_than_a_float_holds_is_no_figure() -> None:
    header = "## R\n\n| Variant | Time (ms) | Registers |\n|---|---|---|\n"
    digits = "9" * 400
    (result,) = read(
        f"{header}| A | 3 | {digits} |\n| B | 2 | 8 |\n| C | {digits} | |\n"
    ).experiments
    assert result.baseline.figures == PublishedResult(time_ms=3.0)
    assert [one.title for one in result.candidates] == ["B"]


def test_words_with_more_digits_than_a_float_holds_have_no_figure() -> None:
    digits = "9" * 400
    assert figures.parse(f"{digits} ms, {digits} TFLOPS, {digits} registers") == figures.NOTHING
